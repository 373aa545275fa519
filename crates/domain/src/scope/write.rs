//! A write to a scope as a whole: its changes and conditions.

use std::time::Duration;

use bytes::Bytes;

use super::{
    Appended, HistoryItem, KvAnswer, KvOperation, Removal, ScopePolicy, StoredItem, TaskList,
};
use crate::{Conditions, Stamp};

/// One atomic change of a scope, done whole or not at all.
///
/// It is checked in this order: idempotency key, turn of its thread, whether the scope exists and accepts writes,
/// precondition, record, tasks, operations, limits, history.
#[derive(Debug, Clone, Copy)]
pub struct ScopeWrite<'a> {
    /// Whether it creates the scope, which must not exist.
    pub makes: bool,
    /// Steps on the keys, in order.
    pub operations: &'a [KvOperation],
    /// A new task list.
    pub tasks: Option<&'a TasksChange>,
    /// A new record.
    pub record: Option<&'a RecordChange>,
    /// The items to remove from the history, before others are appended.
    pub removes: Option<Removal<'a>>,
    /// The items to append to the history, at most 1,000.
    pub history: &'a [HistoryItem],
    /// Whether this is the last write that the scope accepts.
    pub seals: bool,
    /// The new lifetime of a scope with the lifetime [`Kept`]; none leaves it unchanged.
    ///
    /// [`Kept`]: super::Lifetime::Kept
    pub ttl: Option<Duration>,
    /// The conditions, of which the precondition is about the scope.
    pub conditions: Conditions,
    /// Limits and lifetime.
    pub policy: &'a ScopePolicy,
}

impl<'a> ScopeWrite<'a> {
    /// A write without conditions that changes nothing but the version.
    #[must_use]
    pub fn new(policy: &'a ScopePolicy) -> Self {
        Self {
            makes: false,
            operations: &[],
            tasks: None,
            record: None,
            removes: None,
            history: &[],
            seals: false,
            ttl: None,
            conditions: Conditions::default(),
            policy,
        }
    }

    /// The same without the identity of a repeat.
    pub fn without_idempotency(&self) -> Self {
        Self {
            conditions: self.conditions.without_idempotency(),
            ..*self
        }
    }

    /// Whether it does nothing but delete keys and items of the history, so that it makes room in a
    /// store that is full.
    #[must_use]
    pub fn only_deletes(&self) -> bool {
        let is_deletion = |operation: &KvOperation| {
            matches!(operation, KvOperation::Delete { .. } | KvOperation::Clear)
        };
        let adds = self.makes || self.seals || self.tasks.is_some() || self.record.is_some();
        !adds
            && self.history.is_empty()
            && self.conditions.idempotency.is_none()
            && (self.removes.is_some() || !self.operations.is_empty())
            && self.operations.iter().all(is_deletion)
    }

    /// Whether it does nothing but add items to the history and set keys that are absent. If all of
    /// these are there already, it changes nothing, not even the version.
    #[must_use]
    pub fn only_adds(&self) -> bool {
        let adds = |operation: &KvOperation| {
            matches!(
                operation,
                KvOperation::Set {
                    if_absent: true,
                    ..
                }
            )
        };
        let does_more = self.makes || self.removes.is_some() || self.seals;
        let is_empty = self.history.is_empty() && self.operations.is_empty();
        !(does_more || is_empty)
            && self.operations.iter().all(adds)
            && self.tasks.is_none()
            && self.record.is_none()
            && self.ttl.is_none()
    }
}

/// A new task list, and the list that it is based on.
#[derive(Debug, Clone)]
pub struct TasksChange {
    /// The whole list.
    pub new: TaskList,
    /// The stamp of that list; `None` accepts any.
    pub expected: Option<Stamp>,
}

/// A new record, and the record that it is based on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordChange {
    /// The data that the creator of the scope keeps with it, at most 64 KiB.
    pub new: Bytes,
    /// The record that it is based on; `None` accepts any.
    pub expected: Option<Bytes>,
}

/// The answer of an accepted write, or of its first run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScopeWritten {
    /// Version and life afterwards.
    pub stamp: Stamp,
    /// Bytes of all values afterwards.
    pub kv_bytes: u64,
    /// Number of keys afterwards.
    pub keys: u32,
    /// One for each operation.
    pub answers: Vec<KvAnswer>,
    /// One for each item of the history.
    pub appended: Vec<Appended>,
    /// How many items were removed from the history.
    pub removed: u64,
    /// The newest items, if the write has [taken](Removal::Newest) them, the oldest first.
    pub taken: Vec<StoredItem>,
    /// Whether this is the answer to an earlier write with the same idempotency key.
    pub replayed: bool,
}
