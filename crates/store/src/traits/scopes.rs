use std::fmt;

use async_trait::async_trait;
use bytes::Bytes;

use crate::{Answered, Reader, StoreError, WriteError};
use threadkeep_domain::scope::{
    Compacted, Compaction, HistorySummary, ItemId, ScopeId, ScopeKey, ScopeValue, ScopeWrite,
    ScopeWritten, Segment, StoredItem, TaskList,
};
use threadkeep_domain::{Access, IdempotencyKey, Life, Refusal, Stamp, ThreadId, TurnToken};

/// Selects the parts of a scope to read.
#[derive(Debug, Clone, Copy)]
pub struct ScopeParts<'a> {
    /// The caller's access to threads.
    pub access: Access,
    /// The keys whose values to read.
    pub values: &'a [ScopeKey],
    /// True to read all keys.
    pub keys: bool,
    /// True to read the task list.
    pub tasks: bool,
    /// True to read the record.
    pub record: bool,
    /// True if the read extends the lifetime of the scope.
    pub touch: bool,
}

/// The requested parts of a scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScopeView {
    /// Version and life.
    pub stamp: Stamp,
    /// Total size of all values in bytes.
    pub kv_bytes: u64,
    /// Number of keys.
    pub key_count: u32,
    /// Time of the first write, in Unix milliseconds.
    pub created_ms: u64,
    /// Time of the last write, in Unix milliseconds.
    pub updated_ms: u64,
    /// Time at which the scope expires unless it is used before then, in Unix milliseconds. `None` if the scope never
    /// expires, or ends only with its thread.
    pub expires_ms: Option<u64>,
    /// True if the scope rejects writes.
    pub is_sealed: bool,
    /// The requested values, in the order requested; `None` for an absent key.
    pub values: Vec<Option<ScopeValue>>,
    /// The keys in bytewise order, if requested.
    pub keys: Vec<ScopeKey>,
    /// The task list, if requested.
    pub tasks: TaskList,
    /// The life of the scope, and the version of the last write to the task list, or 0 before the first write.
    /// Conditional changes to the task list are checked against this stamp.
    pub tasks_stamp: Stamp,
    /// The record, if requested and present.
    pub record: Option<Bytes>,
    /// The extent of the history.
    pub history: HistorySummary,
    /// True if the history may have segments.
    pub has_segments: bool,
}

/// One page of a history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryPage {
    /// The items, in the direction of the read.
    pub items: Vec<StoredItem>,
    /// The extent of the whole history.
    pub summary: HistorySummary,
    /// All stored segments (descriptions of compacted items) of the history; empty if the page contains original items.
    pub segments: Vec<Segment>,
}

/// The position of an item in a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ItemPosition {
    /// The sequence number.
    pub seq: u64,
    /// True if the item has been removed.
    pub is_removed: bool,
}

impl HistoryPage {
    /// The page of a scope that has no history.
    pub const EMPTY: Self = Self {
        items: Vec::new(),
        summary: HistorySummary::EMPTY,
        segments: Vec::new(),
    };
}

impl ScopeParts<'_> {
    /// Reads no optional part, and extends the scope's lifetime.
    pub const NONE: Self = Self {
        access: Access::All,
        values: &[],
        keys: false,
        tasks: false,
        record: false,
        touch: true,
    };
    /// Reads the record only.
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
    /// Describes a scope that does not exist.
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

/// The start and direction of a history read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HistoryFrom {
    /// After this sequence number, oldest first; 0 starts at the beginning.
    After(u64),
    /// Before this sequence number, newest first; [`u64::MAX`] starts at the end.
    Before(u64),
}

/// Selects items as they were before compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Originals {
    /// The whole history. Each summary is replaced by the items that it summarizes, if the store still has them.
    All,
    /// The originals of the segment with this number.
    OfSegment(u32),
}

/// Conditions for ending a scope.
#[derive(Debug, Clone, Copy)]
pub struct ScopeEnd {
    /// The caller's access to threads.
    pub access: Access,
    /// The version that the scope must have.
    pub expected: Option<u64>,
    /// The turn under which the caller works.
    pub turn: Option<TurnToken>,
    /// The idempotency key.
    pub idempotency: Option<IdempotencyKey>,
}

