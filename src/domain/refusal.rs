//! Why a write changed nothing.

use super::rate::RateLimited;
use super::threads::thread::Stamp;

/// A write that was understood and refused. The thread, the scope or the entry stays as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A push met something else than an array.
    #[error("the value is not an array")]
    NotAnArray {
        /// Index of the operation.
        operation: usize,
    },
    /// An increment met something else than an integer.
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
    /// The state would pass its limit.
    #[error("the state would have {attempted_bytes} bytes, its limit is {limit_bytes}")]
    StateTooLarge {
        /// The limit.
        limit_bytes: u64,
        /// What the state has.
        size_bytes: u64,
        /// What it would have had.
        attempted_bytes: u64,
    },
    /// The values of a scope would pass their limit.
    #[error("kv exceeds {limit_bytes} bytes")]
    KvTooLarge {
        /// The limit.
        limit_bytes: u64,
        /// What they would have had.
        attempted_bytes: u64,
    },
    /// There would be too many keys, or a merge patch names too many.
    #[error("there are at most {limit_keys} keys, and a merge patch names at most as many")]
    TooManyKeys {
        /// The limit.
        limit_keys: u32,
    },
    /// The metadata would pass its limit.
    #[error("the metadata would have {attempted_bytes} bytes, its limit is {limit_bytes}")]
    MetadataTooLarge {
        /// The limit.
        limit_bytes: u64,
        /// What it would have had.
        attempted_bytes: u64,
    },
    /// The history of a scope would pass its limit.
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
    /// The thread, the scope or the entry is not as the precondition says.
    #[error("the version is {}", current.version)]
    VersionMismatch {
        /// What it is; version 0: it does not exist.
        current: Stamp,
    },
    /// What the write was worked out from has changed; it is to be worked out anew.
    #[error("what the write was worked out from has changed")]
    Changed,
    /// The thread was destroyed a moment ago.
    #[error("the thread was destroyed")]
    Destroyed,
    /// The scope must have been made, and was not, or is over.
    #[error("there is no such scope")]
    ScopeNotFound,
    /// There is a scope of that id.
    #[error("the scope exists")]
    ScopeExists,
    /// The scope takes no more writes: its run has ended.
    #[error("the scope has ended")]
    ScopeEnded,
    /// The scope's thread does not exist; it is to be made first.
    #[error("the thread does not exist")]
    NoThread,
    /// The idempotency key came with another request before.
    #[error("the idempotency key was used for another request")]
    IdempotencyKeyReused,
    /// So many idempotency keys are remembered that there is no room for a new one.
    #[error("too many idempotency keys at once")]
    TooManyIdempotencyKeys {
        /// When the oldest one may be forgotten.
        retry_after_ms: u64,
    },
    /// There are too many for now.
    #[error(transparent)]
    RateLimited(#[from] RateLimited),
}

impl Refusal {
    /// The same refusal in a list that has so many operations before.
    #[must_use]
    pub fn after(mut self, before: usize) -> Self {
        if let Self::NotAnArray { operation }
        | Self::NotAnInteger { operation }
        | Self::IntegerOverflow { operation } = &mut self
        {
            *operation += before;
        }
        self
    }
}
