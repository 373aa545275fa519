use super::json::text::MAX_DEPTH;
use super::rate::RateLimited;
use super::rfc3339::rfc3339;
use super::threads::effects::EffectRefusal;
use super::threads::thread::Stamp;

/// A valid write that was refused and changed nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A push to a value that is not an array.
    #[error("the value is not an array; a push needs an array or a key without a value")]
    NotAnArray {
        /// Index of the operation.
        operation: usize,
    },
    /// An increment of a value that is not an integer.
    #[error("the value is not an integer")]
    NotAnInteger {
        /// Index of the operation.
        operation: usize,
    },
    /// The value or the sum of an increment does not fit in a signed 64-bit integer.
    #[error("the sum does not fit in 64 bits")]
    IntegerOverflow {
        /// Index of the operation.
        operation: usize,
    },
    /// A push that would exceed the maximum nesting depth of JSON.
    #[error("the value would be nested deeper than {MAX_DEPTH} levels")]
    TooDeep {
        /// Index of the operation.
        operation: usize,
    },
    /// The state would exceed its limit.
    #[error("the state would have {attempted_bytes} bytes; the limit is {limit_bytes}")]
    StateTooLarge {
        /// The limit.
        limit_bytes: u64,
        /// The current size.
        size_bytes: u64,
        /// The size after the write.
        attempted_bytes: u64,
    },
    /// The values of a scope would exceed their limit.
    #[error(
        "the values of the scope would have {attempted_bytes} bytes; the limit is {limit_bytes}"
    )]
    KvTooLarge {
        /// The limit.
        limit_bytes: u64,
        /// The size after the write.
        attempted_bytes: u64,
    },
    /// The state would have too many keys, or a merge patch has too many keys.
    #[error("a state or a merge patch may have at most {limit_keys} keys")]
    TooManyKeys {
        /// The limit.
        limit_keys: u32,
    },
    /// The metadata would exceed its limit.
    #[error("the metadata would have {attempted_bytes} bytes; the limit is {limit_bytes}")]
    MetadataTooLarge {
        /// The limit.
        limit_bytes: u64,
        /// The size after the write.
        attempted_bytes: u64,
    },
    /// The history of a scope would exceed its limit.
    #[error("the history would have {attempted_bytes} bytes; the limit is {limit_bytes}")]
    HistoryTooLarge {
        /// The limit.
        limit_bytes: u64,
        /// The current size.
        size_bytes: u64,
        /// The size after the write.
        attempted_bytes: u64,
    },
    /// The history changed since the compaction was computed.
    #[error("the history has {count} items up to `through`")]
    PrefixChanged {
        /// The current number of items up to and including the position `through` of the request.
        count: u64,
    },
    /// Too many items follow the items that a compaction would replace.
    #[error("more than {limit_items} items follow `through`")]
    TooManyLaterItems {
        /// The limit.
        limit_items: u64,
    },
    /// An item has the id of a different, existing item.
    #[error("the id of item {item} belongs to another item already")]
    ItemIdReused {
        /// Index of the item.
        item: usize,
    },
    /// An operation would append an item with the id of a different, existing item.
    #[error("the id of an appended item belongs to another item already")]
    AppendReusesId {
        /// Index of the operation.
        operation: usize,
    },
    /// The version in the request is not the current version.
    #[error("the version is {}, not the one in the request; read again and retry", current.version)]
    VersionMismatch {
        /// The current version; 0 if the subject does not exist.
        current: Stamp,
    },
    /// The data that the write is based on has changed. The caller must recompute the write.
    #[error("the data that the write is based on has changed")]
    Changed,
    /// Another caller holds the turn, a lock on the thread, and the turn is exclusive or the request asks for it.
    #[error("another caller holds the turn{}; retry then", until(*ends_ms))]
    TurnTaken {
        /// When the turn ends, according to the store's clock.
        ends_ms: u64,
        /// Milliseconds until the turn ends.
        left_ms: u64,
    },
    /// The turn was released, a later turn was granted, or the thread has ended.
    #[error("the turn has ended, or a later one was granted; take the turn again")]
    TurnLost,
    /// The caller's turn has expired or was released, and no later turn was granted.
    #[error("turn {number} is not held; renew it unless you released it, or take the turn again")]
    TurnNotHeld {
        /// The number of the turn.
        number: u32,
        /// Index of the operation, if the request is a list of operations.
        operation: Option<usize>,
    },
    /// The ledger of effects refused the request.
    #[error("{refusal}")]
    Effect {
        /// The reason.
        refusal: EffectRefusal,
        /// Index of the operation, if the request is a list of operations.
        operation: Option<usize>,
    },
    /// The thread belongs to another owner.
    #[error("the thread has another owner")]
    NotTheOwner,
    /// The thread has an owner, but the request specifies none.
    #[error("the thread has an owner")]
    OwnerRequired,
    /// The write adds a thread to an owner without a reservation, which counts the thread toward the owner's limit.
    #[error("no reservation was made for the thread")]
    NoReservation,
    /// The owner has the maximum number of threads.
    #[error("an owner may have {limit_threads} threads")]
    TooManyThreads {
        /// The limit.
        limit_threads: u64,
    },
    /// The caller has no API key, and the write changes a reserved key or clears a state that may hold reserved keys.
    #[error("only callers with an API key may write that key")]
    KeyReserved {
        /// Index of the operation.
        operation: usize,
    },
    /// The thread already exists.
    #[error("the thread exists already")]
    ThreadExists,
    /// The creation time of an imported thread is ahead of the current time by more than the allowed clock skew.
    #[error("the thread was created later than now")]
    CreatedAhead,
    /// The thread ended recently, and its id still rejects writes.
    #[error(
        "the thread was destroyed or rotated; its id accepts writes again `tombstone_seconds` later"
    )]
    Destroyed,
    /// The thread does not exist, and the write does not create it.
    #[error("the thread does not exist")]
    ThreadNotFound,
    /// The checkpoint does not exist.
    #[error("the checkpoint does not exist")]
    CheckpointNotFound,
    /// The thread would have too many checkpoints, or its checkpoints would be too large in total.
    #[error(
        "a thread may have {limit_checkpoints} checkpoints, and {limit_bytes} bytes in all of them"
    )]
    TooManyCheckpoints {
        /// Maximum number of checkpoints.
        limit_checkpoints: u32,
        /// Maximum total size in bytes of the states and metadata in all checkpoints.
        limit_bytes: u64,
    },
    /// The scope does not exist, and must be created explicitly.
    #[error("the scope does not exist")]
    ScopeNotFound,
    /// The scope already exists.
    #[error("the scope exists already")]
    ScopeExists,
    /// The scope rejects writes, because its run has ended.
    #[error("the scope has ended")]
    ScopeEnded,
    /// The thread of the scope does not exist.
    #[error("the thread does not exist")]
    NoThread,
    /// The idempotency key was used for another request.
    #[error("the idempotency key was used for another request")]
    IdempotencyKeyReused,
    /// The thread cannot store another idempotency key.
    #[error(
        "the thread remembers too many idempotency keys; retry in {} s",
        retry_after_ms.div_ceil(1_000)
    )]
    TooManyIdempotencyKeys {
        /// Milliseconds until the oldest key may be forgotten.
        retry_after_ms: u64,
    },
    /// A rate limit was exceeded.
    #[error(transparent)]
    RateLimited(#[from] RateLimited),
}

