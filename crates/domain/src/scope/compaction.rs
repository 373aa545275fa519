//! Compactions: fewer items take the place of the oldest ones, which are kept for a while in a segment.

use std::time::Duration;

use super::{HistoryItem, HistoryLimit, ItemId};
use crate::{Access, IdempotencyKey, Stamp, TurnToken};

/// How long originals are kept where a compaction does not say so: a week.
pub const ORIGINALS_KEPT: Duration = Duration::from_secs(604_800);
/// Items that may follow those that a compaction replaces, as it writes each of them again.
pub const LATER_ITEMS_MAX: usize = 500;
/// Segments that are kept at most.
pub const SEGMENTS_MAX: usize = 16;

/// A replacement of the oldest items of a thread's history by fewer ones.
#[derive(Debug, Clone, Copy)]
pub struct Compaction<'a> {
    /// The last place whose item it replaces.
    pub through: u64,
    /// The number of items up to that place.
    pub count: u64,
    /// The new items, at least one and at most `count`. They take the last places up to `through`.
    pub items: &'a [HistoryItem],
    /// How long the originals are kept in a segment, to the millisecond. Zero: they are not.
    pub keep: Duration,
    /// Bytes of the history, and of all its segments, at most.
    pub limit: HistoryLimit,
    /// The threads that the caller may use.
    pub access: Access,
    /// The turn of the thread that it belongs to.
    pub turn: Option<TurnToken>,
    /// The identity of a repeat.
    pub idempotency: Option<IdempotencyKey>,
}

/// The outcome of a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compacted {
    /// Version and life of the scope after it.
    pub stamp: Stamp,
    /// The number of the segment of the originals, one more with each compaction.
    pub segment: u32,
    /// How many older segments made room for it.
    pub dropped_segments: u32,
    /// Whether this is the answer to an earlier one with the same idempotency key.
    pub replayed: bool,
}

/// Items that a compaction replaced, as they were.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Its number.
    pub number: u32,
    /// The place of its first item.
    pub first_seq: u64,
    /// The last place that was replaced.
    pub through: u64,
    /// The number of its items.
    pub count: u64,
    /// Their bytes, as [`HistoryLimit`] counts them.
    pub bytes: u64,
    /// When they were replaced, in milliseconds of the Unix epoch.
    pub compacted_ms: u64,
    /// When they are gone.
    pub expires_ms: u64,
    /// The ids of the items that replaced them.
    pub summary: Vec<ItemId>,
}
