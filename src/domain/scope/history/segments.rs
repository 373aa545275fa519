//! Segments of a history in memory: the originals of its compactions.

use std::collections::HashSet;
use std::mem;

use super::{History, HistoryItem, ItemId, Kept, Removed};
use crate::domain::heap::{self, Heap};
use crate::domain::scope::compaction::{Compaction, SEGMENTS_MAX, Segment};
use crate::domain::{Fingerprint, Refusal};

/// The segments of a history, the oldest first.
#[derive(Debug, Clone, Default)]
pub(super) struct Segments {
    /// The number of the last one that there was.
    last: u32,
    kept: Vec<KeptSegment>,
}

#[derive(Debug, Clone)]
struct KeptSegment {
    head: Segment,
    items: History,
}

impl Segments {
    /// No segment, and the numbers go on.
    pub(super) fn cleared(&self) -> Self {
        Self {
            last: self.last,
            kept: Vec::new(),
        }
    }

    /// The place and the digest of an original.
    pub(super) fn known(&self, id: &ItemId) -> Option<&(u64, Fingerprint)> {
        self.kept.iter().find_map(|kept| kept.items.known.get(id))
    }

    /// Removes an original.
    pub(super) fn remove(&mut self, id: &ItemId) -> Option<Kept> {
        self.kept.iter_mut().find_map(|kept| {
            let (seq, _) = kept.items.known.get(id)?;
            let removed = Removed::Places(vec![*seq]);
            let gone = kept.items.remove(removed).pop()?;
            kept.head.count -= 1;
            kept.head.bytes -= gone.cost_bytes();
            Some(gone)
        })
    }
}

impl Heap for Segments {
    fn heap_bytes(&self) -> u64 {
        let kept = self.kept.iter().map(|kept| {
            let ids = kept.head.summary.iter().map(Heap::heap_bytes);
            heap::array::<ItemId>(kept.head.summary.capacity())
                + ids.sum::<u64>()
                + kept.items.heap_bytes()
        });
        heap::array::<KeptSegment>(self.kept.capacity()) + kept.sum::<u64>()
    }
}

impl History {
    /// Replaces the oldest items, or changes nothing. Returns the number of the segment, and how many made room for it.
    ///
    /// # Errors
    /// [`Refusal::PrefixChanged`], [`Refusal::ItemIdReused`] or [`Refusal::HistoryTooLarge`].
    pub(in crate::domain) fn compact(
        &mut self,
        compaction: &Compaction<'_>,
        now_ms: u64,
    ) -> Result<(u32, u32), Refusal> {
        self.tidy_segments(now_ms);
        let end = self.check_compaction(compaction)?;
        let replaced: Vec<Kept> = self.items.drain(..end).collect();
        for item in &replaced {
            self.forget(item);
        }
        for (item, seq) in compaction
            .items
            .iter()
            .rev()
            .zip((0..=compaction.through).rev())
        {
            let kept = Kept {
                seq,
                id: item.id.clone(),
                at_ms: now_ms,
                value: item.value.clone(),
            };
            self.remember(&kept);
            self.items.push_front(kept);
        }
        self.count();
        self.segments.last += 1;
        let dropped = self.keep_segment(compaction, replaced, now_ms);
        self.tidy_segments(now_ms);
        Ok((self.segments.last, dropped))
    }

