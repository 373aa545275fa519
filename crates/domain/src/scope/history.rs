mod segments;

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::mem;
use std::str::FromStr;

use super::ScopeError;
use crate::{Fingerprint, Heap, IdempotencyKey, Json, Refusal, heap};
use segments::Segments;

const ID_MAX_BYTES: usize = 128;
/// Fixed cost of an item in bytes, in addition to its id and value.
pub(crate) const ITEM_BYTES: u64 = 64;
/// Maximum total size in bytes of the items that one write returns. A single item may be larger.
pub(crate) const RETURNED_MAX_BYTES: u64 = 1_048_576;

/// Maximum number of removed items whose positions are kept.
const REMOVED_IDS_MAX: usize = 256;

/// The id of an item: 1 to 128 visible ASCII characters. Appending the same id and value again has no effect.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ItemId(Box<str>);

/// An item to append.
#[derive(Debug, Clone)]
pub struct HistoryItem {
    /// The id. Appending a different value with the same id is rejected.
    pub id: ItemId,
    /// Any JSON value.
    pub value: Json,
}

/// A stored item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredItem {
    /// The position, starting at 1. Positions are never reused, even after a removal.
    pub seq: u64,
    /// The client's id.
    pub id: ItemId,
    /// When the item was added, in Unix milliseconds according to the store's clock.
    pub at_ms: u64,
    /// The value.
    pub value: Json,
}

/// The outcome of appending an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// The position of the item.
    pub seq: u64,
    /// Whether the item already existed.
    pub repeated: bool,
}

/// The items that a write removes from a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal<'a> {
    /// Removes every item.
    All,
    /// Removes the item with this id, if any, even from a segment, which keeps the original items of a compaction.
    Item(&'a ItemId),
    /// Removes and returns the newest items, up to this number and up to 1 MiB in total. A single item may be larger.
    Newest(usize),
}

#[derive(Debug)]
pub(crate) enum Removed {
    All,
    Positions(Vec<u64>),
    Original(ItemId),
}

/// The limits of a history. Each item counts as 64 bytes plus the sizes of its id and value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryLimit {
    /// Maximum total size of all items in bytes.
    pub max_bytes: u64,
    /// Whether appends drop the oldest items to make room. If not, appends that exceed the limit are rejected.
    pub drops_oldest: bool,
}

/// The extent of a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistorySummary {
    /// The position of the oldest item.
    pub first_seq: u64,
    /// The position of the next item.
    pub next_seq: u64,
    /// Number of removed items between `first_seq` and `next_seq`.
    pub removed: u64,
    /// Total size of all items in bytes, as [`HistoryLimit`] counts them.
    pub bytes: u64,
}

/// An append-only list whose items can be removed and compacted.
#[derive(Debug, Clone)]
pub struct History {
    items: VecDeque<StoredItem>,
    /// The position of each item, and the digest of its value.
    by_id: HashMap<ItemId, (u64, Fingerprint)>,
    summary: HistorySummary,
    /// Id digests and positions of recently removed or dropped items, newest last. Does not contain items that were
    /// removed when the whole history was cleared.
    removed_ids: VecDeque<(Fingerprint, u64)>,
    segments: Segments,
    heap_bytes: u64,
}

impl ItemId {
    /// Generates an item id. With an idempotency key, the id depends only on the key and `index`, so that a retry
    /// generates the same id. Without a key, the id is random.
    #[doc(hidden)]
    #[must_use]
    pub fn generate(request: Option<IdempotencyKey>, index: usize) -> Self {
        let digits = match request {
            Some(IdempotencyKey { digest, request }) => {
                let index = (index as u64).to_be_bytes();
                Fingerprint::of(&[&digest.0, &request.0, &index]).0
            }
            None => rand::random(),
        };
        Self(format!("item_{}", hex::encode(digits)).into())
    }

    fn digest(&self) -> Fingerprint {
        Fingerprint::of(&[self.0.as_bytes()])
    }

