use std::collections::HashSet;
use std::mem;

use super::{History, HistoryItem, ItemId, Removed, StoredItem};
use crate::scope::{Compaction, LATER_ITEMS_MAX, SEGMENTS_MAX, Segment};
use crate::{Fingerprint, Heap, Refusal, heap};

/// The segments of a history, oldest first. Each segment contains the original items of one compaction.
#[derive(Debug, Clone, Default)]
pub(super) struct Segments {
    last: u32,
    /// The last position that the latest compaction replaced.
    last_through: u64,
    /// How many items the latest compaction added.
    last_new: usize,
    stored: Vec<StoredSegment>,
}

#[derive(Debug, Clone)]
struct StoredSegment {
    head: Segment,
    items: History,
}

impl Segments {
    /// Returns an empty list that continues the numbering.
    pub(super) fn cleared(&self) -> Self {
        Self {
            stored: Vec::new(),
            ..*self
        }
    }

    pub(super) fn find(&self, id: &ItemId) -> Option<&(u64, Fingerprint)> {
        self.stored
            .iter()
            .find_map(|segment| segment.items.by_id.get(id))
    }

    pub(super) fn remove(&mut self, id: &ItemId) -> Option<StoredItem> {
        self.stored.iter_mut().find_map(|segment| {
            let (seq, _) = segment.items.by_id.get(id)?;
            let removed = Removed::Positions(vec![*seq]);
            let item = segment.items.remove(removed).pop()?;
            segment.head.count -= 1;
            segment.head.bytes -= item.cost_bytes();
            Some(item)
        })
    }
}

impl Heap for Segments {
    fn heap_bytes(&self) -> u64 {
        let segments = self.stored.iter().map(|segment| {
            let ids = segment.head.summary.iter().map(Heap::heap_bytes);
            heap::array::<ItemId>(segment.head.summary.capacity())
                + ids.sum::<u64>()
                + segment.items.heap_bytes()
        });
        heap::array::<StoredSegment>(self.stored.capacity()) + segments.sum::<u64>()
    }
}

impl History {
    /// Replaces the oldest items atomically. Returns the number of the new segment, and the number of older segments
    /// that were dropped to make room for it.
    pub(crate) fn compact(
        &mut self,
        compaction: &Compaction<'_>,
        now_ms: u64,
    ) -> Result<(u32, u32), Refusal> {
        self.tidy_segments(now_ms);
        let end = self.check_compaction(compaction)?;
        let replaced: Vec<StoredItem> = self.items.drain(..end).collect();
        for item in &replaced {
            self.forget(item);
        }
        let positions = (0..=compaction.through).rev();
        for (item, seq) in compaction.items.iter().rev().zip(positions) {
            let stored = StoredItem {
                seq,
                id: item.id.clone(),
                at_ms: now_ms,
                value: item.value.clone(),
            };
            self.remember(&stored);
            self.items.push_front(stored);
        }
        self.release();
        self.update_summary();
        self.segments.last += 1;
        self.segments.last_through = compaction.through;
        self.segments.last_new = compaction.items.len();
        let dropped = self.keep_segment(compaction, replaced, now_ms);
        self.tidy_segments(now_ms);
        Ok((self.segments.last, dropped))
    }

    fn check_compaction(&self, compaction: &Compaction<'_>) -> Result<usize, Refusal> {
        let end = self.index(compaction.through.saturating_add(1));
        let (count, items) = (end as u64, compaction.items);
        if self.items.len() - end > LATER_ITEMS_MAX {
            return Err(Refusal::TooManyLaterItems {
                limit_items: LATER_ITEMS_MAX as u64,
            });
        }
        let is_beyond = compaction.through >= self.summary.next_seq;
        // detects a repeated compaction that added as many items as it replaced; other repeats have a wrong `count`
        let last = (self.segments.last_through, self.segments.last_new);
        let is_same = (compaction.through, items.len()) == last && items.len() as u64 == count;
        if is_beyond || count != compaction.count || items.len() as u64 > count || is_same {
            return Err(Refusal::PrefixChanged { count });
        }
        let mut ids = HashSet::new();
        for (index, item) in items.iter().enumerate() {
            let is_in_use = self.by_id.contains_key(&item.id);
            if is_in_use || self.segments.find(&item.id).is_some() || !ids.insert(&item.id) {
                return Err(Refusal::ItemIdReused { item: index });
            }
        }
        let later: u64 = self.items.range(end..).map(StoredItem::cost_bytes).sum();
        let attempted_bytes = later + items.iter().map(HistoryItem::cost_bytes).sum::<u64>();
        let limit_bytes = compaction.limit.max_bytes;
        if attempted_bytes > limit_bytes {
            return Err(Refusal::HistoryTooLarge {
                limit_bytes,
                size_bytes: self.summary.bytes,
                attempted_bytes,
            });
        }
        Ok(end)
    }

