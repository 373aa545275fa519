//! Why a write changed nothing.

use super::rate::RateLimited;
use super::threads::thread::Stamp;

/// A write that was understood and refused. The thread stays as it was.
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
    /// The state would have too many keys, or a merge patch names too many.
    #[error("a state has at most {limit_keys} keys, and a merge patch names at most as many")]
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
    /// The thread, or the entry, is not as the precondition says.
    #[error("the version is {}", current.version)]
    VersionMismatch {
        /// What it is; version 0: it does not exist.
        current: Stamp,
    },
    /// A value that the write was worked out from has changed; it is to be worked out anew.
    #[error("a value has changed since it was read")]
    ValueChanged,
    /// The thread was destroyed a moment ago.
    #[error("the thread was destroyed")]
    Destroyed,
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
    pub fn after(self, before: usize) -> Self {
        match self {
            Self::NotAnArray { operation } => Self::NotAnArray {
                operation: before + operation,
            },
            Self::NotAnInteger { operation } => Self::NotAnInteger {
                operation: before + operation,
            },
            Self::IntegerOverflow { operation } => Self::IntegerOverflow {
                operation: before + operation,
            },
            other => other,
        }
    }
}