    /// Returns the id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ItemId {
    type Err = ScopeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_visible = text.bytes().all(|byte| byte.is_ascii_graphic());
        if text.is_empty() || text.len() > ID_MAX_BYTES || !is_visible {
            return Err(ScopeError::ItemId);
        }
        Ok(Self(text.into()))
    }
}

impl fmt::Display for ItemId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl HistoryItem {
    #[doc(hidden)]
    #[must_use]
    pub fn cost_bytes(&self) -> u64 {
        cost_bytes(&self.id, &self.value)
    }

    #[doc(hidden)]
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&[self.value.as_str().as_bytes()])
    }
}

impl StoredItem {
    #[doc(hidden)]
    pub fn cost_bytes(&self) -> u64 {
        cost_bytes(&self.id, &self.value)
    }

    #[doc(hidden)]
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&[self.value.as_str().as_bytes()])
    }
}

impl Removed {
    fn has(&self, seq: u64) -> bool {
        match self {
            Self::All => true,
            Self::Positions(positions) => positions.binary_search(&seq).is_ok(),
            Self::Original(_) => false,
        }
    }

    fn keeps_id(&self, id: &ItemId) -> bool {
        !matches!(self, Self::All) && !matches!(self, Self::Original(removed) if removed == id)
    }
}

fn cost_bytes(id: &ItemId, value: &Json) -> u64 {
    (id.0.len() + value.as_str().len()) as u64 + ITEM_BYTES
}

impl HistorySummary {
    /// A history without items.
    pub const EMPTY: Self = Self {
        first_seq: 1,
        next_seq: 1,
        removed: 0,
        bytes: 0,
    };

    /// Returns the number of stored items.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.next_seq - self.first_seq - self.removed
    }

    /// Returns whether no items are stored.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Default for History {
    fn default() -> Self {
        Self {
            items: VecDeque::new(),
            by_id: HashMap::new(),
            summary: HistorySummary::EMPTY,
            removed_ids: VecDeque::new(),
            segments: Segments::default(),
            heap_bytes: 0,
        }
    }
}

impl Heap for History {
    fn heap_bytes(&self) -> u64 {
        heap::array::<StoredItem>(self.items.capacity())
            + heap::table::<(ItemId, (u64, Fingerprint))>(self.by_id.capacity())
            + heap::array::<(Fingerprint, u64)>(self.removed_ids.capacity())
            + self.segments.heap_bytes()
            + self.heap_bytes
    }
}

impl Heap for ItemId {
    fn heap_bytes(&self) -> u64 {
        heap::block(self.0.len())
    }
}

impl Heap for StoredItem {
    fn heap_bytes(&self) -> u64 {
        self.id.heap_bytes() + self.value.heap_bytes()
    }
}

/// Counts the id twice, because `by_id` holds a copy.
fn held_bytes(item: &StoredItem) -> u64 {
    item.id.heap_bytes() + item.heap_bytes()
}

impl History {
    /// Returns the extent of the history.
    #[must_use]
    pub fn summary(&self) -> HistorySummary {
        self.summary
    }

    /// Returns when the newest item was added.
    #[must_use]
    pub fn newest_ms(&self) -> Option<u64> {
        self.items.back().map(|item| item.at_ms)
    }

    /// Returns up to `limit` items after position `from`. If `backwards`, returns items before `from` instead, nearest
    /// first.
    #[must_use]
    pub fn read(&self, from: u64, backwards: bool, limit: usize) -> Vec<StoredItem> {
        if backwards {
            let before = self.items.range(..self.index(from));
            before.rev().take(limit).cloned().collect()
        } else {
            let after = self.items.range(self.index(from.saturating_add(1))..);
            after.take(limit).cloned().collect()
        }
    }

    /// Returns the position of an item.
    #[must_use]
    pub fn position(&self, id: &ItemId) -> Option<u64> {
        self.by_id.get(id).map(|(seq, _)| *seq)
    }