    /// Stores the replaced items as the newest segment. Returns how many older segments were dropped to make room.
    fn keep_segment(
        &mut self,
        compaction: &Compaction<'_>,
        replaced: Vec<StoredItem>,
        now_ms: u64,
    ) -> u32 {
        let bytes = replaced.iter().map(StoredItem::cost_bytes).sum::<u64>();
        let is_kept = !compaction.keep.is_zero() && bytes <= compaction.limit.max_bytes;
        let expires_ms = now_ms.saturating_add(crate::millis(compaction.keep));
        let stored = &mut self.segments.stored;
        // an older segment expires no later than the new segment if the compaction replaces part of its summary
        stored.retain_mut(|segment| {
            let head = &mut segment.head;
            let is_cut = head.through - (head.summary.len() as u64) < compaction.through;
            if is_cut {
                head.expires_ms = head.expires_ms.min(expires_ms);
            }
            is_kept || !is_cut
        });
        if !is_kept {
            return 0;
        }
        let summary = compaction.items.iter().map(|item| item.id.clone());
        let head = Segment {
            number: self.segments.last,
            first_seq: replaced.first().map_or(1, |first| first.seq),
            through: compaction.through,
            count: replaced.len() as u64,
            bytes,
            compacted_ms: now_ms,
            expires_ms,
            summary: summary.collect(),
        };
        let items = Self::of_items(replaced, compaction.through + 1);
        stored.push(StoredSegment { head, items });
        let mut sum: u64 = stored.iter().map(|segment| segment.head.bytes).sum();
        let mut dropped = 0;
        while stored.len() > SEGMENTS_MAX || sum > compaction.limit.max_bytes {
            sum -= stored.remove(0).head.bytes;
            dropped += 1;
        }
        dropped
    }

    /// Removes segments that have expired or are empty, and segments whose summary items exist neither in the history
    /// nor in a newer segment.
    pub(crate) fn tidy_segments(&mut self, now_ms: u64) {
        if self.segments.stored.is_empty() {
            return;
        }
        let mut newer: Vec<StoredSegment> = Vec::new();
        for segment in mem::take(&mut self.segments.stored).into_iter().rev() {
            let has = |id: &ItemId| {
                self.by_id.contains_key(id)
                    || newer.iter().any(|newer| newer.items.by_id.contains_key(id))
            };
            let head = &segment.head;
            if head.expires_ms > now_ms && head.count > 0 && head.summary.iter().any(has) {
                newer.push(segment);
            }
        }
        newer.reverse();
        self.segments.stored = newer;
    }

    /// Returns the stored segments, newest first.
    #[must_use]
    pub fn segments(&self, now_ms: u64) -> Vec<Segment> {
        let newest_first = self.unexpired_segments(now_ms).rev();
        newest_first.map(|segment| segment.head.clone()).collect()
    }

    /// Returns up to `limit` items of segment `number` after position `from`. If `backwards`, returns items before
    /// `from` instead. Returns `None` if the segment does not exist.
    #[must_use]
    pub fn read_segment(
        &self,
        number: u32,
        (from, backwards): (u64, bool),
        limit: usize,
        now_ms: u64,
    ) -> Option<Vec<StoredItem>> {
        let mut segments = self.unexpired_segments(now_ms);
        let segment = segments.find(|segment| segment.head.number == number)?;
        Some(segment.items.read(from, backwards, limit))
    }

    /// Like [`read`](Self::read), but replaces each summary with the original items if they are still stored.
    #[must_use]
    pub fn read_originals(
        &self,
        (from, backwards): (u64, bool),
        limit: usize,
        now_ms: u64,
    ) -> Vec<StoredItem> {
        let summaries = self.unexpired_segments(now_ms);
        let summaries: HashSet<&ItemId> = summaries
            .flat_map(|segment| &segment.head.summary)
            .collect();
        let parts = self
            .unexpired_segments(now_ms)
            .map(|segment| &segment.items);
        let parts: Vec<&Self> = parts.chain([self]).collect();
        let shown = |item: &&StoredItem| !summaries.contains(&item.id);
        match backwards {
            false => {
                let after = |part: &'_ Self| part.index(from.saturating_add(1));
                let items = parts
                    .into_iter()
                    .flat_map(|part| part.items.range(after(part)..));
                items.filter(shown).take(limit).cloned().collect()
            }
            true => {
                let before = |part: &'_ Self| part.index(from);
                let parts = parts.into_iter().rev();
                let items = parts.flat_map(|part| part.items.range(..before(part)).rev());
                items.filter(shown).take(limit).cloned().collect()
            }
        }
    }

    fn unexpired_segments(&self, now_ms: u64) -> impl DoubleEndedIterator<Item = &StoredSegment> {
        let segments = self.segments.stored.iter();
        segments.filter(move |segment| segment.head.expires_ms > now_ms)
    }
}
