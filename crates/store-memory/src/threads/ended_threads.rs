use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;

use super::live_thread::LiveThread;
use threadkeep_domain::heap::Heap;
use threadkeep_domain::scope::HistorySummary;
use threadkeep_domain::{EndReason, Life, OwnerTag, Position, ThreadId, heap};
use threadkeep_store::{Archive, ArchiveHead, ArchivePosition};

#[derive(Debug, Default)]
pub(crate) struct EndedThreads {
    by_life: HashMap<(ThreadId, Life), Box<EndedThread>>,
    /// Ended lives of threads, sorted by thread id, then in the order in which the lives ended.
    ended: BTreeMap<(ThreadId, u64), Life>,
    positions: BTreeSet<ArchivePosition>,
    owned: BTreeSet<(OwnerTag, ThreadId, Life)>,
    next: u64,
    heap_bytes: u64,
}

#[derive(Debug)]
pub(crate) struct EndedThread {
    pub(crate) living: LiveThread,
    pub(crate) reason: EndReason,
    pub(crate) ended_ms: u64,
    pub(crate) archived_ms: u64,
    /// Log position of the end event.
    pub(crate) event: Position,
    /// True if the life was restored. If so, the entry stays only because its end event may be in the log.
    pub(crate) is_restored: bool,
    checkpoints: Vec<u32>,
    /// Sequence number of this life among all ended lives.
    number: u64,
    /// Number of bytes counted for this entry. The entry may have become smaller, because a restore moves the scope to
    /// the new life.
    heap_bytes: u64,
}

impl EndedThread {
    /// Builds the final state of an ended life, and drops its checkpoints.
    pub(crate) fn new(
        mut living: LiveThread,
        reason: EndReason,
        ended_ms: u64,
        archived_ms: u64,
        event: Position,
    ) -> Self {
        let checkpoints = living.drop_saved();
        let own_bytes = heap::array::<Self>(1) + heap::array::<u32>(checkpoints.capacity());
        Self {
            heap_bytes: own_bytes + living.heap_bytes(),
            checkpoints,
            living,
            reason,
            ended_ms,
            archived_ms,
            event,
            is_restored: false,
            number: 0,
        }
    }

    pub(crate) fn head(&self, id: &ThreadId) -> ArchiveHead {
        ArchiveHead {
            id: *id,
            life: self.living.stamp.life,
            version: self.living.stamp.version,
            size_bytes: self.living.document.size_bytes(),
            reason: self.reason,
            ended_ms: self.ended_ms,
            archived_ms: self.archived_ms,
            metadata: self.living.metadata(),
            history: self.history(),
            checkpoints: self.checkpoints.clone(),
        }
    }

    fn history(&self) -> HistorySummary {
        let scope = self.living.scope.as_ref();
        scope.map_or(HistorySummary::EMPTY, |scope| scope.history())
    }

    pub(crate) fn archive(&self, id: &ThreadId) -> Archive {
        Archive {
            head: self.head(id),
            owner: self.living.owner_tag(),
            state: self.living.document.to_json().into(),
        }
    }
}

impl EndedThreads {
    pub(crate) fn len(&self) -> usize {
        self.positions.len()
    }

    pub(crate) fn add(&mut self, id: &ThreadId, mut last: EndedThread) {
        let life = last.living.stamp.life;
        self.positions.insert(ArchivePosition {
            archived_ms: last.archived_ms,
            archive: Some((*id, life)),
        });
        if let Some(owner) = last.living.owner_tag() {
            self.owned.insert((owner, *id, life));
        }
        last.number = self.next;
        self.ended.insert((*id, last.number), life);
        self.next += 1;
        self.heap_bytes += last.heap_bytes;
        self.by_life.insert((*id, life), Box::new(last));
    }

    /// Returns the final state of `life`, or of the life that ended last if `life` is `None`.
    pub(crate) fn get(&self, id: &ThreadId, life: Option<Life>) -> Option<&EndedThread> {
        let life = match life {
            Some(life) => life,
            None => *self.ended.range((*id, 0)..=(*id, u64::MAX)).next_back()?.1,
        };
        self.by_life.get(&(*id, life)).map(Box::as_ref)
    }

    pub(crate) fn get_mut(&mut self, id: &ThreadId, life: Life) -> Option<&mut EndedThread> {
        self.by_life.get_mut(&(*id, life)).map(Box::as_mut)
    }

    /// Returns the sequence number of the id's last known event, or 0. A new life continues this numbering.
    pub(crate) fn sequence(&self, id: &ThreadId) -> u64 {
        let last = self.get(id, None);
        last.map_or(0, |last| last.living.sequence)
    }

    pub(crate) fn after(
        &self,
        position: &ArchivePosition,
    ) -> impl Iterator<Item = &ArchivePosition> {
        self.positions
            .range((Bound::Excluded(position), Bound::Unbounded))
    }

    pub(crate) fn oldest_ms(&self) -> Option<u64> {
        self.positions.first().map(|position| position.archived_ms)
    }

    /// Removes the oldest final state if it was archived at or before `archive_cutoff_ms` and its end event is no
    /// longer in the log. Does not check other states, which were archived and ended later.
    pub(crate) fn pop_oldest(
        &mut self,
        archive_cutoff_ms: u64,
        horizon: Position,
    ) -> Option<EndedThread> {
        let position = *self.positions.first()?;
        let (id, life) = position.archive?;
        let last = self.by_life.get(&(id, life))?;
        if position.archived_ms > archive_cutoff_ms || last.event > horizon {
            return None;
        }
        self.remove(&id, life)
    }

    pub(crate) fn remove(&mut self, id: &ThreadId, life: Life) -> Option<EndedThread> {
        let last = self.by_life.remove(&(*id, life))?;
        self.positions.remove(&ArchivePosition {
            archived_ms: last.archived_ms,
            archive: Some((*id, life)),
        });
        if let Some(owner) = last.living.owner_tag() {
            self.owned.remove(&(owner, *id, life));
        }
        self.ended.remove(&(*id, last.number));
        self.heap_bytes -= last.heap_bytes;
        Some(*last)
    }

    pub(crate) fn of_owner(&self, owner: OwnerTag) -> impl Iterator<Item = (ThreadId, Life)> {
        let from = self.owned.range((owner, ThreadId::MIN, Life(0))..);
        let of_owner = from.take_while(move |(other, ..)| *other == owner);
        of_owner.map(|(_, id, life)| (*id, *life))
    }

    pub(crate) fn shrink(&mut self) {
        if self.by_life.len() < self.by_life.capacity() / 4 {
            self.by_life.shrink_to_fit();
        }
    }
}

impl Heap for EndedThreads {
    fn heap_bytes(&self) -> u64 {
        heap::table::<((ThreadId, Life), Box<EndedThread>)>(self.by_life.capacity())
            + heap::tree::<((ThreadId, u64), Life)>(self.ended.len())
            + heap::tree::<ArchivePosition>(self.positions.len())
            + heap::tree::<(OwnerTag, ThreadId, Life)>(self.owned.len())
            + self.heap_bytes
    }
}
