use threadkeep_domain::scope::TaskError;
use threadkeep_domain::{Refusal, Stamp};
use threadkeep_store::{StoreError, WriteError};

#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    #[error("the key does not exist")]
    KeyNotFound { stamp: Stamp },
    #[error("the value is not an array, and only an array can be read in part")]
    NotAnArray { stamp: Stamp },
    #[error("the thread exists already")]
    ThreadExists,
    /// The thread has no archive, or its archive has expired.
    #[error("the archive does not exist")]
    ArchiveNotFound,
    #[error("the entry does not exist")]
    EntryNotFound,
    #[error("the entry would have {attempted_bytes} bytes; the limit is {limit_bytes}")]
    EntryTooLarge {
        limit_bytes: u64,
        /// Size that the entry would have had.
        attempted_bytes: u64,
    },
    /// More namespaces match than the service can sort.
    #[error("more than {limit} namespaces match `name`; narrow it, or omit `sort`")]
    TooManyNamespaces { limit: usize },
    /// The store rejected a write and changed nothing, or the scope does not exist.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A change to a task list was rejected and had no effect.
    #[error(transparent)]
    Tasks(#[from] TaskError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<WriteError> for ServiceError {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Refused(refusal) => Self::Refused(refusal),
            WriteError::Store(error) => Self::Store(error),
        }
    }
}
