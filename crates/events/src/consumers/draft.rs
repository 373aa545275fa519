use std::collections::{BTreeMap, BTreeSet};
use std::mem;

use bytes::Bytes;

use super::Record;
use threadkeep_domain::{EventId, Position};
use threadkeep_store::LedgerChange;

/// Changes since the last commit: the latest outcome of each event.
#[derive(Debug, Default)]
pub(super) struct Draft {
    moved: BTreeSet<u16>,
    /// True if the changes include more than skipped events.
    is_urgent: bool,
    outcomes: BTreeMap<EventId, Outcome>,
    note: Option<Bytes>,
}

#[derive(Debug)]
enum Outcome {
    Pending(Record),
    Done,
    Parked(Record),
}

impl Draft {
    pub(super) fn is_empty(&self) -> bool {
        self.moved.is_empty() && self.outcomes.is_empty() && self.note.is_none()
    }

    pub(super) fn has(&self, id: EventId) -> bool {
        self.outcomes.contains_key(&id)
    }

    pub(super) fn is_urgent(&self) -> bool {
        self.is_urgent
    }

    pub(super) fn pass(&mut self, bucket: u16) {
        self.moved.insert(bucket);
    }

    pub(super) fn move_cursor(&mut self, bucket: u16) {
        self.moved.insert(bucket);
        self.is_urgent = true;
    }

    pub(super) fn make_pending(&mut self, record: Record) {
        self.is_urgent = true;
        self.outcomes
            .insert(record.event.id, Outcome::Pending(record));
    }

    pub(super) fn finish(&mut self, id: EventId) {
        self.is_urgent = true;
        self.outcomes.insert(id, Outcome::Done);
    }

    pub(super) fn park(&mut self, record: Record) {
        self.is_urgent = true;
        self.outcomes
            .insert(record.event.id, Outcome::Parked(record));
    }

    pub(super) fn note(&mut self, note: Bytes) {
        self.note = Some(note);
    }

    pub(super) fn take(&mut self, cursor: impl Fn(u16) -> Position) -> LedgerChange {
        self.is_urgent = false;
        let moved = mem::take(&mut self.moved).into_iter();
        let mut change = LedgerChange {
            cursors: moved.map(|bucket| (bucket, cursor(bucket))).collect(),
            note: self.note.take(),
            ..LedgerChange::default()
        };
        for (id, outcome) in mem::take(&mut self.outcomes) {
            match outcome {
                Outcome::Pending(record) => change.pending.push((id, record.to_bytes())),
                Outcome::Done => change.done.push(id),
                Outcome::Parked(record) => change.parked.push((id, record.to_bytes())),
            }
        }
        change
    }
}
