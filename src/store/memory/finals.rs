//! The final states of one shard's threads.

use std::collections::{BTreeSet, HashMap};
use std::ops::Bound;

use super::living::Living;
use crate::domain::scope::HistorySummary;
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
    /// It is there for that event alone.
    pub(super) is_restored: bool,
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
            history: self.history(),
        }
    }

    fn history(&self) -> HistorySummary {
        let scope = self.living.scope.as_ref();
        scope.map_or(HistorySummary::EMPTY, |scope| scope.history())
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
        self.places.insert(ArchivePlace {
            archived_ms: last.archived_ms,
            archive: Some((*id, last.living.stamp.life)),
        });
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

    pub(super) fn get_mut(&mut self, id: &ThreadId, life: Life) -> Option<&mut Final> {
        let mut lives = self.by_id.get_mut(id)?.iter_mut();
        lives.find(|last| last.living.stamp.life == life)
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

    /// Moves what was archived up to `too_old_ms` and whose event has left the log into `gone`, at
    /// most so many. Whether there is more.
    pub(super) fn tidy(
        &mut self,
        too_old_ms: u64,
        horizon: Position,
        most: usize,
        gone: &mut Vec<Final>,
    ) -> bool {
        for _ in 0..most {
            match self.places.first().copied() {
                Some(place) if !self.is_wanted(&place, too_old_ms, horizon) => {
                    gone.extend(self.remove(&place));
                }
                // those that follow were archived later, and their events are later ones
                _ => {
                    self.shrink();
                    return false;
                }
            }
        }
        true
    }

    fn is_wanted(&self, place: &ArchivePlace, too_old_ms: u64, horizon: Position) -> bool {
        let archive = place.archive.as_ref();
        let last = archive.and_then(|(id, life)| self.get(id, Some(*life)));
        place.archived_ms > too_old_ms || last.is_some_and(|last| last.event > horizon)
    }

    fn remove(&mut self, place: &ArchivePlace) -> Option<Final> {
        self.places.remove(place);
        let (id, life) = place.archive.as_ref()?;
        let lives = self.by_id.get_mut(id)?;
        let is_it = |last: &Final| last.living.stamp.life == *life;
        let removed = lives.iter().position(is_it).map(|at| lives.remove(at));
        if lives.is_empty() {
            self.by_id.remove(id);
        }
        removed
    }

    fn shrink(&mut self) {
        if self.by_id.len() < self.by_id.capacity() / 4 {
            self.by_id.shrink_to_fit();
        }
    }
}