impl ScopeEnd {
    /// Requires `access` only.
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

/// Stores scopes. A scope has keys, a task list, a history and a record.
///
/// Reading or writing a scope that can expire also extends its lifetime, in the same atomic step, unless
/// [`Reader::touch`] is false. Once a scope or key has expired by the store's clock, it reads as if it had never been
/// written.
///
/// The scope of a thread has the same [`Life`] as the thread. It is ended, archived and restored together with the
/// thread. Using it also extends the lifetime of the thread. Only the histories of threads can be compacted, so a store
/// without threads need not implement `compact_history`, `read_segments` and `read_originals`.
///
/// While a consumer watches all threads, each change to keys or tasks is logged in the same step as the write.
#[async_trait]
pub trait Scopes: fmt::Debug + Send + Sync {
    /// Reads parts of a scope at one version. Returns `None` if the scope does not exist.
    async fn read_scope(
        &self,
        scope: &ScopeId,
        parts: &ScopeParts<'_>,
    ) -> Result<Option<ScopeView>, WriteError>;

    /// Returns up to `limit` items of a history, or `None` if the scope does not exist.
    async fn read_history(
        &self,
        scope: &ScopeId,
        reader: Reader,
        from: HistoryFrom,
        limit: usize,
    ) -> Result<Option<HistoryPage>, WriteError>;

    /// Returns the segments of a history, newest first, or `None` if the scope does not exist. A segment describes the
    /// items that a compaction replaced.
    async fn read_segments(
        &self,
        _: &ScopeId,
        _: Reader,
    ) -> Result<Option<Vec<Segment>>, WriteError> {
        Ok(None)
    }

    /// Returns items as they were before compaction. All items come from the same snapshot of the scope. Returns `None`
    /// if the scope or the segment does not exist.
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

    /// Finds an item by its id without scanning the history.
    ///
    /// Also finds the last 256 items that were removed or dropped, except those removed by a clear. These items can be
    /// found until the scope ends, even if the thread moves to a new id.
    async fn find_item(
        &self,
        scope: &ScopeId,
        access: Access,
        id: &ItemId,
    ) -> Result<Option<ItemPosition>, WriteError>;

    /// Applies a write atomically, and creates the scope unless its kind requires explicit creation. Returns only once
    /// an accepted write has been stored.
    ///
    /// A write that appends only items that already exist extends the lifetime of the scope, but changes nothing else,
    /// not even the version. A rejected or repeated write does not extend the lifetime. Refused with
    /// [`NoThread`](threadkeep_domain::Refusal::NoThread) if the thread must be created first.
    async fn write_scope(
        &self,
        scope: &ScopeId,
        write: &ScopeWrite<'_>,
    ) -> Result<ScopeWritten, WriteError>;

    /// Checks the conditions and compacts the history of a thread, atomically. Keeps items that are appended meanwhile.
    ///
    /// Refused with [`NoThread`](threadkeep_domain::Refusal::NoThread) if the thread does not exist, or if the caller
    /// has an owner but the thread does not.
    async fn compact_history(
        &self,
        _: &ThreadId,
        _: &Compaction<'_>,
    ) -> Result<Compacted, WriteError> {
        Err(Refusal::PrefixChanged { count: 0 }.into())
    }

    /// Checks the idempotency key and the other conditions, ends a scope and deletes its contents, atomically. The
    /// scope of a thread is only emptied; the thread continues to exist. Returns whether the scope existed.
    async fn end_scope(
        &self,
        scope: &ScopeId,
        end: &ScopeEnd,
    ) -> Result<Answered<bool>, WriteError>;

    /// Returns items from the archived history of `life`, or of the thread's last life by default. Returns `None` if
    /// there is no archive.
    async fn read_final_history(
        &self,
        id: &ThreadId,
        life: Option<Life>,
        from: HistoryFrom,
        limit: usize,
    ) -> Result<Option<HistoryPage>, StoreError>;
}
