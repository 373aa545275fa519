use std::time::Duration;

use bytes::Bytes;

use super::{
    Appended, HistoryItem, KvAnswer, KvOperation, Removal, ScopePolicy, StoredItem, TaskList,
};
use crate::{Conditions, Stamp};

/// An atomic change to a scope. Checks run in this order: idempotency key, turn of the thread, whether the scope exists
/// and accepts writes, precondition, record, tasks, operations, limits, history.
#[derive(Debug, Clone, Copy)]
pub struct ScopeWrite<'a> {
    /// Whether the write creates the scope. If so, the scope must not exist yet.
    pub makes: bool,
    /// The operations on keys, which run in order.
    pub operations: &'a [KvOperation],
    /// The new task list.
    pub tasks: Option<&'a TasksChange>,
    /// The new record.
    pub record: Option<&'a RecordChange>,
    /// The history items to remove, before any items are appended.
    pub removes: Option<Removal<'a>>,
    /// The history items to append, up to 1,000.
    pub history: &'a [HistoryItem],
    /// Whether the scope rejects all later writes.
    pub seals: bool,
    /// The new lifetime of a scope with [`Lifetime::Kept`](super::Lifetime::Kept). `None` leaves the lifetime
    /// unchanged.
    pub ttl: Option<Duration>,
    /// The conditions. The precondition compares the version of the scope.
    pub conditions: Conditions,
    /// Limits and lifetime.
    pub policy: &'a ScopePolicy,
}

impl<'a> ScopeWrite<'a> {
    /// Creates an unconditional write that changes only the version.
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

    /// Returns the write without its idempotency key.
    pub fn without_idempotency(&self) -> Self {
        Self {
            conditions: self.conditions.without_idempotency(),
            ..*self
        }
    }

    /// Returns whether the write only deletes keys and history items. A full store accepts such a write.
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

    /// Returns whether the write only appends items and sets absent keys. Such a write does not change
    /// the version if all items and keys already exist.
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

/// A new task list, and optionally the stamp (version and life) of the list that it replaces.
#[derive(Debug, Clone)]
pub struct TasksChange {
    /// The whole list.
    pub new: TaskList,
    /// The version and life of the list that the change is based on; `None` accepts any list.
    pub expected: Option<Stamp>,
}

/// A new record, and optionally the record that it replaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordChange {
    /// The new data that the creator stores with the scope, up to 64 KiB.
    pub new: Bytes,
    /// The record that the change is based on; `None` accepts any record.
    pub expected: Option<Bytes>,
}

/// The answer to an accepted write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScopeWritten {
    /// Version and life after the write.
    pub stamp: Stamp,
    /// Total size of all values in bytes, after the write.
    pub kv_bytes: u64,
    /// Number of keys after the write.
    pub keys: u32,
    /// One answer per operation.
    pub answers: Vec<KvAnswer>,
    /// One outcome per appended item.
    pub appended: Vec<Appended>,
    /// Number of items removed from the history.
    pub removed: u64,
    /// The items that the write [removed from the end](Removal::Newest), oldest first.
    pub taken: Vec<StoredItem>,
    /// Whether the answer was replayed for the idempotency key.
    pub replayed: bool,
}
