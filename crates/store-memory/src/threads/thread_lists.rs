//! The threads of each owner, by their times, and the number of all.

use std::collections::{BTreeSet, VecDeque};

use threadkeep_domain::heap::{self, Heap};
use threadkeep_domain::idempotency::LONGEST;
use threadkeep_domain::{Life, OwnerTag, ThreadId};
use threadkeep_store::{OwnedPlace, ThreadOrder, millis};

/// Where a thread with an owner stands in the lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) owner: OwnerTag,
    pub(crate) created_ms: u64,
    pub(crate) updated_ms: u64,
}

/// The lists of all owners, one after the other.
#[derive(Debug, Default)]
pub(crate) struct ThreadLists {
    /// The number of threads, with and without owners.
    threads: u64,
    updated: BTreeSet<(OwnerTag, OwnedPlace)>,
    created: BTreeSet<(OwnerTag, OwnedPlace)>,
    /// Threads that had another owner, and until when, for as long as their remembered answers may name it.
    former: BTreeSet<Former>,
    /// The same, the oldest first.
    former_by_age: VecDeque<Former>,
}

/// A former owner, until when it was that, and its thread.
type Former = (OwnerTag, u64, ThreadId, Life);

impl ThreadLists {
    pub(crate) fn threads(&self) -> u64 {
        self.threads
    }

    /// Counts a thread that was or was not there before a change, and is or is not after it.
    pub(crate) fn count(&mut self, before: bool, after: bool) {
        self.threads = self.threads + u64::from(after) - u64::from(before);
    }

    /// Moves a thread from one place to another; no place if it has no owner, or does not exist.
    pub(crate) fn relist(&mut self, id: &ThreadId, before: Option<Place>, after: Option<Place>) {
        if before == after {
            return;
        }
        if let Some(Place {
            owner,
            created_ms,
            updated_ms,
        }) = before
        {
            self.updated.remove(&(owner, (updated_ms, *id)));
            self.created.remove(&(owner, (created_ms, *id)));
        }
        if let Some(Place {
            owner,
            created_ms,
            updated_ms,
        }) = after
        {
            self.updated.insert((owner, (updated_ms, *id)));
            self.created.insert((owner, (created_ms, *id)));
        }
    }

    /// Notes that a thread that goes on had another owner until now.
    pub(crate) fn note_former(
        &mut self,
        (id, life): (ThreadId, Life),
        owner: OwnerTag,
        now_ms: u64,
    ) {
        // an answer is remembered until the first one that is given after more than a day, or for a day after the last
        let oldest_ms = now_ms.saturating_sub(millis(2 * LONGEST));
        let is_old = |former: &mut Former| former.1 < oldest_ms;
        while let Some(former) = self.former_by_age.pop_front_if(is_old) {
            self.former.remove(&former);
        }
        self.former.insert((owner, now_ms, id, life));
        self.former_by_age.push_back((owner, now_ms, id, life));
    }

    /// Takes out up to `limit` threads that were an owner's.
    pub(crate) fn take_former(&mut self, owner: OwnerTag, limit: usize) -> Vec<(ThreadId, Life)> {
        let from = (owner, 0, ThreadId::MIN, Life(0));
        let its = self.former.range(from..);
        let its = its.take_while(|(other, ..)| *other == owner).take(limit);
        let its: Vec<_> = its.copied().collect();
        for former in &its {
            self.former.remove(former);
        }
        its.into_iter().map(|(.., id, life)| (id, life)).collect()
    }

    /// The places of an owner's threads that are older than that one, the newest first.
    pub(crate) fn before(
        &self,
        owner: OwnerTag,
        order: ThreadOrder,
        place: Option<OwnedPlace>,
    ) -> impl Iterator<Item = OwnedPlace> {
        let list = match order {
            ThreadOrder::Updated => &self.updated,
            ThreadOrder::Created => &self.created,
        };
        let end = place.unwrap_or((u64::MAX, ThreadId::MIN));
        let older = list.range((owner, (0, ThreadId::MIN))..(owner, end));
        older.rev().map(|(_, place)| *place)
    }
}

impl Heap for ThreadLists {
    fn heap_bytes(&self) -> u64 {
        2 * heap::tree::<(OwnerTag, OwnedPlace)>(self.updated.len())
            + heap::tree::<Former>(self.former.len())
            + heap::array::<Former>(self.former_by_age.capacity())
    }
}
