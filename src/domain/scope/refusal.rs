//! Why a write to a scope changed nothing.

use crate::domain::{RateLimited, Stamp};

/// A write that was understood and refused. The scope stays as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ScopeRefusal {
    /// The scope must have been made, and was not, or is over.
    #[error("there is no such scope")]
    NotFound,
    /// The scope takes no more writes: its run has ended.
    #[error("the scope has ended")]
    Sealed,
    /// There is a scope of that id.
    #[error("the scope exists")]
    Exists,
    /// The scope's thread does not exist; it is to be made first.
    #[error("the thread does not exist")]
    NoThread,
    /// The scope is not as the precondition says.
    #[error("the scope has version {}", current.version)]
    VersionMismatch {
        /// What it is; version 0: it does not exist.
        current: Stamp,
    },
    /// The task list or the record that the write was worked out from has changed.
    #[error("what the write was worked out from has changed")]
    Changed,
    /// An increment met something else than a decimal integer.
    #[error("the value is not an integer")]
    NotAnInteger {
        /// Index of the operation.
        operation: usize,
    },
    /// An increment met, or would make, an integer past 64 bits signed.
    #[error("the integer does not fit 64 bits")]
    IntegerOverflow {
        /// Index of the operation.
        operation: usize,
    },
    /// The values would have too many bytes.
    #[error("kv exceeds {limit_bytes} bytes")]
    KvTooLarge {
        /// The limit.
        limit_bytes: u64,
        /// What they would have had.
        attempted_bytes: u64,
    },
    /// There would be too many keys.
    #[error("kv exceeds {limit_keys} keys")]
    TooManyKeys {
        /// The limit.
        limit_keys: u32,
    },
    /// The history would pass its limit.
    #[error("the history would have {attempted_bytes} bytes, its limit is {limit_bytes}")]
    HistoryTooLarge {
        /// The limit.
        limit_bytes: u64,
        /// What it has.
        size_bytes: u64,
        /// What it would have had.
        attempted_bytes: u64,
    },
    /// The id of an item stands for another item already.
    #[error("the id of an item was used for another item")]
    ItemIdReused {
        /// Index of the item.
        item: usize,
    },
    /// The idempotency key came with another request before.
    #[error("the idempotency key was used for another request")]
    IdempotencyKeyReused,
    /// So many idempotency keys are remembered that there is no room for a new one.
    #[error("too many idempotency keys at once")]
    TooManyIdempotencyKeys {
        /// When the oldest one may be forgotten.
        retry_after_ms: u64,
    },
    /// There are too many writes for now.
    #[error(transparent)]
    RateLimited(#[from] RateLimited),
}
