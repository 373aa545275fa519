//! Steps on the keys of a scope.

use std::time::Duration;

use super::{ScopeKey, ScopeValue};

/// One step on the keys. A write runs all of its steps in order, or none.
#[derive(Debug, Clone)]
pub enum KvOperation {
    /// Sets a key. A set without `ttl` clears an older one.
    Set {
        /// The key to set.
        key: ScopeKey,
        /// The value.
        value: ScopeValue,
        /// The lifetime, at least a second; by default that of the scope.
        ttl: Option<Duration>,
        /// Leaves an existing key unchanged.
        if_absent: bool,
    },
    /// Deletes a key; deleting an absent one is no error.
    Delete {
        /// The key to delete.
        key: ScopeKey,
    },
    /// Adds to a decimal integer, which keeps its time to live; an absent one counts as 0.
    Increment {
        /// The key to count up.
        key: ScopeKey,
        /// The number to add.
        by: i64,
    },
    /// Deletes all keys.
    Clear,
}

/// The result of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KvAnswer {
    /// Of set: whether it was set; false only for a key that exists and was to be set if absent.
    Set(bool),
    /// Of delete: whether there was such a key.
    Deleted(bool),
    /// Of increment: the sum.
    Value(i64),
    /// Of clear.
    Cleared,
}

impl KvOperation {
    /// The key that it affects; `None` for all.
    #[must_use]
    pub fn key(&self) -> Option<&ScopeKey> {
        match self {
            Self::Set { key, .. } | Self::Delete { key } | Self::Increment { key, .. } => Some(key),
            Self::Clear => None,
        }
    }
}
