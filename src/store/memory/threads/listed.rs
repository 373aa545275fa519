//! The threads of each owner, by their times.

use std::collections::{BTreeSet, VecDeque};

use crate::domain::heap::{self, Heap};
use crate::domain::idempotency::LONGEST;
use crate::domain::{OwnerTag, ThreadId};
use crate::store::{OwnedPlace, ThreadOrder, millis};

/// Where a thread with an owner stands in the lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) owner: OwnerTag,
    pub(crate) created_ms: u64,
    pub(crate) updated_ms: u64,
}

/// The lists of all owners, one after the other.
#[derive(Debug, Default)]
pub(crate) struct Listed {
    updated: BTreeSet<(OwnerTag, OwnedPlace)>,
    created: BTreeSet<(OwnerTag, OwnedPlace)>,
    /// Threads that had another owner, and until when, for as long as their remembered answers may name it.
    former: VecDeque<(u64, OwnerTag, ThreadId)>,
}

impl Listed {
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
    pub(crate) fn note_former(&mut self, id: &ThreadId, owner: OwnerTag, now_ms: u64) {
        let oldest_ms = now_ms.saturating_sub(millis(LONGEST));
        while self.former.front().is_some_and(|(at, ..)| *at < oldest_ms) {
            self.former.pop_front();
        }
        self.former.push_back((now_ms, owner, *id));
    }

    /// Takes out the threads that were an owner's.
    pub(crate) fn take_former(&mut self, owner: OwnerTag) -> Vec<ThreadId> {
        let mut taken = Vec::new();
        self.former.retain(|(_, other, id)| {
            let is_its = *other == owner;
            taken.extend(is_its.then_some(*id));
            !is_its
        });
        taken
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

impl Heap for Listed {
    fn heap_bytes(&self) -> u64 {
        2 * heap::tree::<(OwnerTag, OwnedPlace)>(self.updated.len())
            + heap::array::<(u64, OwnerTag, ThreadId)>(self.former.capacity())
    }
}
