use std::time::Duration;

/// Minimum TTL of a thread: one minute.
pub const TTL_MIN: Duration = Duration::from_secs(60);
/// Maximum TTL of a thread: 30 years.
pub const TTL_MAX: Duration = Duration::from_secs(946_080_000);
/// Maximum TTL of a key in a scope: one year.
pub const KEY_TTL_MAX: Duration = Duration::from_secs(31_536_000);

/// Maximum size of a request body in bytes. Key-value entries have a separate limit.
pub const BODY_MAX_BYTES: u64 = 2 * 1_048_576;

/// Limits and lifetimes of threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadPolicy {
    /// Maximum bytes of the state as compact JSON.
    pub max_bytes: u64,
    /// Maximum number of keys of the state.
    pub max_keys: u32,
    /// Maximum bytes of the metadata as compact JSON.
    pub max_metadata_bytes: u64,
    /// How long a thread lives after its last use, unless the thread has its own TTL.
    pub ttl: Duration,
    /// Maximum age of a thread, regardless of use.
    pub max_age: Option<Duration>,
    /// How long the id of an ended thread rejects writes.
    pub tombstone: Duration,
}

impl ThreadPolicy {
    /// The documented defaults.
    pub const THREAD: Self = Self {
        max_bytes: 1_048_576,
        max_keys: 10_000,
        max_metadata_bytes: 16_384,
        ttl: Duration::from_secs(3_600),
        max_age: None,
        tombstone: Duration::from_secs(60),
    };
}
