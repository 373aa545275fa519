//! The limits of bodies, and the faults of those that are no message.

use rmcp::model::{ErrorCode, ErrorData, JsonRpcError, RequestId};

/// The largest message. The largest call writes a task list of 131,072 bytes, which a client that
/// escapes all that is not ASCII makes three times as long; a value of 32,768 control characters has
/// six times as many bytes.
pub(super) const MESSAGE_MAX_BYTES: u64 = 512 * 1_024;
/// Values of a message outside its arguments: clients usually describe themselves in a few dozen. Reading this many
/// takes the library less than 5 ms.
pub(super) const VALUES_MAX: usize = 2_000;
/// The most messages of a batch.
pub(super) const BATCH_MAX: usize = 32;
/// Bytes of the answers to a batch after which the rest of it is refused. Each answer repeats up to 131,072 bytes of a
/// scope, twice, and a message that asks for them has 100.
pub(super) const ANSWERS_MAX_BYTES: usize = 2 * 1_048_576;

/// A fault of a body, and the id of the message that it may have been meant as.
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
    /// In the form of [JSON-RPC](https://www.jsonrpc.org/specification#error_object).
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
