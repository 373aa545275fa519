//! A share of the ids behind one lock.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use super::entry::{Entry, Living};
use crate::domain::{Refusal, ThreadId, Write, Written};
use crate::store::{Destroy, Destroyed};

/// Stale places in a queue that are not worth making it anew.
const STALE: usize = 256;

/// Entries, and when to look at each again.
///
/// An entry stands in the queue at a time when it may be due, not at each use: one that was used
/// since is moved to its real deadline when it comes up, so a use costs nothing here.
#[derive(Debug, Default)]
pub(super) struct Shard {
    slots: HashMap<ThreadId, Slot>,
    queue: BinaryHeap<Reverse<(u64, ThreadId)>>,
}

#[derive(Debug, Default)]
struct Slot {
    entry: Entry,
    /// Its one valid place in the queue; another place of the same id is stale.
    queued_ms: u64,
}

impl Shard {
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn touch(&mut self, id: &ThreadId, now_ms: u64) -> Option<&Living> {
        self.slots.get_mut(id)?.entry.touch(now_ms)
    }

    pub(super) fn write(
        &mut self,
        id: &ThreadId,
        write: &Write<'_>,
        now_ms: u64,
    ) -> Result<Written, Refusal> {
        self.change(id, |entry| entry.write(write, now_ms))
    }

    pub(super) fn destroy(
        &mut self,
        id: &ThreadId,
        destroy: &Destroy,
        now_ms: u64,
    ) -> Result<Destroyed, Refusal> {
        self.change(id, |entry| entry.destroy(destroy, now_ms))
    }

    /// Changes an entry, which is made for it if there is none and kept only if that is needed.
    fn change<T>(
        &mut self,
        id: &ThreadId,
        change: impl FnOnce(&mut Entry) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        if let Some(slot) = self.slots.get_mut(id) {
            let changed = change(&mut slot.entry);
            let due_ms = slot.entry.due_ms();
            if due_ms < slot.queued_ms {
                slot.queued_ms = due_ms;
                self.queue.push(Reverse((due_ms, *id)));
            }
            return changed;
        }
        let mut entry = Entry::default();
        let changed = change(&mut entry)?;
        let queued_ms = entry.due_ms();
        if queued_ms > 0 {
            self.queue.push(Reverse((queued_ms, *id)));
            self.slots.insert(*id, Slot { entry, queued_ms });
        }
        Ok(changed)
    }

    /// Frees what is due, at most `most` entries. Whether more is due.
    pub(super) fn sweep(&mut self, now_ms: u64, most: usize) -> bool {
        for _ in 0..most {
            match self.queue.peek() {
                Some(&Reverse((queued_ms, id))) if queued_ms <= now_ms => {
                    self.queue.pop();
                    self.look_at(id, queued_ms, now_ms);
                }
                _ => break,
            }
        }
        if self.slots.len() < self.slots.capacity() / 4 {
            self.slots.shrink_to_fit();
        }
        if self.queue.len() > 2 * self.slots.len() + STALE {
            // an id whose time got shorter has left a place behind
            let places = self
                .slots
                .iter()
                .map(|(id, slot)| Reverse((slot.queued_ms, *id)));
            self.queue = places.collect();
        }
        self.queue.peek().is_some_and(|next| next.0.0 <= now_ms)
    }

    fn look_at(&mut self, id: ThreadId, queued_ms: u64, now_ms: u64) {
        let Some(slot) = self.slots.get_mut(&id) else {
            return;
        };
        if slot.queued_ms != queued_ms {
            return;
        }
        slot.entry.sweep(now_ms);
        slot.queued_ms = slot.entry.due_ms();
        if slot.queued_ms > now_ms {
            self.queue.push(Reverse((slot.queued_ms, id)));
        } else {
            self.slots.remove(&id);
        }
    }
}
