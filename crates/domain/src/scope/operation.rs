use std::time::Duration;

use super::{ScopeKey, ScopeValue};

/// An operation on keys. A write runs all of its operations in order, or none of them.
#[derive(Debug, Clone)]
pub enum KvOperation {
    /// Sets a key. If `ttl` is `None`, a previous TTL of the key is removed.
    Set {
        /// The key.
        key: ScopeKey,
        /// The value.
        value: ScopeValue,
        /// The lifetime of the key, at least one second. `None` means the lifetime of the scope.
        ttl: Option<Duration>,
        /// Whether to leave an existing key unchanged.
        if_absent: bool,
    },
    /// Deletes a key. Deleting an absent key is not an error.
    Delete {
        /// The key.
        key: ScopeKey,
    },
    /// Adds `by` to a decimal integer, and keeps the TTL of the key. An absent key is treated as 0.
    Increment {
        /// The key.
        key: ScopeKey,
        /// The addend.
        by: i64,
    },
    /// Deletes all keys.
    Clear,
}

/// The result of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KvAnswer {
    /// Whether the key was set; false if `if_absent` found an existing key.
    Set(bool),
    /// Whether the key existed.
    Deleted(bool),
    /// The sum.
    Value(i64),
    /// All keys were deleted.
    Cleared,
}

impl KvOperation {
    /// Returns the affected key, or `None` for an operation on all keys.
    #[must_use]
    pub fn key(&self) -> Option<&ScopeKey> {
        match self {
            Self::Set { key, .. } | Self::Delete { key } | Self::Increment { key, .. } => Some(key),
            Self::Clear => None,
        }
    }
}
