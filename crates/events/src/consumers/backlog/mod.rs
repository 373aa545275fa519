//! The events that a slot (a share of a consumer's work) has yet to deliver. Each subject, such as a thread, has a
//! queue of events, and only the first event of a queue can be delivered. This module decides when an event is
//! delivered, retried or parked, which means set aside until a replay.

mod queue;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use bytes::Bytes;

use queue::{Item, Queue, Stage};

use super::draft::Draft;
use super::progress::LogProgress;
use super::{Record, ReplicaBytes, SlotBytes, Timing};
use threadkeep_domain::heap::block;
use threadkeep_domain::scope::ScopeId;
use threadkeep_domain::{
    Event, EventKind, EventTypes, Fingerprint, NAMED_KEY_BYTES_MAX, Position, subject_digest,
};
use threadkeep_store::{LedgerChange, millis};

/// The slot stops reading the log when this many events wait for a retry, or for an earlier event of the same thread.
pub(super) const PENDING_MAX: usize = 1_000;
/// The slot stops reading the log when it holds this many events that it has not tried to deliver yet.
const BUFFERED_MAX: usize = 256;
/// Maximum size of an event, in bytes. A read reserves this size for each event, because the actual size is known only
/// after the read.
const EVENT_BYTES_MAX: u64 = block(NAMED_KEY_BYTES_MAX + 4 * 1_024) + size_of::<Item>() as u64;

