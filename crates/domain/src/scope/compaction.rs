use std::time::Duration;

use super::{HistoryItem, HistoryLimit, ItemId};
use crate::{Access, IdempotencyKey, Stamp, TurnToken};

/// How long a segment keeps the original items of a compaction by default: one week.
pub const DEFAULT_ORIGINALS_TTL: Duration = Duration::from_secs(604_800);
/// Maximum number of items that may follow the compacted items, because a compaction rewrites each following item.
pub const LATER_ITEMS_MAX: usize = 500;
/// Maximum number of segments that a history keeps.
pub const SEGMENTS_MAX: usize = 16;

/// Replaces the oldest items of a thread's history with a summary of one or more items. A segment keeps the original
/// items for the time in `keep`.
#[derive(Debug, Clone, Copy)]
pub struct Compaction<'a> {
    /// The position of the last item to replace.
    pub through: u64,
    /// The expected number of items up to `through`.
    pub count: u64,
    /// The 1 to `count` new items. They take the last of the replaced positions, so that the last new item is at
    /// `through`.
    pub items: &'a [HistoryItem],
    /// How long a segment keeps the original items, in whole milliseconds. Zero discards the original items.
    pub keep: Duration,
    /// The size limit for the history. A separate limit of the same size applies to the total size of its segments.
    pub limit: HistoryLimit,
    /// The caller's access to threads.
    pub access: Access,
    /// The turn under which the caller works.
    pub turn: Option<TurnToken>,
    /// The idempotency key.
    pub idempotency: Option<IdempotencyKey>,
}

/// The outcome of a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compacted {
    /// Version and life after the compaction.
    pub stamp: Stamp,
    /// The number of the new segment, incremented with each compaction.
    pub segment: u32,
    /// Number of older segments that were dropped to make room for the new segment.
    pub dropped_segments: u32,
    /// Whether the answer was replayed for the idempotency key.
    pub replayed: bool,
}

/// Describes the original items that a compaction replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// The number of the segment.
    pub number: u32,
    /// The position of the first item.
    pub first_seq: u64,
    /// The last position that was replaced.
    pub through: u64,
    /// Number of items.
    pub count: u64,
    /// Size of the items in bytes, as [`HistoryLimit`] counts them.
    pub bytes: u64,
    /// When the items were replaced, in Unix milliseconds.
    pub compacted_ms: u64,
    /// When the segment expires, in Unix milliseconds.
    pub expires_ms: u64,
    /// The ids of the new items that replaced the original items.
    pub summary: Vec<ItemId>,
}