    /// Returns the position of an item that was recently removed or dropped, or that a compaction moved to a segment.
    /// Returns `None` for an item that was removed when the whole history was cleared.
    #[must_use]
    pub fn removed_position(&self, id: &ItemId) -> Option<u64> {
        let digest = id.digest();
        let mut removed = self.removed_ids.iter().rev();
        let position = removed.find(|(other, _)| *other == digest);
        let position = position.map(|(_, seq)| *seq);
        position.or_else(|| self.segments.find(id).map(|(seq, _)| *seq))
    }

    pub(super) fn of_items(items: Vec<StoredItem>, next_seq: u64) -> Self {
        let index_entry = |item: &StoredItem| (item.id.clone(), (item.seq, item.fingerprint()));
        let mut history = Self {
            by_id: items.iter().map(index_entry).collect(),
            heap_bytes: items.iter().map(held_bytes).sum(),
            summary: HistorySummary {
                next_seq,
                bytes: items.iter().map(StoredItem::cost_bytes).sum(),
                ..HistorySummary::EMPTY
            },
            removed_ids: VecDeque::new(),
            segments: Segments::default(),
            items: items.into(),
        };
        history.update_summary();
        history
    }

    fn index(&self, seq: u64) -> usize {
        self.items.partition_point(|item| item.seq < seq)
    }

    pub(crate) fn find(&self, removal: Option<Removal<'_>>) -> Removed {
        let mut positions = match removal {
            None => Vec::new(),
            Some(Removal::All) => return Removed::All,
            Some(Removal::Item(id)) if self.segments.find(id).is_some() => {
                return Removed::Original(id.clone());
            }
            Some(Removal::Item(id)) => self
                .by_id
                .get(id)
                .map(|(seq, _)| *seq)
                .into_iter()
                .collect(),
            Some(Removal::Newest(count)) => {
                let mut bytes = 0;
                let mut fits = |item: &&StoredItem| {
                    let is_first = bytes == 0;
                    bytes += item.cost_bytes();
                    is_first || bytes <= RETURNED_MAX_BYTES
                };
                let newest = self.items.iter().rev().take(count);
                newest
                    .take_while(|item| fits(item))
                    .map(|item| item.seq)
                    .collect()
            }
        };
        positions.sort_unstable();
        Removed::Positions(positions)
    }

    fn bytes_without(&self, removed: &Removed) -> u64 {
        match removed {
            Removed::All => 0,
            Removed::Positions(positions) => {
                let items = positions.iter().map(|seq| &self.items[self.index(*seq)]);
                self.summary.bytes - items.map(StoredItem::cost_bytes).sum::<u64>()
            }
            Removed::Original(_) => self.summary.bytes,
        }
    }

    /// Plans the appends that follow the removal of `removed`, and checks the appends against `limit`. Does not change
    /// the history.
    pub(crate) fn plan(
        &self,
        removed: &Removed,
        items: &[HistoryItem],
        limit: &HistoryLimit,
    ) -> Result<Vec<Appended>, Refusal> {
        let mut new: HashMap<&ItemId, (u64, Fingerprint)> = HashMap::new();
        let mut appended = Vec::with_capacity(items.len());
        let (mut next_seq, mut added) = (self.summary.next_seq, 0);
        for (index, item) in items.iter().enumerate() {
            let fingerprint = item.fingerprint();
            let existing = self.by_id.get(&item.id);
            let existing = existing.filter(|(seq, _)| !removed.has(*seq));
            let original = self.segments.find(&item.id);
            let original = original.filter(|_| removed.keeps_id(&item.id));
            match existing.or(original).or_else(|| new.get(&item.id)) {
                Some((seq, existing)) if *existing == fingerprint => appended.push(Appended {
                    seq: *seq,
                    repeated: true,
                }),
                Some(_) => return Err(Refusal::ItemIdReused { item: index }),
                None => {
                    new.insert(&item.id, (next_seq, fingerprint));
                    appended.push(Appended {
                        seq: next_seq,
                        repeated: false,
                    });
                    next_seq += 1;
                    added += item.cost_bytes();
                }
            }
        }
        let size_bytes = self.bytes_without(removed);
        let attempted_bytes = size_bytes + added;
        let counted_bytes = if limit.drops_oldest {
            added
        } else {
            attempted_bytes
        };
        if counted_bytes > limit.max_bytes && added > 0 {
            return Err(Refusal::HistoryTooLarge {
                limit_bytes: limit.max_bytes,
                size_bytes,
                attempted_bytes,
            });
        }
        Ok(appended)
    }

