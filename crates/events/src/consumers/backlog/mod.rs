//! The backlog of a slot, with one line of events per subject. Only the first event in a line can be delivered. This
//! module contains all rules for order, retries and parking. Its functions never wait.

mod line;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use bytes::Bytes;

use line::{Item, Line, Stage};

use super::draft::Draft;
use super::progress::LogProgress;
use super::{Record, ReplicaBytes, SlotBytes, Timing};
use threadkeep_domain::heap::block;
use threadkeep_domain::scope::ScopeId;
use threadkeep_domain::{
    Event, EventKind, EventTypes, Fingerprint, NAMED_KEY_BYTES_MAX, Position, subject_digest,
};
use threadkeep_store::{LedgerChange, millis};

/// Number of pending events at which the slot stops reading the log.
pub(super) const PENDING_MAX: usize = 1_000;
/// Number of unattempted events at which the slot stops reading the log.
const BUFFERED_MAX: usize = 256;
/// Maximum size of an event, in bytes. A read reserves this size for each event, because the actual size is known only
/// after the read.
const EVENT_MAX_BYTES: u64 = block(NAMED_KEY_BYTES_MAX + 4 * 1_024) + size_of::<Item>() as u64;

#[derive(Debug)]
pub(super) struct Backlog {
    timing: Timing,
    places: BTreeMap<u16, LogProgress>,
    lines: HashMap<Fingerprint, Line>,
    /// The lines of rotated threads, by new id. Events of a new id wait in the line of the old id until that line is
    /// empty.
    moved: HashMap<Fingerprint, Fingerprint>,
    ready: VecDeque<Fingerprint>,
    /// Threads whose first event is waiting for a retry, sorted by the time of the retry.
    waiting: BTreeSet<(u64, Fingerprint)>,
    draft: Draft,
    pending: usize,
    buffered: usize,
    bytes: SlotBytes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failed {
    Pending,
    Parked,
}

impl Backlog {
    pub(super) fn new(
        timing: Timing,
        cursors: impl IntoIterator<Item = (u16, Position)>,
        replica: ReplicaBytes,
    ) -> Self {
        let places = cursors.into_iter();
        Self {
            timing,
            places: places.map(|(log, at)| (log, LogProgress::at(at))).collect(),
            lines: HashMap::new(),
            moved: HashMap::new(),
            ready: VecDeque::new(),
            waiting: BTreeSet::new(),
            draft: Draft::default(),
            pending: 0,
            buffered: 0,
            bytes: SlotBytes::of(replica),
        }
    }

    /// Returns the position to continue reading from, or `None` if the slot does not own the log.
    pub(super) fn read(&self, bucket: u16) -> Option<Position> {
        self.places.get(&bucket).map(LogProgress::read)
    }

    /// Returns how many more events may be read if each of them has the maximum size.
    pub(super) fn room(&self) -> usize {
        if self.pending >= PENDING_MAX {
            return 0;
        }
        let by_number = BUFFERED_MAX.saturating_sub(self.buffered);
        by_number.min(self.bytes.room(EVENT_MAX_BYTES))
    }

    pub(super) fn take(&mut self, events: Vec<Event>, wanted: EventTypes) {
        for event in events {
            let (bucket, position) = (event.id.bucket, event.id.position);
            let subject = self.line_of(&event);
            let Some(place) = self.places.get_mut(&bucket) else {
                continue;
            };
            let line = self.lines.get(&subject);
            // a new lease holder reads the log again
            let is_known = line.is_some_and(|line| line.is_pending_at_or_after(position));
            // events of the new id must wait for the events in this line
            let is_link = is_move(&event) && line.is_some();
            let is_wanted = (wanted.contains(event.event_type()) || is_link) && !is_known;
            // an event behind a pending event is pending too, so the cursor can pass it
            let is_blocked = line.is_some_and(Line::is_pending);
            if !place.pass(position, !is_wanted || is_blocked) {
                continue;
            }
            if is_blocked {
                self.draft.move_cursor(bucket);
            } else if !is_wanted {
                self.draft.pass(bucket);
            }
            if is_wanted {
                let record = Record::without_attempts(event);
                if is_blocked {
                    self.draft.make_pending(record.clone());
                    self.pending += 1;
                } else {
                    self.buffered += 1;
                }
                self.follow(subject, &record.event);
                self.append(subject, record, is_blocked);
            }
        }
    }