#[derive(Debug)]
pub(super) struct Backlog {
    timing: Timing,
    logs: BTreeMap<u16, LogProgress>,
    queues: HashMap<Fingerprint, Queue>,
    /// Queues of threads that rotated to a new id, by new id. The new id's events wait until the old queue is empty.
    rotated: HashMap<Fingerprint, Fingerprint>,
    ready: VecDeque<Fingerprint>,
    /// Subjects whose first event is waiting for a retry, sorted by the time of the retry.
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
        let cursors = cursors.into_iter();
        Self {
            timing,
            logs: cursors
                .map(|(bucket, cursor)| (bucket, LogProgress::at(cursor)))
                .collect(),
            queues: HashMap::new(),
            rotated: HashMap::new(),
            ready: VecDeque::new(),
            waiting: BTreeSet::new(),
            draft: Draft::default(),
            pending: 0,
            buffered: 0,
            bytes: SlotBytes::of(replica),
        }
    }

    /// Returns the last position that was read from the log of `bucket`, or `None` if the slot does not own that log.
    pub(super) fn read_position(&self, bucket: u16) -> Option<Position> {
        self.logs.get(&bucket).map(LogProgress::read_position)
    }

    /// Returns how many more events may be read if each of them has the maximum size.
    pub(super) fn room(&self) -> usize {
        if self.pending >= PENDING_MAX {
            return 0;
        }
        let by_number = BUFFERED_MAX.saturating_sub(self.buffered);
        by_number.min(self.bytes.room(EVENT_BYTES_MAX))
    }

    pub(super) fn take(&mut self, events: Vec<Event>, types: EventTypes) {
        for event in events {
            let (bucket, position) = (event.id.bucket, event.id.position);
            let subject = self.queue_of(&event);
            let Some(log) = self.logs.get_mut(&bucket) else {
                continue;
            };
            let queue = self.queues.get(&subject);
            // a new lease holder reads the log again
            let is_duplicate = queue.is_some_and(|queue| queue.is_pending_at_or_after(position));
            // if the thread rotates, the events of its new id must wait for the events in this queue
            let is_link = is_rotation(&event) && queue.is_some();
            let is_wanted = (types.contains(event.event_type()) || is_link) && !is_duplicate;
            // the ledger also stores an event that waits behind a pending event, so the cursor can pass both events
            let is_blocked = queue.is_some_and(Queue::is_pending);
            if !log.pass(position, !is_wanted || is_blocked) {
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
        let log = self.logs.get_mut(&bucket);
        if log.is_some_and(|log| log.pass(position, true)) {
            self.draft.pass(bucket);
        }
    }

    /// Adds the pending records of the consumer's ledger, except those that the backlog already contains.
    pub(super) fn resume(&mut self, records: impl IntoIterator<Item = Record>, now_ms: u64) {
        for record in records {
            let (id, subject) = (record.event.id, self.queue_of(&record.event));
            let queue = self.queues.get(&subject);
            let is_queued = queue.is_some_and(|queue| queue.has(&record));
            if is_queued || self.draft.has(id) || !self.logs.contains_key(&id.bucket) {
                continue;
            }
            self.pending += 1;
            self.insert(subject, record, now_ms);
        }
    }

    fn queue_of(&self, event: &Event) -> Fingerprint {
        let subject = event.subject_digest();
        self.rotated.get(&subject).copied().unwrap_or(subject)
    }

    /// If a thread rotates, makes the events of its new id wait in the old id's queue until that queue is empty.
    fn follow(&mut self, queue: Fingerprint, event: &Event) {
        if let EventKind::Rotated { to } = &event.kind {
            let new = subject_digest(&ScopeId::Thread(*to));
            if !self.queues.contains_key(&new) {
                self.rotated.insert(new, queue);
            }
        }
    }

    fn append(&mut self, subject: Fingerprint, record: Record, is_pending: bool) {
        let item = Item { record, is_pending };
        self.bytes.add(item.bytes());
        match self.queues.get_mut(&subject) {
            Some(queue) => queue.items.push_back(item),
            None => {
                self.ready.push_back(subject);
                let items = VecDeque::from([item]);
                let stage = Stage::Ready;
                self.queues.insert(subject, Queue { items, stage });
            }
        }
    }

    fn insert(&mut self, subject: Fingerprint, record: Record, now_ms: u64) {
        self.follow(subject, &record.event);
        let is_pending = true;
        let Some(queue) = self.queues.get_mut(&subject) else {
            self.append(subject, record, is_pending);
            return self.settle(subject, now_ms);
        };
        let position = record.event.id.position;
        let index = queue
            .items
            .partition_point(|item| item.record.event.id.position < position);
        // an event in flight remains first
        let index = index.max(usize::from(queue.stage == Stage::Busy));
        let item = Item { record, is_pending };
        self.bytes.add(item.bytes());
        queue.items.insert(index, item);
        if queue.stage != Stage::Busy {
            self.settle(subject, now_ms);
        }
    }

    fn settle(&mut self, subject: Fingerprint, now_ms: u64) {
        let Some(queue) = self.queues.get_mut(&subject) else {
            return;
        };
        if let Stage::Waiting(until) = queue.stage {
            self.waiting.remove(&(until, subject));
        }
        let was_ready = queue.stage == Stage::Ready;
        let Some(first) = queue.items.front() else {
            self.queues.remove(&subject);
            self.rotated.retain(|_, queue| *queue != subject);
            return;
        };
        let at = first.record.next_attempt_ms;
        if at > now_ms {
            queue.stage = Stage::Waiting(at);
            self.waiting.insert((at, subject));
            if was_ready {
                self.ready.retain(|ready| *ready != subject);
            }
        } else if !was_ready {
            queue.stage = Stage::Ready;
            self.ready.push_back(subject);
        }
    }

    /// Returns the next event to deliver, and its queue. The queue is blocked until `succeed` or `fail` is called.
    pub(super) fn next(&mut self, now_ms: u64) -> Option<(Fingerprint, Event)> {
        while let Some((at, subject)) = self.waiting.first().copied()
            && at <= now_ms
        {
            self.waiting.pop_first();
            self.settle(subject, now_ms);
        }
        let subject = self.ready.pop_front()?;
        let queue = self.queues.get_mut(&subject)?;
        queue.stage = Stage::Busy;
        let first = queue.items.front()?;
        Some((subject, first.record.event.clone()))
    }

    /// Returns when the oldest event that is neither delivered nor parked was logged.
    pub(super) fn oldest_ms(&self) -> Option<u64> {
        let first = self.queues.values().filter_map(|queue| queue.items.front());
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
        if self.should_park(&item.record, now_ms, failing_since_ms) {
            self.draft.park(item.record.clone());
            self.release(&item);
            self.settle(subject, now_ms);
            return Failed::Parked;
        }
        self.put_back(subject, item);
        self.settle(subject, now_ms);
        Failed::Pending
    }

    /// Returns whether to park an event that has just failed: either its retry period is over, or both the event and
    /// its consumer's outage are older than that period. Without the second rule, the slot would stop reading during a
    /// long outage, and the log would delete events that were never attempted.
    fn should_park(&self, record: &Record, now_ms: u64, failing_since_ms: Option<u64>) -> bool {
        let give_up_ms = millis(self.timing.give_up_after);
        let is_long_ago = |then_ms: u64| now_ms.saturating_sub(then_ms) >= give_up_ms;
        let is_permanent = !record.replayed
            && failing_since_ms.is_some_and(is_long_ago)
            && is_long_ago(record.event.id.position.ms);
        is_permanent || record.first_attempt_ms.is_some_and(is_long_ago)
    }

    fn pop(&mut self, subject: Fingerprint) -> Option<Item> {
        let queue = self.queues.get_mut(&subject)?;
        queue.items.pop_front()
    }

    /// Puts a failed event back at the front of its queue, and marks all events of the queue as pending.
    fn put_back(&mut self, subject: Fingerprint, item: Item) {
        let Some(queue) = self.queues.get_mut(&subject) else {
            return;
        };
        self.draft.make_pending(item.record.clone());
        queue.items.push_front(item);
        for item in &mut queue.items {
            if item.is_pending {
                continue;
            }
            item.is_pending = true;
            self.pending += 1;
            self.buffered -= 1;
            self.draft.make_pending(item.record.clone());
            let id = item.record.event.id;
            if let Some(log) = self.logs.get_mut(&id.bucket) {
                log.handle(id.position);
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
        if let Some(log) = self.logs.get_mut(&id.bucket) {
            log.handle(id.position);
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
        let cursor = |bucket| self.logs.get(&bucket).map(LogProgress::cursor);
        self.draft.take(|bucket| cursor(bucket).unwrap_or_default())
    }
}

fn is_rotation(event: &Event) -> bool {
    matches!(event.kind, EventKind::Rotated { .. })
}

#[cfg(test)]
mod tests;
