//! A share of the ids behind one lock.

use std::collections::{BTreeSet, HashMap};

use super::entry::Entry;
use super::living::Living;
use super::past::{Past, Step};
use crate::domain::{
    Completed, Life, Policy, Refusal, Retention, Thread, ThreadId, Write, Written,
};
use crate::store::{Destroy, Destroyed, Reaped, Watched};

/// Entries, when to look at each again, and what has happened to them.
///
/// An entry stands in the queue at a time when it may be due, not at each use: one that was used
/// since is moved to its real deadline when it comes up, so a use costs nothing here.
#[derive(Debug)]
pub(super) struct Shard {
    slots: HashMap<ThreadId, Slot>,
    queue: BTreeSet<(u64, ThreadId)>,
    pub(super) past: Past,
}

#[derive(Debug, Default)]
struct Slot {
    entry: Entry,
    /// Its place in the queue.
    queued_ms: u64,
}

impl Shard {
    pub(super) fn new(bucket: u16, retention: Retention) -> Self {
        Self {
            slots: HashMap::new(),
            queue: BTreeSet::new(),
            past: Past::new(bucket, retention),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len() + self.past.len()
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
        self.change(id, now_ms, |entry, step| entry.write(write, step))
    }

    pub(super) fn destroy(
        &mut self,
        id: &ThreadId,
        destroy: &Destroy,
        now_ms: u64,
    ) -> Result<Destroyed, Refusal> {
        self.change(id, now_ms, |entry, step| entry.destroy(destroy, step))
    }

    pub(super) fn restore(
        &mut self,
        id: &ThreadId,
        life: Option<Life>,
        policy: &Policy,
        now_ms: u64,
    ) -> Result<Option<Thread>, Refusal> {
        self.change(id, now_ms, |entry, step| entry.restore(life, policy, step))
    }

    pub(super) fn watch(&mut self, id: &ThreadId, until_ms: u64, now_ms: u64) -> Watched {
        self.change(id, now_ms, |entry, step| {
            entry.watch(until_ms);
            Watched {
                stamp: entry.stamp(now_ms),
                head: step.past.log.last(),
            }
        })
    }

    pub(super) fn complete(&mut self, id: &ThreadId, completed: &Completed, now_ms: u64) {
        self.change(id, now_ms, |entry, step| entry.complete(completed, step));
    }

    /// Changes an entry, which is made for it if there is none and kept only if that is needed.
    fn change<T>(
        &mut self,
        id: &ThreadId,
        now_ms: u64,
        change: impl FnOnce(&mut Entry, &mut Step<'_>) -> T,
    ) -> T {
        let past = &mut self.past;
        let mut step = Step { id, now_ms, past };
        if let Some(slot) = self.slots.get_mut(id) {
            let changed = change(&mut slot.entry, &mut step);
            let due_ms = slot.entry.due_ms();
            if due_ms < slot.queued_ms {
                self.queue.remove(&(slot.queued_ms, *id));
                slot.queued_ms = due_ms;
                self.queue.insert((due_ms, *id));
            }
            return changed;
        }
        let mut entry = Entry::default();
        let changed = change(&mut entry, &mut step);
        let queued_ms = entry.due_ms();
        if queued_ms > 0 {
            self.queue.insert((queued_ms, *id));
            self.slots.insert(*id, Slot { entry, queued_ms });
        }
        changed
    }

    /// Threads whose time in the queue has come, the earliest first.
    pub(super) fn due(&self, now_ms: u64, most: usize) -> Vec<ThreadId> {
        let passed = self.queue.iter().take_while(|place| place.0 <= now_ms);
        let ids = passed.map(|place| place.1);
        ids.filter(|id| self.has_thread(id)).take(most).collect()
    }

    /// Ends those threads whose time has passed.
    pub(super) fn end_due(&mut self, ids: &[ThreadId], now_ms: u64) -> Reaped {
        let mut reaped = Reaped::default();
        for id in ids {
            if !self.has_thread(id) {
                continue;
            }
            if self.look_at(*id, now_ms) {
                reaped.ended += 1;
            } else {
                reaped.moved += 1;
            }
        }
        reaped
    }

    fn has_thread(&self, id: &ThreadId) -> bool {
        let slot = self.slots.get(id);
        slot.is_some_and(|slot| slot.entry.has_thread())
    }

    /// Ends and frees what is due, at most `most` entries. Whether more is due.
    pub(super) fn sweep(&mut self, now_ms: u64, most: usize) -> bool {
        for _ in 0..most {
            match self.queue.first() {
                Some(&(queued_ms, id)) if queued_ms <= now_ms => {
                    self.look_at(id, now_ms);
                }
                _ => break,
            }
        }
        if self.slots.len() < self.slots.capacity() / 4 {
            self.slots.shrink_to_fit();
        }
        self.queue.first().is_some_and(|next| next.0 <= now_ms)
    }

    /// Ends what has passed of an entry, and gives it its real place in the queue, or frees it.
    /// Whether a thread ended.
    fn look_at(&mut self, id: ThreadId, now_ms: u64) -> bool {
        let Some(slot) = self.slots.get_mut(&id) else {
            return false;
        };
        let past = &mut self.past;
        let id = &id;
        let ended = slot.entry.sweep(&mut Step { id, now_ms, past });
        self.queue.remove(&(slot.queued_ms, *id));
        slot.queued_ms = slot.entry.due_ms();
        if slot.queued_ms > now_ms {
            self.queue.insert((slot.queued_ms, *id));
        } else {
            self.slots.remove(id);
        }
        ended
    }
}
