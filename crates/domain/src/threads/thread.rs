//! The metadata of a thread.

use std::fmt;
use std::time::Duration;

use super::owner::Owner;
use crate::json::text::Json;

/// A token made with a thread, so that a tag from an earlier life of its id never matches.
///
/// Zero stands for a thread that does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Life(pub u64);

impl Life {
    /// A new life.
    #[must_use]
    pub fn random() -> Self {
        Self(rand::random::<u64>().max(1))
    }
}

/// Version and life: the entity tag of everything that a thread answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stamp {
    /// +1 for each write that was accepted; 0: the thread does not exist.
    pub version: u64,
    /// Which life of the id this is.
    pub life: Life,
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{:016x}", self.version, self.life.0)
    }
}

/// All about a thread but its state. Times are milliseconds of the Unix epoch, by the store's
/// clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thread {
    /// Version and life.
    pub stamp: Stamp,
    /// Bytes of the compact serialized state.
    pub size_bytes: u64,
    /// Number of keys.
    pub keys: u32,
    /// A JSON object; none was ever set: `{}`.
    pub metadata: Json,
    /// When its first write came.
    pub created_ms: u64,
    /// When its last write came.
    pub updated_ms: u64,
    /// When it ends, unless it is used before.
    pub expires_ms: u64,
    /// How long it lives after its last use.
    pub ttl: Duration,
    /// The owner, if it has one.
    pub owner: Option<Owner>,
}
