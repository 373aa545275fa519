//! Why the service did not do what was asked.

use crate::domain::{Refusal, Stamp};
use crate::store::{StoreError, WriteError};

/// What a caller can tell apart.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// The state has no such key.
    #[error("the state has no such key")]
    KeyNotFound {
        /// Version and life of the thread.
        stamp: Stamp,
    },
    /// A part was asked of a value that is not an array.
    #[error("the value is not an array")]
    NotAnArray {
        /// Version and life of the thread.
        stamp: Stamp,
    },
    /// A thread of that id exists.
    #[error("the thread exists")]
    ThreadExists,
    /// Nothing is left of such a thread, or not any more.
    #[error("there is no such archive")]
    ArchiveNotFound,
    /// A write was refused and changed nothing.
    #[error(transparent)]
    Refused(#[from] Refusal),
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