    /// Removes items and returns them in order. For [`Removed::All`], returns an empty list.
    pub(crate) fn remove(&mut self, removed: Removed) -> Vec<StoredItem> {
        let positions = match removed {
            Removed::All => {
                let next_seq = self.summary.next_seq;
                let removed_ids = mem::take(&mut self.removed_ids);
                *self = Self {
                    removed_ids,
                    segments: self.segments.cleared(),
                    ..Self::default()
                };
                self.summary.next_seq = next_seq;
                self.update_summary();
                return Vec::new();
            }
            Removed::Positions(positions) => positions,
            Removed::Original(id) => {
                let item = self.segments.remove(&id);
                if let Some(item) = &item {
                    self.record_removed(item);
                }
                return item.into_iter().collect();
            }
        };
        let mut items = Vec::with_capacity(positions.len());
        // remove the newest items first, because the removal of the last item does not move other items
        for seq in positions.into_iter().rev() {
            items.extend(self.items.remove(self.index(seq)));
        }
        for item in &items {
            self.forget(item);
        }
        self.release();
        self.update_summary();
        items.reverse();
        for item in &items {
            self.record_removed(item);
        }
        items
    }

    fn release(&mut self) {
        if self.items.len() < self.items.capacity() / 4 {
            self.items.shrink_to(2 * self.items.len());
            self.by_id.shrink_to(2 * self.items.len());
        }
    }

    fn record_removed(&mut self, removed: &StoredItem) {
        if self.removed_ids.len() == REMOVED_IDS_MAX {
            self.removed_ids.pop_front();
        }
        self.removed_ids
            .push_back((removed.id.digest(), removed.seq));
    }

    pub(crate) fn append(
        &mut self,
        items: &[HistoryItem],
        planned: &[Appended],
        limit: &HistoryLimit,
        now_ms: u64,
    ) {
        for (item, planned) in items.iter().zip(planned) {
            if planned.repeated {
                continue;
            }
            let stored = StoredItem {
                seq: planned.seq,
                id: item.id.clone(),
                at_ms: now_ms,
                value: item.value.clone(),
            };
            self.summary.next_seq = planned.seq + 1;
            self.remember(&stored);
            self.items.push_back(stored);
        }
        while self.summary.bytes > limit.max_bytes && limit.drops_oldest {
            let Some(oldest) = self.items.pop_front() else {
                break;
            };
            self.forget(&oldest);
            self.record_removed(&oldest);
        }
        self.update_summary();
    }

    fn remember(&mut self, item: &StoredItem) {
        let index_entry = (item.seq, item.fingerprint());
        self.by_id.insert(item.id.clone(), index_entry);
        self.summary.bytes += item.cost_bytes();
        self.heap_bytes += held_bytes(item);
    }

    fn forget(&mut self, item: &StoredItem) {
        self.by_id.remove(&item.id);
        self.summary.bytes -= item.cost_bytes();
        self.heap_bytes -= held_bytes(item);
    }

    fn update_summary(&mut self) {
        let next_seq = self.summary.next_seq;
        let first_seq = self.items.front().map_or(next_seq, |oldest| oldest.seq);
        self.summary.first_seq = first_seq;
        self.summary.removed = next_seq - first_seq - self.items.len() as u64;
    }
}
