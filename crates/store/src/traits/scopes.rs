//! Scopes.

use std::fmt;

use async_trait::async_trait;
use bytes::Bytes;

use crate::{Answered, Reader, StoreError, WriteError};
use threadkeep_domain::scope::{
    Compacted, Compaction, HistorySummary, ItemId, ScopeId, ScopeKey, ScopeValue, ScopeWrite,
    ScopeWritten, Segment, StoredItem, TaskList,
};
use threadkeep_domain::{Access, IdempotencyKey, Life, Refusal, Stamp, ThreadId, TurnToken};

/// Which parts of a scope are read.
#[derive(Debug, Clone, Copy)]
pub struct ScopeParts<'a> {
    /// The threads that the caller may use.
    pub access: Access,
    /// The values of these keys.
    pub values: &'a [ScopeKey],
    /// All keys.
    pub keys: bool,
    /// The task list.
    pub tasks: bool,
    /// The record.
    pub record: bool,
    /// Whether this is a use of the scope, which moves its end.
    pub touch: bool,
}

/// A scope as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScopeView {
    /// Version and life.
    pub stamp: Stamp,
    /// Bytes of all values.
    pub kv_bytes: u64,
    /// Number of keys.
    pub key_count: u32,
    /// When its first write came, in milliseconds of the Unix epoch.
    pub created_ms: u64,
    /// When its last write came.
    pub updated_ms: u64,
    /// The time of its end, unless it is used before; none if it ends with its thread, or not by itself.
    pub expires_ms: Option<u64>,
    /// Whether it rejects writes.
    pub is_sealed: bool,
    /// The values that were asked for, in that order; none for a key that is absent.
    pub values: Vec<Option<ScopeValue>>,
    /// The keys, sorted by their bytes, if they were asked for.
    pub keys: Vec<ScopeKey>,
    /// The task list, if it was asked for.
    pub tasks: TaskList,
    /// The stamp that a change of the task list is based on: the life, and the version of the list's last write, 0
    /// before the first.
    pub tasks_stamp: Stamp,
    /// The record, if it was asked for and there is one.
    pub record: Option<Bytes>,
    /// How much history there is.
    pub history: HistorySummary,
    /// Whether it may have segments.
    pub has_segments: bool,
}

/// A part of a history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryPage {
    /// The items, in the order in which they were asked for.
    pub items: Vec<StoredItem>,
    /// How much there is.
    pub summary: HistorySummary,
    /// The segments that summaries among the items stand for; none for a page of originals.
    pub segments: Vec<Segment>,
}

/// The place of an item in a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ItemPlace {
    /// The place.
    pub seq: u64,
    /// Whether the item is gone from it.
    pub is_removed: bool,
}

impl HistoryPage {
    /// That of a scope without a history.
    pub const EMPTY: Self = Self {
        items: Vec::new(),
        summary: HistorySummary::EMPTY,
        segments: Vec::new(),
    };
}

impl ScopeParts<'_> {
    /// None of them.
    pub const NONE: Self = Self {
        access: Access::All,
        values: &[],
        keys: false,
        tasks: false,
        record: false,
        touch: true,
    };
    /// The record alone.
    pub const RECORD: Self = Self {
        record: true,
        ..Self::NONE
    };
}

impl Default for ScopeParts<'_> {
    fn default() -> Self {
        Self::NONE
    }
}

impl ScopeView {
    /// A scope that does not exist.
    #[must_use]
    pub fn absent(parts: &ScopeParts<'_>) -> Self {
        Self {
            stamp: Stamp::default(),
            kv_bytes: 0,
            key_count: 0,
            created_ms: 0,
            updated_ms: 0,
            expires_ms: None,
            is_sealed: false,
            values: vec![None; parts.values.len()],
            keys: Vec::new(),
            tasks: TaskList::default(),
            tasks_stamp: Stamp::default(),
            record: None,
            history: HistorySummary::EMPTY,
            has_segments: false,
        }
    }
}

/// From where a history is read, and which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HistoryFrom {
    /// After a place, the oldest first; 0: from the beginning.
    After(u64),
    /// Before a place, the newest first; [`u64::MAX`]: from the end.
    Before(u64),
}

/// Items as they were before compactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Originals {
    /// The whole history, with originals in the place of summaries as far as they are kept.
    All,
    /// Those of the segment of that number.
    OfSegment(u32),
}

/// The end of a scope, and on what conditions.
#[derive(Debug, Clone, Copy)]
pub struct ScopeEnd {
    /// The threads that the caller may use.
    pub access: Access,
    /// The version that the scope must have.
    pub expected: Option<u64>,
    /// The turn of the scope's thread that it belongs to.
    pub turn: Option<TurnToken>,
    /// The identity of a repeat.
    pub idempotency: Option<IdempotencyKey>,
}

