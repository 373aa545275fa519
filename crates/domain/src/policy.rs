//! The limits and lifetime of a document.

use std::time::Duration;

/// The shortest idle TTL that a client may ask for.
pub const TTL_MIN: Duration = Duration::from_secs(60);
/// The longest idle TTL that a client may ask for.
pub const TTL_MAX: Duration = Duration::from_secs(946_080_000);
/// The longest TTL of a key in a scope: a year.
pub const KEY_TTL_MAX: Duration = Duration::from_secs(31_536_000);

/// Bytes of the body of a request; that of an entry has a limit of its own.
pub const BODY_MAX_BYTES: u64 = 2 * 1_048_576;

/// Limits and lifetimes of a kind of document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadPolicy {
    /// Bytes of the compact serialized state.
    pub max_bytes: u64,
    /// Number of keys of the state.
    pub max_keys: u32,
    /// Bytes of the compact serialized metadata.
    pub max_metadata_bytes: u64,
    /// How long a thread lives after its last use, unless it has a TTL of its own.
    pub ttl: Duration,
    /// How long a thread lives at most, however often it is used.
    pub max_age: Option<Duration>,
    /// How long a destroyed thread refuses writes.
    pub tombstone: Duration,
}

impl ThreadPolicy {
    /// The policy of thread state with the documented defaults.
    pub const THREAD: Self = Self {
        max_bytes: 1_048_576,
        max_keys: 10_000,
        max_metadata_bytes: 16_384,
        ttl: Duration::from_secs(3_600),
        max_age: None,
        tombstone: Duration::from_secs(60),
    };
}
