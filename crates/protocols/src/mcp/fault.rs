//! Limits of bodies, and errors for bodies that are not messages.

use rmcp::model::{ErrorCode, ErrorData, JsonRpcError, RequestId};

/// Maximum size of a body. The largest call writes a task list of 131,072 bytes, which takes three times as many bytes
/// if the client escapes all non-ASCII characters. A value of 32,768 control characters takes up to 196,608 bytes.
pub(super) const MESSAGE_MAX_BYTES: u64 = 512 * 1_024;
/// Maximum number of values in a message, not counting its arguments. Clients usually describe themselves with a few
/// dozen values. The library reads 2,000 values in less than 5 ms.
pub(super) const VALUES_MAX: usize = 2_000;
pub(super) const BATCH_MAX: usize = 32;
/// Total size of a batch's answers after which the remaining messages are rejected. A message of 100 bytes can request
/// up to 131,072 bytes of a scope, and its answer contains that data twice.
pub(super) const ANSWERS_MAX_BYTES: usize = 2 * 1_048_576;

/// An error in a body, with the message's id if it is readable.
#[derive(Debug, thiserror::Error)]
pub(super) enum MessageFault {
    #[error("the body is not JSON")]
    NotJson,
    #[error("the body must be one message: this revision has no batches")]
    Batch,
    #[error("the batch has no message")]
    EmptyBatch,
    #[error("the batch has more than {BATCH_MAX} messages")]
    LongBatch,
    #[error("`initialize` must not be in a batch")]
    Handshake(Option<RequestId>),
    #[error("the message has more than {VALUES_MAX} values besides its arguments")]
    TooManyValues(Option<RequestId>),
    #[error("the body is not a JSON-RPC 2.0 message")]
    NoMessage(Option<RequestId>),
    #[error(
        "the answers to this batch exceed {ANSWERS_MAX_BYTES} bytes, so this message was not run"
    )]
    NoRoom(Option<RequestId>),
}

impl MessageFault {
    /// Builds the [JSON-RPC](https://www.jsonrpc.org/specification#error_object) error.
    pub(super) fn into_error(self) -> JsonRpcError {
        let text = self.to_string();
        let (id, code) = match self {
            Self::NotJson => (None, ErrorCode::PARSE_ERROR),
            Self::Batch | Self::EmptyBatch | Self::LongBatch => (None, ErrorCode::INVALID_REQUEST),
            Self::Handshake(id)
            | Self::TooManyValues(id)
            | Self::NoMessage(id)
            | Self::NoRoom(id) => (id, ErrorCode::INVALID_REQUEST),
        };
        JsonRpcError::new(id, ErrorData::new(code, text, None))
    }
}
