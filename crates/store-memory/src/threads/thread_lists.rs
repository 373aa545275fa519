use std::collections::{BTreeSet, VecDeque};

use threadkeep_domain::heap::{self, Heap};
use threadkeep_domain::idempotency::ANSWER_TTL_MAX;
use threadkeep_domain::{Life, OwnerTag, ThreadId};
use threadkeep_store::{OwnedPosition, ThreadOrder, millis};

/// The owner and the sort times of a listed thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ListPosition {
    pub(crate) owner: OwnerTag,
    pub(crate) created_ms: u64,
    pub(crate) updated_ms: u64,
}

#[derive(Debug, Default)]
pub(crate) struct ThreadLists {
    /// Number of all threads, with and without owners.
    threads: u64,
    updated: BTreeSet<(OwnerTag, OwnedPosition)>,
    created: BTreeSet<(OwnerTag, OwnedPosition)>,
    /// Former owners of threads. An owner is listed while remembered results may contain the owner's data.
    former: BTreeSet<Former>,
    /// The entries of `former`, oldest first.
    former_by_age: VecDeque<Former>,
}

/// The former owner, the time of the owner change, the thread, and its life.
type Former = (OwnerTag, u64, ThreadId, Life);

impl ThreadLists {
    pub(crate) fn threads(&self) -> u64 {
        self.threads
    }

    pub(crate) fn count(&mut self, before: bool, after: bool) {
        self.threads = self.threads + u64::from(after) - u64::from(before);
    }

    /// Moves a thread from position `before` to position `after`. A position is `None` if the thread has no owner or
    /// does not exist.
    pub(crate) fn relist(
        &mut self,
        id: &ThreadId,
        before: Option<ListPosition>,
        after: Option<ListPosition>,
    ) {
        if before == after {
            return;
        }
        if let Some(ListPosition {
            owner,
            created_ms,
            updated_ms,
        }) = before
        {
            self.updated.remove(&(owner, (updated_ms, *id)));
            self.created.remove(&(owner, (created_ms, *id)));
        }
        if let Some(ListPosition {
            owner,
            created_ms,
            updated_ms,
        }) = after
        {
            self.updated.insert((owner, (updated_ms, *id)));
            self.created.insert((owner, (created_ms, *id)));
        }
    }

    pub(crate) fn note_former(
        &mut self,
        (id, life): (ThreadId, Life),
        owner: OwnerTag,
        now_ms: u64,
    ) {
        // a result is dropped only when a later result is added, or a day after the last addition, so a result can last
        // for two days
        let oldest_ms = now_ms.saturating_sub(millis(2 * ANSWER_TTL_MAX));
        let is_old = |former: &mut Former| former.1 < oldest_ms;
        while let Some(former) = self.former_by_age.pop_front_if(is_old) {
            self.former.remove(&former);
        }
        self.former.insert((owner, now_ms, id, life));
        self.former_by_age.push_back((owner, now_ms, id, life));
    }

    pub(crate) fn take_former(&mut self, owner: OwnerTag, limit: usize) -> Vec<(ThreadId, Life)> {
        let from = (owner, 0, ThreadId::MIN, Life(0));
        let taken = self.former.range(from..);
        let taken = taken.take_while(|(other, ..)| *other == owner).take(limit);
        let taken: Vec<_> = taken.copied().collect();
        for former in &taken {
            self.former.remove(former);
        }
        taken.into_iter().map(|(.., id, life)| (id, life)).collect()
    }

    pub(crate) fn before(
        &self,
        owner: OwnerTag,
        order: ThreadOrder,
        position: Option<OwnedPosition>,
    ) -> impl Iterator<Item = OwnedPosition> {
        let list = match order {
            ThreadOrder::Updated => &self.updated,
            ThreadOrder::Created => &self.created,
        };
        let end = position.unwrap_or((u64::MAX, ThreadId::MIN));
        let older = list.range((owner, (0, ThreadId::MIN))..(owner, end));
        older.rev().map(|(_, position)| *position)
    }
}

impl Heap for ThreadLists {
    fn heap_bytes(&self) -> u64 {
        2 * heap::tree::<(OwnerTag, OwnedPosition)>(self.updated.len())
            + heap::tree::<Former>(self.former.len())
            + heap::array::<Former>(self.former_by_age.capacity())
    }
}
