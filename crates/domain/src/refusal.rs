//! Why a write changed nothing.

use super::json::text::MAX_DEPTH;
use super::rate::RateLimited;
use super::rfc3339::rfc3339;
use super::threads::thread::Stamp;

/// A write that was understood and refused. The thread, the scope or the entry stays as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A push met something else than an array.
    #[error("the value is not an array; a push needs an array or a key without a value")]
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
    #[error("the sum does not fit in 64 bits")]
    IntegerOverflow {
        /// Index of the operation.
        operation: usize,
    },
    /// A push would nest a value deeper than JSON may be.
    #[error("the value would be nested deeper than {MAX_DEPTH} levels")]
    TooDeep {
        /// Index of the operation.
        operation: usize,
    },
    /// The state would pass its limit.
    #[error("the state would have {attempted_bytes} bytes; the limit is {limit_bytes}")]
    StateTooLarge {
        /// The limit.
        limit_bytes: u64,
        /// The size of the state.
        size_bytes: u64,
        /// The size that it would have had.
        attempted_bytes: u64,
    },
    /// The values of a scope would pass their limit.
    #[error(
        "the values of the scope would have {attempted_bytes} bytes; the limit is {limit_bytes}"
    )]
    KvTooLarge {
        /// The limit.
        limit_bytes: u64,
        /// The size that they would have had.
        attempted_bytes: u64,
    },
    /// There would be too many keys, or a merge patch names too many.
    #[error("a state or a merge patch may have at most {limit_keys} keys")]
    TooManyKeys {
        /// The limit.
        limit_keys: u32,
    },
    /// The metadata would pass its limit.
    #[error("the metadata would have {attempted_bytes} bytes; the limit is {limit_bytes}")]
    MetadataTooLarge {
        /// The limit.
        limit_bytes: u64,
        /// The size that it would have had.
        attempted_bytes: u64,
    },
    /// The history of a scope would pass its limit.
    #[error("the history would have {attempted_bytes} bytes; the limit is {limit_bytes}")]
    HistoryTooLarge {
        /// The limit.
        limit_bytes: u64,
        /// The size of the history.
        size_bytes: u64,
        /// The size that it would have had.
        attempted_bytes: u64,
    },
    /// The items that a compaction would replace are not those that it was made of.
    #[error("the history has {count} items up to `through`")]
    PrefixChanged {
        /// The number of items up to its place now.
        count: u64,
    },
    /// More items follow those that a compaction would replace than one may move.
    #[error("more than {limit_items} items follow `through`")]
    TooManyLaterItems {
        /// The limit.
        limit_items: u64,
    },
    /// The id of an item stands for another item already.
    #[error("the id of item {item} belongs to another item already")]
    ItemIdReused {
        /// Index of the item.
        item: usize,
    },
    /// An operation would append an item whose id stands for another item already.
    #[error("the id of an appended item belongs to another item already")]
    AppendReusesId {
        /// Index of the operation.
        operation: usize,
    },
    /// The thread, the scope or the entry is not as the precondition says.
    #[error("the version is {}, not the one in the request; read again and retry", current.version)]
    VersionMismatch {
        /// The current version; 0 if it does not exist.
        current: Stamp,
    },
    /// The data that the write is based on has changed; compute the write again.
    #[error("the data that the write is based on has changed")]
    Changed,
    /// Somebody else holds the turn, which is exclusive or is asked for.
    #[error("another caller holds the turn{}; retry then", until(*ends_ms))]
    TurnTaken {
        /// When it ends, by the store's clock.
        ends_ms: u64,
        /// How long that is from now.
        left_ms: u64,
    },
    /// A later turn was granted, or the turn was given back, or its thread has ended.
    #[error("the turn has ended, or a later one was granted; take the turn again")]
    TurnLost,
    /// The thread has another owner than the caller.
    #[error("the thread has another owner")]
    NotTheOwner,
    /// The thread has an owner, and the caller has none.
    #[error("the thread has an owner")]
    OwnerRequired,
    /// The write gives its thread to an owner that has to reserve a place for it first.
    #[error("no place is reserved for the thread")]
    NoPlace,
    /// The owner has as many threads as an owner may have.
    #[error("an owner may have {limit_threads} threads")]
    TooManyThreads {
        /// The limit.
        limit_threads: u64,
    },
    /// The caller has no API key and may not write that key, or may not clear a state that may have it.
    #[error("only callers with an API key may write that key")]
    KeyReserved {
        /// Index of the operation.
        operation: usize,
    },
    /// There is a thread of that id.
    #[error("the thread exists already")]
    ThreadExists,
    /// The thread of an import was created later than now, by more than clocks differ.
    #[error("the thread was created later than now")]
    CreatedAhead,
    /// The thread was destroyed a moment ago.
    #[error(
        "the thread was destroyed or rotated; its id accepts writes again `tombstone_seconds` later"
    )]
    Destroyed,
    /// There is no such thread, and the change does not create one.
    #[error("the thread does not exist")]
    ThreadNotFound,
    /// The thread has no checkpoint of that number.
    #[error("the checkpoint does not exist")]
    CheckpointNotFound,
    /// The thread would have too many checkpoints, or too many bytes in them.
    #[error(
        "a thread may have {limit_checkpoints} checkpoints, and {limit_bytes} bytes in all of them"
    )]
    TooManyCheckpoints {
        /// The limit of their number.
        limit_checkpoints: u32,
        /// The limit of the bytes of their states and metadata.
        limit_bytes: u64,
    },
    /// The scope must have been made, and was not, or is over.
    #[error("the scope does not exist")]
    ScopeNotFound,
    /// There is a scope of that id.
    #[error("the scope exists already")]
    ScopeExists,
    /// The scope rejects writes, since its run has ended.
    #[error("the scope has ended")]
    ScopeEnded,
    /// The scope's thread does not exist; it is to be made first.
    #[error("the thread does not exist")]
    NoThread,
    /// The idempotency key came with another request before.
    #[error("the idempotency key was used for another request")]
    IdempotencyKeyReused,
    /// So many idempotency keys are remembered that there is no room for a new one.
    #[error(
        "the thread remembers too many idempotency keys; retry in {} s",
        retry_after_ms.div_ceil(1_000)
    )]
    TooManyIdempotencyKeys {
        /// When the oldest one may be forgotten.
        retry_after_ms: u64,
    },
    /// There are too many for now.
    #[error(transparent)]
    RateLimited(#[from] RateLimited),
}

/// Names a time, unless it is past the year 9999.
fn until(ms: u64) -> String {
    rfc3339(ms).map_or_else(String::new, |time| format!(" until {time}"))
}

impl Refusal {
    /// The same refusal in a list with that many operations before it.
    #[must_use]
    pub fn after(mut self, before: usize) -> Self {
        if let Some(operation) = self.operation_mut() {
            *operation += before;
        }
        self
    }

    /// The index of the operation that it is about.
    #[doc(hidden)]
    pub fn operation_mut(&mut self) -> Option<&mut usize> {
        match self {
            Self::NotAnArray { operation }
            | Self::NotAnInteger { operation }
            | Self::IntegerOverflow { operation }
            | Self::TooDeep { operation }
            | Self::AppendReusesId { operation } => Some(operation),
            _ => None,
        }
    }
}