    /// The index behind the last item that a compaction replaces, unless something refuses it.
    fn check_compaction(&self, compaction: &Compaction<'_>) -> Result<usize, Refusal> {
        let end = self.index(compaction.through.saturating_add(1));
        let (count, items) = (end as u64, compaction.items);
        let is_beyond = compaction.through >= self.summary.next_seq;
        if is_beyond || count != compaction.count || items.len() as u64 > count {
            return Err(Refusal::PrefixChanged { count });
        }
        let mut ids = HashSet::new();
        for (index, item) in items.iter().enumerate() {
            let is_known = self.known.contains_key(&item.id);
            if is_known || self.segments.known(&item.id).is_some() || !ids.insert(&item.id) {
                return Err(Refusal::ItemIdReused { item: index });
            }
        }
        let later: u64 = self.items.range(end..).map(Kept::cost_bytes).sum();
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

    /// Keeps replaced items as the newest segment. Returns how many older ones made room.
    fn keep_segment(
        &mut self,
        compaction: &Compaction<'_>,
        replaced: Vec<Kept>,
        now_ms: u64,
    ) -> u32 {
        let bytes = replaced.iter().map(Kept::cost_bytes).sum::<u64>();
        if compaction.keep.is_zero() || bytes > compaction.limit.max_bytes {
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
            expires_ms: now_ms.saturating_add(compaction.keep.as_millis() as u64),
            summary: summary.collect(),
        };
        let items = Self::of_items(replaced, compaction.through + 1);
        let kept = &mut self.segments.kept;
        kept.push(KeptSegment { head, items });
        let mut sum: u64 = kept.iter().map(|kept| kept.head.bytes).sum();
        let mut dropped = 0;
        while kept.len() > SEGMENTS_MAX || sum > compaction.limit.max_bytes {
            sum -= kept.remove(0).head.bytes;
            dropped += 1;
        }
        dropped
    }

    /// Forgets segments whose time has passed, or whose summary is gone: it may be among the originals of a newer one.
    pub(in crate::domain) fn tidy_segments(&mut self, now_ms: u64) {
        if self.segments.kept.is_empty() {
            return;
        }
        let mut newer: Vec<KeptSegment> = Vec::new();
        for kept in mem::take(&mut self.segments.kept).into_iter().rev() {
            let has = |id: &ItemId| {
                self.known.contains_key(id)
                    || newer.iter().any(|newer| newer.items.known.contains_key(id))
            };
            let head = &kept.head;
            if head.expires_ms > now_ms && head.count > 0 && head.summary.iter().any(has) {
                newer.push(kept);
            }
        }
        newer.reverse();
        self.segments.kept = newer;
    }

    /// The segments that are kept, the newest first.
    #[must_use]
    pub fn segments(&self, now_ms: u64) -> Vec<Segment> {
        let kept = self.kept_segments(now_ms).rev();
        kept.map(|kept| kept.head.clone()).collect()
    }

    /// Up to `limit` items of a segment after a position, or before it, nearest first. None: there is no such segment.
    #[must_use]
    pub fn read_segment(
        &self,
        number: u32,
        (from, backwards): (u64, bool),
        limit: usize,
        now_ms: u64,
    ) -> Option<Vec<Kept>> {
        let mut kept = self.kept_segments(now_ms);
        let kept = kept.find(|kept| kept.head.number == number)?;
        Some(kept.items.read(from, backwards, limit))
    }

    /// As [`read`](Self::read), with the originals in the place of summaries, as far as they are kept.
    #[must_use]
    pub fn read_originals(
        &self,
        (from, backwards): (u64, bool),
        limit: usize,
        now_ms: u64,
    ) -> Vec<Kept> {
        let summaries = self.kept_segments(now_ms);
        let summaries: HashSet<&ItemId> = summaries.flat_map(|kept| &kept.head.summary).collect();
        let kept = self
            .kept_segments(now_ms)
            .flat_map(|kept| &kept.items.items);
        let all = kept.chain(&self.items);
        let all = all.filter(|item| !summaries.contains(&item.id));
        match backwards {
            false => all
                .filter(|item| item.seq > from)
                .take(limit)
                .cloned()
                .collect(),
            true => all
                .rev()
                .filter(|item| item.seq < from)
                .take(limit)
                .cloned()
                .collect(),
        }
    }

    fn kept_segments(&self, now_ms: u64) -> impl DoubleEndedIterator<Item = &KeptSegment> {
        let kept = self.segments.kept.iter();
        kept.filter(move |kept| kept.head.expires_ms > now_ms)
    }
}