    pub(super) fn reach(&mut self, bucket: u16, position: Position) {
        let place = self.places.get_mut(&bucket);
        if place.is_some_and(|place| place.pass(position, true)) {
            self.draft.pass(bucket);
        }
    }

    /// Adds the ledger's pending records, except those that the backlog already contains.
    pub(super) fn resume(&mut self, records: impl IntoIterator<Item = Record>, now_ms: u64) {
        for record in records {
            let (id, subject) = (record.event.id, self.line_of(&record.event));
            let line = self.lines.get(&subject);
            let is_known = line.is_some_and(|line| line.has(&record));
            if is_known || self.draft.has(id) || !self.places.contains_key(&id.bucket) {
                continue;
            }
            self.pending += 1;
            self.insert(subject, record, now_ms);
        }
    }

    fn line_of(&self, event: &Event) -> Fingerprint {
        let subject = event.subject_digest();
        self.moved.get(&subject).copied().unwrap_or(subject)
    }

    /// Makes the events of a rotated thread wait in the line of the old id until that line is empty.
    fn follow(&mut self, line: Fingerprint, event: &Event) {
        if let EventKind::Rotated { to } = &event.kind {
            let new = subject_digest(&ScopeId::Thread(*to));
            if !self.lines.contains_key(&new) {
                self.moved.insert(new, line);
            }
        }
    }

    fn append(&mut self, subject: Fingerprint, record: Record, is_pending: bool) {
        let item = Item { record, is_pending };
        self.bytes.add(item.bytes());
        match self.lines.get_mut(&subject) {
            Some(line) => line.items.push_back(item),
            None => {
                self.ready.push_back(subject);
                let items = VecDeque::from([item]);
                let stage = Stage::Ready;
                self.lines.insert(subject, Line { items, stage });
            }
        }
    }

    fn insert(&mut self, subject: Fingerprint, record: Record, now_ms: u64) {
        self.follow(subject, &record.event);
        let is_pending = true;
        let Some(line) = self.lines.get_mut(&subject) else {
            self.append(subject, record, is_pending);
            return self.settle(subject, now_ms);
        };
        let position = record.event.id.position;
        let place = line
            .items
            .partition_point(|item| item.record.event.id.position < position);
        // an event in flight remains first
        let place = place.max(usize::from(line.stage == Stage::Busy));
        let item = Item { record, is_pending };
        self.bytes.add(item.bytes());
        line.items.insert(place, item);
        if line.stage != Stage::Busy {
            self.settle(subject, now_ms);
        }
    }

    fn settle(&mut self, subject: Fingerprint, now_ms: u64) {
        let Some(line) = self.lines.get_mut(&subject) else {
            return;
        };
        if let Stage::Waiting(until) = line.stage {
            self.waiting.remove(&(until, subject));
        }
        let was_ready = line.stage == Stage::Ready;
        let Some(first) = line.items.front() else {
            self.lines.remove(&subject);
            self.moved.retain(|_, line| *line != subject);
            return;
        };
        let at = first.record.next_attempt_ms;
        if at > now_ms {
            line.stage = Stage::Waiting(at);
            self.waiting.insert((at, subject));
            if was_ready {
                self.ready.retain(|ready| *ready != subject);
            }
        } else if !was_ready {
            line.stage = Stage::Ready;
            self.ready.push_back(subject);
        }
    }

    /// Returns the next event to deliver, and its line. The line is blocked until the event is done.
    pub(super) fn next(&mut self, now_ms: u64) -> Option<(Fingerprint, Event)> {
        while let Some((at, subject)) = self.waiting.first().copied()
            && at <= now_ms
        {
            self.waiting.pop_first();
            self.settle(subject, now_ms);
        }
        let subject = self.ready.pop_front()?;
        let line = self.lines.get_mut(&subject)?;
        line.stage = Stage::Busy;
        let first = line.items.front()?;
        Some((subject, first.record.event.clone()))
    }

