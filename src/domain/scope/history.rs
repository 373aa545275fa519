//! Lists that are only added to.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::str::FromStr;

use super::error::ScopeError;
use crate::domain::heap::{self, Heap};
use crate::domain::{Fingerprint, Json, Refusal};

const ID_MAX_BYTES: usize = 128;
/// The size of an item in addition to its id and its value.
pub(crate) const ITEM_BYTES: u64 = 64;

/// The id of an item, which makes adding it again harmless: 1 to 128 visible ASCII characters.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ItemId(Box<str>);

/// Something to be added.
#[derive(Debug, Clone)]
pub struct HistoryItem {
    /// Its id, which stands for this value alone.
    pub id: ItemId,
    /// Any JSON.
    pub value: Json,
}

/// An item as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// Its place: from 1, without gaps.
    pub seq: u64,
    /// The client's id.
    pub id: ItemId,
    /// When it was added, in milliseconds of the Unix epoch, by the store's clock.
    pub at_ms: u64,
    /// The value.
    pub value: Json,
}

/// The outcome of appending an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// Its place.
    pub seq: u64,
    /// Whether it was there already.
    pub repeated: bool,
}

/// The limits of a history. An item counts with the bytes of its id and its value, and 64 more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryLimit {
    /// Bytes of all items.
    pub max_bytes: u64,
    /// Whether the oldest items make room; otherwise an append over the limit is rejected.
    pub drops_oldest: bool,
}

/// How much there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistorySummary {
    /// The place of the oldest item that is kept.
    pub first_seq: u64,
    /// The place that the next one gets.
    pub next_seq: u64,
    /// Bytes of all items, as [`HistoryLimit`] counts them.
    pub bytes: u64,
}

/// A list that is only added to.
#[derive(Debug, Clone)]
pub struct History {
    items: VecDeque<Kept>,
    known: HashMap<ItemId, (u64, Fingerprint)>,
    summary: HistorySummary,
    /// Heap bytes of ids and values.
    heap_bytes: u64,
}

impl ItemId {
    /// The id as text.
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
    /// Its size.
    #[doc(hidden)]
    #[must_use]
    pub fn cost_bytes(&self) -> u64 {
        cost_bytes(&self.id, &self.value)
    }

    /// The digest that identifies the value.
    #[doc(hidden)]
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&[self.value.as_str().as_bytes()])
    }
}

impl Kept {
    /// Its size.
    #[doc(hidden)]
    #[must_use]
    pub fn cost_bytes(&self) -> u64 {
        cost_bytes(&self.id, &self.value)
    }

    /// The digest that identifies the value.
    #[doc(hidden)]
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&[self.value.as_str().as_bytes()])
    }
}

fn cost_bytes(id: &ItemId, value: &Json) -> u64 {
    (id.0.len() + value.as_str().len()) as u64 + ITEM_BYTES
}

impl HistorySummary {
    /// Nothing yet.
    pub const EMPTY: Self = Self {
        first_seq: 1,
        next_seq: 1,
        bytes: 0,
    };

    /// Items that are kept.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.next_seq - self.first_seq
    }

    /// Whether none is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Default for History {
    fn default() -> Self {
        Self {
            items: VecDeque::new(),
            known: HashMap::new(),
            summary: HistorySummary::EMPTY,
            heap_bytes: 0,
        }
    }
}

impl Heap for History {
    fn heap_bytes(&self) -> u64 {
        heap::array::<Kept>(self.items.capacity())
            + heap::table::<(ItemId, (u64, Fingerprint))>(self.known.capacity())
            + self.heap_bytes
    }
}

/// Heap bytes of an item: its id twice, of which one recognizes it.
fn held_bytes(id: &ItemId, value: &Json) -> u64 {
    2 * heap::block(id.0.len()) + value.heap_bytes()
}

impl History {
    /// How much there is.
    #[must_use]
    pub fn summary(&self) -> HistorySummary {
        self.summary
    }

    /// Up to `limit` items after a place, or before it, nearest first.
    #[must_use]
    pub fn read(&self, from: u64, backwards: bool, most: usize) -> Vec<Kept> {
        let place =
            |seq: u64| (seq.saturating_sub(self.summary.first_seq) as usize).min(self.items.len());
        if backwards {
            let before = self.items.range(..place(from));
            before.rev().take(most).cloned().collect()
        } else {
            let after = self.items.range(place(from.saturating_add(1))..);
            after.take(most).cloned().collect()
        }
    }

    /// The history of these items, which are in the order of their places.
    pub(super) fn of_items(items: Vec<Kept>, summary: HistorySummary) -> Self {
        let known = |item: &Kept| (item.id.clone(), (item.seq, item.fingerprint()));
        let held = items.iter().map(|item| held_bytes(&item.id, &item.value));
        Self {
            known: items.iter().map(known).collect(),
            heap_bytes: held.sum(),
            items: items.into(),
            summary,
        }
    }

    /// The history without its items. Their places are not given again.
    #[must_use]
    pub fn emptied(&self) -> Self {
        Self {
            summary: HistorySummary {
                first_seq: self.summary.next_seq,
                next_seq: self.summary.next_seq,
                bytes: 0,
            },
            ..Self::default()
        }
    }

    /// Plans to append these items, without changing anything yet.
    ///
    /// # Errors
    /// [`Refusal::ItemIdReused`] or [`Refusal::HistoryTooLarge`].
    pub fn plan(
        &self,
        items: &[HistoryItem],
        limit: &HistoryLimit,
    ) -> Result<Vec<Appended>, Refusal> {
        let mut new: HashMap<&ItemId, (u64, Fingerprint)> = HashMap::new();
        let mut appended = Vec::with_capacity(items.len());
        let (mut next_seq, mut added) = (self.summary.next_seq, 0);
        for (index, item) in items.iter().enumerate() {
            let fingerprint = item.fingerprint();
            let known = self.known.get(&item.id).or_else(|| new.get(&item.id));
            match known {
                Some((seq, known)) if *known == fingerprint => appended.push(Appended {
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
        let attempted_bytes = self.summary.bytes + added;
        let room = if limit.drops_oldest {
            added
        } else {
            attempted_bytes
        };
        if room > limit.max_bytes && added > 0 {
            return Err(Refusal::HistoryTooLarge {
                limit_bytes: limit.max_bytes,
                size_bytes: self.summary.bytes,
                attempted_bytes,
            });
        }
        Ok(appended)
    }

    /// Adds items as they were planned.
    pub fn append(
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
            self.known
                .insert(item.id.clone(), (planned.seq, item.fingerprint()));
            self.items.push_back(Kept {
                seq: planned.seq,
                id: item.id.clone(),
                at_ms: now_ms,
                value: item.value.clone(),
            });
            self.summary.next_seq = planned.seq + 1;
            self.summary.bytes += item.cost_bytes();
            self.heap_bytes += held_bytes(&item.id, &item.value);
        }
        while self.summary.bytes > limit.max_bytes && limit.drops_oldest {
            let Some(oldest) = self.items.pop_front() else {
                break;
            };
            self.known.remove(&oldest.id);
            self.summary.first_seq = oldest.seq + 1;
            self.summary.bytes -= cost_bytes(&oldest.id, &oldest.value);
            self.heap_bytes -= held_bytes(&oldest.id, &oldest.value);
        }
    }
}
