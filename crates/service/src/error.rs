//! Why the service did not do what was asked.

use threadkeep_domain::scope::TaskError;
use threadkeep_domain::{Refusal, Stamp};
use threadkeep_store::{StoreError, WriteError};

/// Errors that a caller can tell apart.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// The state has no such key.
    #[error("the key does not exist")]
    KeyNotFound {
        /// Version and life of the thread.
        stamp: Stamp,
    },
    /// A part was asked of a value that is not an array.
    #[error("the value is not an array, and only an array can be read in part")]
    NotAnArray {
        /// Version and life of the thread.
        stamp: Stamp,
    },
    /// A thread of that id exists.
    #[error("the thread exists already")]
    ThreadExists,
    /// Nothing is left of such a thread, or not any more.
    #[error("the archive does not exist")]
    ArchiveNotFound,
    /// The namespace has no such entry.
    #[error("the entry does not exist")]
    EntryNotFound,
    /// The body of an entry is too large.
    #[error("the entry would have {attempted_bytes} bytes; the limit is {limit_bytes}")]
    EntryTooLarge {
        /// The limit.
        limit_bytes: u64,
        /// The size that it would have had.
        attempted_bytes: u64,
    },
    /// There are more namespaces than are put in that order.
    #[error("more than {limit} namespaces match `name`; narrow it, or omit `sort`")]
    TooManyNamespaces {
        /// How many there may be.
        limit: usize,
    },
    /// A write was refused and changed nothing, or there is no such scope.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A task list refused a change; nothing has changed.
    #[error(transparent)]
    Tasks(#[from] TaskError),
    /// The store failed.
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