impl ScopeEnd {
    /// An end without other conditions.
    #[must_use]
    pub fn new(access: Access) -> Self {
        Self {
            access,
            expected: None,
            turn: None,
            idempotency: None,
        }
    }
}

/// Scopes: keys, tasks, a history and a record each.
///
/// Reading or writing a scope with a lifetime extends it in the same step, unless the reader does not touch it. Using a
/// thread's scope is a use of the thread. From the millisecond at which it expires, by the store's own clock, a scope or a key reads as never
/// written.
///
/// The scope of a thread has the life of the thread and ends in the same step: its content is then archived next to
/// the thread's final state, and restored with it.
///
/// Only histories of threads are compacted. Stores without threads need not implement the segment methods.
///
/// Changes of keys or tasks are logged in the same step, while all threads are watched.
#[async_trait]
pub trait Scopes: fmt::Debug + Send + Sync {
    /// Some parts of a scope, at one version. None: there is no such scope.
    ///
    /// # Errors
    /// [`WriteError`]: the owner refuses the caller, or the store fails.
    async fn read_scope(
        &self,
        scope: &ScopeId,
        parts: &ScopeParts<'_>,
    ) -> Result<Option<ScopeView>, WriteError>;

    /// Up to `limit` items of a scope's history; none if the scope does not exist.
    ///
    /// # Errors
    /// [`WriteError`]: the owner refuses the caller, or the store fails.
    async fn read_history(
        &self,
        scope: &ScopeId,
        reader: Reader,
        from: HistoryFrom,
        limit: usize,
    ) -> Result<Option<HistoryPage>, WriteError>;

    /// The segments of a scope's history that are kept, the newest first; none if the scope does not exist.
    ///
    /// # Errors
    /// [`WriteError`]: the owner refuses the caller, or the store fails.
    async fn read_segments(
        &self,
        _: &ScopeId,
        _: Reader,
    ) -> Result<Option<Vec<Segment>>, WriteError> {
        Ok(None)
    }

    /// Up to `limit` items of a scope's history as they were before compactions, of one moment; none if there is no such scope or
    /// segment.
    ///
    /// # Errors
    /// [`WriteError`]: the owner refuses the caller, or the store fails.
    async fn read_originals(
        &self,
        _: &ScopeId,
        _: Reader,
        _: Originals,
        _: HistoryFrom,
        _: usize,
    ) -> Result<Option<HistoryPage>, WriteError> {
        Ok(None)
    }

    /// Finds an item of a scope's history by its id, without a scan. The store knows the places of the last 256 items
    /// that were removed or dropped, except by a clear, for as long as the scope lives under its id or is moved to
    /// another.
    ///
    /// # Errors
    /// [`WriteError`]: the owner refuses the caller, or the store fails.
    async fn find_item(
        &self,
        scope: &ScopeId,
        access: Access,
        id: &ItemId,
    ) -> Result<Option<ItemPlace>, WriteError>;

    /// Performs a write completely or not at all. Creates the scope unless its kind must be created first. An accepted
    /// write is in the store when this returns. A write that only appends items that exist already changes nothing,
    /// not even the version, but is a use. A rejected or repeated write is not a use.
    ///
    /// # Errors
    /// [`WriteError::Refused`]: nothing has changed; [`NoThread`](threadkeep_domain::Refusal::NoThread) for the scope of a thread that must be created first. [`WriteError::Store`]: see
    /// [`StoreError::is_ambiguous`].
    async fn write_scope(
        &self,
        scope: &ScopeId,
        write: &ScopeWrite<'_>,
    ) -> Result<ScopeWritten, WriteError>;

    /// Compacts the history of a thread, in one step with the check of its conditions. Nothing that is appended meanwhile is lost.
    ///
    /// # Errors
    /// [`WriteError::Refused`]: nothing has changed; [`NoThread`](threadkeep_domain::Refusal::NoThread) if there is no thread, or it must get
    /// its owner first. [`WriteError::Store`]: see [`StoreError::is_ambiguous`].
    async fn compact_history(
        &self,
        _: &ThreadId,
        _: &Compaction<'_>,
    ) -> Result<Compacted, WriteError> {
        Err(Refusal::PrefixChanged { count: 0 }.into())
    }

    /// Ends a scope with all that it holds, in one step with the check of its conditions, of which that of the
    /// idempotency key comes first. Whether there was one. That of a thread is emptied, and the thread goes on.
    ///
    /// # Errors
    /// [`WriteError::Refused`]: nothing has changed; or [`WriteError::Store`].
    async fn end_scope(
        &self,
        scope: &ScopeId,
        end: &ScopeEnd,
    ) -> Result<Answered<bool>, WriteError>;

    /// Items of the history of an archived life; none if the archive does not exist.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn read_final_history(
        &self,
        id: &ThreadId,
        life: Option<Life>,
        from: HistoryFrom,
        limit: usize,
    ) -> Result<Option<HistoryPage>, StoreError>;
}