/// Returns " until" and the formatted time, or an empty string for a time after the year 9999.
fn until(ms: u64) -> String {
    rfc3339(ms).map_or_else(String::new, |time| format!(" until {time}"))
}

impl From<EffectRefusal> for Refusal {
    fn from(refusal: EffectRefusal) -> Self {
        Self::Effect {
            refusal,
            operation: None,
        }
    }
}

impl Refusal {
    #[doc(hidden)]
    #[must_use]
    pub fn in_operation(self, index: usize) -> Self {
        match self {
            Self::Effect { refusal, .. } => Self::Effect {
                refusal,
                operation: Some(index),
            },
            Self::TurnNotHeld { number, .. } => Self::TurnNotHeld {
                number,
                operation: Some(index),
            },
            refusal => refusal,
        }
    }

    /// Adds `before`, the number of preceding operations, to the index of the rejected operation.
    #[must_use]
    pub fn after(mut self, before: usize) -> Self {
        if let Some(operation) = self.operation_mut() {
            *operation += before;
        }
        self
    }

    #[doc(hidden)]
    pub fn operation_mut(&mut self) -> Option<&mut usize> {
        match self {
            Self::NotAnArray { operation }
            | Self::NotAnInteger { operation }
            | Self::IntegerOverflow { operation }
            | Self::TooDeep { operation }
            | Self::AppendReusesId { operation }
            | Self::TurnNotHeld {
                operation: Some(operation),
                ..
            }
            | Self::Effect {
                operation: Some(operation),
                ..
            } => Some(operation),
            _ => None,
        }
    }
}
