//! Stores the entries of a shard by id, with the time of each entry's next check.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use threadkeep_domain::heap::{self, Heap};

pub(super) trait Due {
    /// Returns the time of the next check. A time in the past means that the entry is empty.
    fn due_ms(&self) -> u64;
}

/// Entries by id, with a queue of checks.
///
/// Using an entry does not move it in the queue, which keeps uses cheap. Instead, if an entry was used after it was
/// queued, its check queues it again at its actual due time.
#[derive(Debug)]
pub(super) struct Slots<K, E> {
    /// Boxed, because entries are large.
    slots: BTreeMap<K, Box<Slot<E>>>,
    queue: BTreeSet<(u64, K)>,
    heap_bytes: u64,
}

#[derive(Debug)]
struct Slot<E> {
    entry: E,
    queued_ms: u64,
    /// Number of bytes counted for the entry and its id. The entry may have become smaller, because reads remove
    /// expired data.
    heap_bytes: u64,
}

impl<K, E> Default for Slots<K, E> {
    fn default() -> Self {
        Self {
            slots: BTreeMap::new(),
            queue: BTreeSet::new(),
            heap_bytes: 0,
        }
    }
}

impl<K: Clone + Ord + Heap, E: Default + Due + Heap> Slots<K, E> {
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn get(&self, id: &K) -> Option<&E> {
        self.slots.get(id).map(|slot| &slot.entry)
    }

    pub(super) fn after(&self, id: &K) -> impl Iterator<Item = (&K, &E)> {
        let range = (Bound::Excluded(id), Bound::Unbounded);
        let slots = self.slots.range(range);
        slots.map(|(id, slot)| (id, &slot.entry))
    }

    /// Returns an entry. The caller must not make the entry due sooner than it was.
    pub(super) fn get_mut(&mut self, id: &K) -> Option<&mut E> {
        self.slots.get_mut(id).map(|slot| &mut slot.entry)
    }

    /// Changes an entry, creating it first if it does not exist. A new entry is stored only if it is not empty after
    /// the change.
    pub(super) fn change<T>(&mut self, id: &K, change: impl FnOnce(&mut E) -> T) -> T {
        if let Some(slot) = self.slots.get_mut(id) {
            let changed = change(&mut slot.entry);
            let due_ms = slot.entry.due_ms();
            if due_ms < slot.queued_ms {
                self.queue.remove(&(slot.queued_ms, id.clone()));
                slot.queued_ms = due_ms;
                self.queue.insert((due_ms, id.clone()));
            }
            slot.count(id, &mut self.heap_bytes);
            return changed;
        }
        let mut entry = E::default();
        let changed = change(&mut entry);
        let queued_ms = entry.due_ms();
        if queued_ms > 0 {
            self.queue.insert((queued_ms, id.clone()));
            let mut slot = Slot {
                entry,
                queued_ms,
                heap_bytes: 0,
            };
            slot.count(id, &mut self.heap_bytes);
            self.slots.insert(id.clone(), Box::new(slot));
        }
        changed
    }

    pub(super) fn due(&self, now_ms: u64) -> impl Iterator<Item = &K> {
        let due = self
            .queue
            .iter()
            .take_while(move |(due_ms, _)| *due_ms <= now_ms);
        due.map(|(_, id)| id)
    }

    /// Checks an entry, then queues it again or frees it. Returns `None` if the entry does not exist.
    pub(super) fn recheck<T>(
        &mut self,
        id: &K,
        now_ms: u64,
        check: impl FnOnce(&mut E) -> T,
    ) -> Option<T> {
        let slot = self.slots.get_mut(id)?;
        let result = check(&mut slot.entry);
        let mut queue_key = (slot.queued_ms, id.clone());
        self.queue.remove(&queue_key);
        slot.queued_ms = slot.entry.due_ms();
        if slot.queued_ms > now_ms {
            queue_key.0 = slot.queued_ms;
            self.queue.insert(queue_key);
            slot.count(id, &mut self.heap_bytes);
        } else {
            self.heap_bytes -= slot.heap_bytes;
            self.slots.remove(id);
        }
        Some(result)
    }

    /// Checks up to `limit` due entries. Returns whether more are due.
    pub(super) fn sweep(
        &mut self,
        now_ms: u64,
        limit: usize,
        mut check: impl FnMut(&K, &mut E),
    ) -> bool {
        for _ in 0..limit {
            let Some(id) = self.due(now_ms).next().cloned() else {
                break;
            };
            self.recheck(&id, now_ms, |entry| check(&id, entry));
        }
        self.due(now_ms).next().is_some()
    }
}

impl<E: Heap> Slot<E> {
    /// Updates the byte count of an entry. The id is counted twice, because the queue has a copy of it.
    fn count<K: Heap>(&mut self, id: &K, total: &mut u64) {
        let own_bytes = heap::array::<Self>(1);
        let heap_bytes = own_bytes + self.entry.heap_bytes() + 2 * id.heap_bytes();
        *total = *total + heap_bytes - self.heap_bytes;
        self.heap_bytes = heap_bytes;
    }
}

impl<K, E> Heap for Slots<K, E> {
    fn heap_bytes(&self) -> u64 {
        heap::tree::<(K, Box<Slot<E>>)>(self.slots.len())
            + heap::tree::<(u64, K)>(self.queue.len())
            + self.heap_bytes
    }
}