    /// Returns the log time of the oldest event that is neither delivered nor parked.
    pub(super) fn oldest_ms(&self) -> Option<u64> {
        let first = self.lines.values().filter_map(|line| line.items.front());
        first.map(|item| item.record.event.id.position.ms).min()
    }

    pub(super) fn next_due_ms(&self) -> Option<u64> {
        self.waiting.first().map(|(at, _)| *at)
    }

    pub(super) fn succeed(&mut self, subject: Fingerprint, now_ms: u64) {
        if let Some(item) = self.pop(subject) {
            let id = item.record.event.id;
            if item.is_pending {
                self.draft.finish(id);
            }
            self.release(&item);
            self.settle(subject, now_ms);
        }
    }

    pub(super) fn fail(
        &mut self,
        subject: Fingerprint,
        error: String,
        now_ms: u64,
        failing_since_ms: Option<u64>,
    ) -> Failed {
        let Some(mut item) = self.pop(subject) else {
            return Failed::Pending;
        };
        let record = &mut item.record;
        record.attempts = record.attempts.saturating_add(1);
        record.first_attempt_ms.get_or_insert(now_ms);
        record.last_error = Some(error);
        record.next_attempt_ms = now_ms + millis(self.timing.delay(record.attempts));
        if self.is_over(&item.record, now_ms, failing_since_ms) {
            self.draft.park(item.record.clone());
            self.release(&item);
            self.settle(subject, now_ms);
            return Failed::Parked;
        }
        self.put_back(subject, item);
        self.settle(subject, now_ms);
        Failed::Pending
    }

    /// Returns whether to park an event that has just failed. An event is parked when its retry period is over. It is
    /// also parked when both the event and the outage of its consumer are older than that period. Otherwise, the slot
    /// would stop reading during a long outage, and the log would drop unattempted events.
    fn is_over(&self, record: &Record, now_ms: u64, failing_since_ms: Option<u64>) -> bool {
        let give_up_ms = millis(self.timing.give_up_after);
        let is_long_ago = |then_ms: u64| now_ms.saturating_sub(then_ms) >= give_up_ms;
        let is_permanent = !record.replayed
            && failing_since_ms.is_some_and(is_long_ago)
            && is_long_ago(record.event.id.position.ms);
        is_permanent || record.first_attempt_ms.is_some_and(is_long_ago)
    }

    fn pop(&mut self, subject: Fingerprint) -> Option<Item> {
        let line = self.lines.get_mut(&subject)?;
        line.items.pop_front()
    }

    /// Puts a failed event back at the front of its line, and makes all events of the line pending.
    fn put_back(&mut self, subject: Fingerprint, item: Item) {
        let Some(line) = self.lines.get_mut(&subject) else {
            return;
        };
        self.draft.make_pending(item.record.clone());
        line.items.push_front(item);
        for item in &mut line.items {
            if item.is_pending {
                continue;
            }
            item.is_pending = true;
            self.pending += 1;
            self.buffered -= 1;
            self.draft.make_pending(item.record.clone());
            let id = item.record.event.id;
            if let Some(place) = self.places.get_mut(&id.bucket) {
                place.handle(id.position);
                self.draft.move_cursor(id.bucket);
            }
        }
    }

    fn release(&mut self, item: &Item) {
        self.bytes.subtract(item.bytes());
        if item.is_pending {
            self.pending -= 1;
            return;
        }
        self.buffered -= 1;
        let id = item.record.event.id;
        if let Some(place) = self.places.get_mut(&id.bucket) {
            place.handle(id.position);
            self.draft.move_cursor(id.bucket);
        }
    }

    pub(super) fn note(&mut self, note: Bytes) {
        self.draft.note(note);
    }

    pub(super) fn draft(&self) -> &Draft {
        &self.draft
    }

    pub(super) fn take_change(&mut self) -> LedgerChange {
        let cursor = |bucket| self.places.get(&bucket).map(LogProgress::cursor);
        self.draft.take(|bucket| cursor(bucket).unwrap_or_default())
    }
}

fn is_move(event: &Event) -> bool {
    matches!(event.kind, EventKind::Rotated { .. })
}

#[cfg(test)]
mod tests;
