use std::fmt;
use std::time::Duration;

use super::owner::Owner;
use crate::json::text::Json;

/// Identifies one life of a thread id: the time from a thread's creation to its end. The token is random, so that
/// entity tags of earlier lives do not match. Zero means that the thread does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Life(pub u64);

impl Life {
    /// Generates the token of a new life.
    #[must_use]
    pub fn random() -> Self {
        Self(rand::random::<u64>().max(1))
    }
}

/// The version and life of a thread. Responses about the thread use this stamp as the entity tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stamp {
    /// The version, incremented by each accepted write; 0 if the thread does not exist.
    pub version: u64,
    /// The life of the id.
    pub life: Life,
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{:016x}", self.version, self.life.0)
    }
}

/// A thread without its state. Times are in Unix milliseconds, according to the store's clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thread {
    /// Version and life.
    pub stamp: Stamp,
    /// Size of the state as compact JSON.
    pub size_bytes: u64,
    /// Number of keys.
    pub keys: u32,
    /// A JSON object; `{}` if never set.
    pub metadata: Json,
    /// Time of the first write.
    pub created_ms: u64,
    /// Time of the last write.
    pub updated_ms: u64,
    /// When the thread expires unless it is used.
    pub expires_ms: u64,
    /// How long the thread lives after its last use.
    pub ttl: Duration,
    /// The optional owner.
    pub owner: Option<Owner>,
}
