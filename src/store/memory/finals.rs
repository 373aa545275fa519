//! The final states of one shard's threads.

use std::collections::{BTreeSet, HashMap};
use std::ops::Bound;

use super::living::Living;
use crate::domain::{EndReason, Life, Position, ThreadId};
use crate::store::{Archive, ArchiveHead, ArchivePlace};

/// Final states, those of one id in the order in which the lives ended.
#[derive(Debug, Default)]
pub(super) struct Finals {
    by_id: HashMap<ThreadId, Vec<Final>>,
    places: BTreeSet<ArchivePlace>,
}

/// What is left of a life.
#[derive(Debug)]
pub(super) struct Final {
    pub(super) living: Living,
    pub(super) reason: EndReason,
    pub(super) ended_ms: u64,
    pub(super) archived_ms: u64,
    /// The event of its end.
    pub(super) event: Position,
}

impl Final {
    pub(super) fn head(&self, id: &ThreadId) -> ArchiveHead {
        ArchiveHead {
            id: *id,
            life: self.living.stamp.life,
            version: self.living.stamp.version,
            size_bytes: self.living.document.size_bytes(),
            reason: self.reason,
            ended_ms: self.ended_ms,
            archived_ms: self.archived_ms,
            metadata: self.living.metadata(),
        }
    }

    pub(super) fn archive(&self, id: &ThreadId) -> Archive {
        let mut state = Vec::with_capacity(self.living.document.size_bytes() as usize);
        self.living.document.write_json(&mut state);
        Archive {
            head: self.head(id),
            state: state.into(),
        }
    }
}

impl Finals {
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    pub(super) fn add(&mut self, id: &ThreadId, last: Final) {
        let life = last.living.stamp.life;
        self.places.insert(place(last.archived_ms, id, life));
        self.by_id.entry(*id).or_default().push(last);
    }

    /// That life, or the last one that ended.
    pub(super) fn get(&self, id: &ThreadId, life: Option<Life>) -> Option<&Final> {
        let lives = self.by_id.get(id)?;
        match life {
            Some(life) => lives.iter().find(|last| last.living.stamp.life == life),
            None => lives.last(),
        }
    }

    pub(super) fn remove(&mut self, id: &ThreadId, life: Life) -> Option<Final> {
        let lives = self.by_id.get_mut(id)?;
        let at = lives
            .iter()
            .position(|last| last.living.stamp.life == life)?;
        let last = lives.remove(at);
        if lives.is_empty() {
            self.by_id.remove(id);
        }
        self.places.remove(&place(last.archived_ms, id, life));
        Some(last)
    }

    /// The number of the last event of an id, as far as is known; 0: nothing is.
    pub(super) fn sequence(&self, id: &ThreadId) -> u64 {
        let lives = self.by_id.get(id).map_or(&[][..], Vec::as_slice);
        let sequences = lives.iter().map(|last| last.living.sequence);
        sequences.max().unwrap_or(0)
    }

    /// Places after that one, in order.
    pub(super) fn after(&self, place: &ArchivePlace) -> impl Iterator<Item = &ArchivePlace> {
        self.places
            .range((Bound::Excluded(place), Bound::Unbounded))
    }

    /// Forgets what was archived up to `oldest_ms` and whose event has left the log, at most so
    /// many. Whether there is more.
    pub(super) fn tidy(&mut self, oldest_ms: u64, horizon: Position, most: usize) -> bool {
        for _ in 0..most {
            let Some(&ArchivePlace {
                archived_ms,
                archive: Some((id, life)),
            }) = self.places.first()
            else {
                break;
            };
            let is_wanted = archived_ms > oldest_ms
                || self
                    .get(&id, Some(life))
                    .is_some_and(|last| last.event > horizon);
            if is_wanted {
                // those that follow were archived later, and their events are later ones
                self.shrink();
                return false;
            }
            self.remove(&id, life);
        }
        self.shrink();
        !self.places.is_empty()
    }

    fn shrink(&mut self) {
        if self.by_id.len() < self.by_id.capacity() / 4 {
            self.by_id.shrink_to_fit();
        }
    }
}

fn place(archived_ms: u64, id: &ThreadId, life: Life) -> ArchivePlace {
    ArchivePlace {
        archived_ms,
        archive: Some((*id, life)),
    }
}
