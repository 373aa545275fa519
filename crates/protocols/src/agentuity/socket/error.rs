//! Maps each error of a request to an answer of the form `{"id","success":false,"error"}`.

use threadkeep_domain::{JsonError, KeyError, ObjectError, ObjectFault, ThreadIdError};
use threadkeep_service::ServiceError;
use threadkeep_store::StoreError;

use super::limits::OPERATIONS_MAX;

#[derive(Debug, thiserror::Error)]
pub(super) enum RequestError {
    #[error("a message must be text")]
    Binary,
    #[error("a message has at most {limit_bytes} bytes")]
    TooLarge { limit_bytes: u64 },
    #[error("the message is not UTF-8")]
    NotUtf8,
    #[error("the message is not JSON at line {line} column {column}")]
    NotJson { line: usize, column: usize },
    #[error("the message does not have the shape of a request at line {line} column {column}")]
    NotARequest { line: usize, column: usize },
    #[error("`id` must be a string of at most 254 bytes")]
    NoId,
    #[error("`action` must be restore, save, merge or delete")]
    UnknownAction,
    #[error("`{0}` is missing")]
    Missing(&'static str),
    #[error("`thread_id`: {0}")]
    ThreadId(#[from] ThreadIdError),
    #[error("`user_data` must be a JSON object in a string")]
    Envelope,
    #[error("the state in `user_data`: {0}")]
    State(#[from] ObjectFault),
    #[error("`metadata`: {0}")]
    Metadata(#[from] ObjectError),
    #[error("a merge has at most {OPERATIONS_MAX} operations")]
    TooManyOperations,
    #[error("operation {index}: {fault}")]
    Operation {
        /// Zero-based.
        index: usize,
        fault: OperationFault,
    },
    #[error(transparent)]
    Service(#[from] ServiceError),
}

#[derive(Debug, thiserror::Error)]
pub(super) enum OperationFault {
    #[error("it does not have the shape of an operation")]
    Shape,
    #[error("`op` must be set, delete, clear or push")]
    UnknownOp,
    #[error("`key` must be a string")]
    NoKey,
    #[error("`key`: {0}")]
    Key(#[from] KeyError),
    #[error("`value`: {0}")]
    Value(#[from] JsonError),
    #[error("`maxRecords` must be a number")]
    MaxRecords,
}

impl RequestError {
    pub(super) fn message(&self) -> String {
        match self {
            Self::Service(ServiceError::Store(StoreError::Full)) => "the store is full".into(),
            Self::Service(ServiceError::Store(_)) => "the store is not available".into(),
            _ => self.to_string(),
        }
    }

    /// Returns whether the server caused the error.
    pub(super) fn is_server_error(&self) -> bool {
        matches!(self, Self::Service(ServiceError::Store(_)))
    }

    /// Classifies a parse error and keeps its position.
    pub(super) fn of_json(error: &serde_json::Error) -> Self {
        let (line, column) = (error.line(), error.column());
        if error.is_data() {
            Self::NotARequest { line, column }
        } else {
            Self::NotJson { line, column }
        }
    }
}
