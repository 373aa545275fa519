//! The one table that maps errors to `{"id","success":false,"error"}`.

use threadkeep_domain::{JsonError, KeyError, ObjectError, ObjectFault, ThreadIdError};
use threadkeep_service::ServiceError;
use threadkeep_store::StoreError;

use super::limits::MOST_OPERATIONS;

/// Errors of requests.
#[derive(Debug, thiserror::Error)]
pub(super) enum RequestError {
    /// A binary message.
    #[error("a message must be text")]
    Binary,
    /// The message is too large.
    #[error("a message has at most {limit_bytes} bytes")]
    TooLarge { limit_bytes: u64 },
    /// The message is no text.
    #[error("the message is not UTF-8")]
    NotUtf8,
    /// The message is not JSON.
    #[error("the message is not JSON at line {line} column {column}")]
    NotJson { line: usize, column: usize },
    /// The message is JSON of another shape.
    #[error("the message does not have the shape of a request at line {line} column {column}")]
    NotARequest { line: usize, column: usize },
    /// No id, or none that can be repeated.
    #[error("`id` must be a string of at most 254 bytes")]
    NoId,
    /// No action, or an unknown one.
    #[error("`action` must be restore, save, merge or delete")]
    UnknownAction,
    /// The action needs a member that is not there.
    #[error("`{0}` is missing")]
    Missing(&'static str),
    /// An invalid thread id.
    #[error("`thread_id`: {0}")]
    ThreadId(#[from] ThreadIdError),
    /// The envelope in `user_data` is not JSON.
    #[error("`user_data` must be a JSON object in a string")]
    Envelope,
    /// An invalid state in `user_data`.
    #[error("the state in `user_data`: {0}")]
    State(#[from] ObjectFault),
    /// The metadata is not an object.
    #[error("`metadata`: {0}")]
    Metadata(#[from] ObjectError),
    /// Too many operations.
    #[error("a merge has at most {MOST_OPERATIONS} operations")]
    TooManyOperations,
    /// An invalid operation.
    #[error("operation {index}: {fault}")]
    Operation {
        /// From 0.
        index: usize,
        /// The fault.
        fault: OperationFault,
    },
    /// The service rejected the request, or failed.
    #[error(transparent)]
    Service(#[from] ServiceError),
}

/// A fault of an operation.
#[derive(Debug, thiserror::Error)]
pub(super) enum OperationFault {
    /// Not an object, or with members of other types.
    #[error("it does not have the shape of an operation")]
    Shape,
    /// No operation, or an unknown one.
    #[error("`op` must be set, delete, clear or push")]
    UnknownOp,
    /// No key, or one that is not a string.
    #[error("`key` must be a string")]
    NoKey,
    /// A key that no state accepts.
    #[error("`key`: {0}")]
    Key(#[from] KeyError),
    /// A value that no state accepts.
    #[error("`value`: {0}")]
    Value(#[from] JsonError),
    /// A limit that is not a number.
    #[error("`maxRecords` must be a number")]
    MaxRecords,
}

impl RequestError {
    /// The text for people. The cause of a fault is only in the log.
    pub(super) fn message(&self) -> String {
        match self {
            Self::Service(ServiceError::Store(StoreError::Full)) => "the store is full".into(),
            Self::Service(ServiceError::Store(_)) => "the store is not available".into(),
            _ => self.to_string(),
        }
    }

    /// Whether the fault is not the client's.
    pub(super) fn is_ours(&self) -> bool {
        matches!(self, Self::Service(ServiceError::Store(_)))
    }

    /// The fault of a message that is not a request, and its place.
    pub(super) fn of_json(error: &serde_json::Error) -> Self {
        let (line, column) = (error.line(), error.column());
        if error.is_data() {
            Self::NotARequest { line, column }
        } else {
            Self::NotJson { line, column }
        }
    }
}
