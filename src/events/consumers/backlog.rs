//! What a slot has before it: a line of events for each subject, of which the first alone is
//! delivered. All rules of order, retries and parking are here; nothing here waits.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use bytes::Bytes;

use super::draft::Draft;
use super::held::{ReplicaBytes, SlotBytes};
use super::place::Place;
use super::record::Record;
use super::timing::Timing;
use crate::domain::heap::{Heap, block};
use crate::domain::{Event, EventTypes, Fingerprint, MOST_KEY_BYTES_NAMED, Position};
use crate::store::{LedgerChange, millis};

/// Events that are pending at most before no more of the log is read.
pub(super) const PENDING_MAX: usize = 1_000;
/// Events that were read and wait for their first attempt, at most before no more is read.
const BUFFERED_MAX: usize = 256;
/// Bytes that an event takes at most. Reading makes room for that much, since the size of an event is
/// known only when it is here.
const EVENT_MAX_BYTES: u64 = block(MOST_KEY_BYTES_NAMED + 4 * 1_024) + size_of::<Item>() as u64;

#[derive(Debug)]
pub(super) struct Backlog {
    timing: Timing,
    places: BTreeMap<u16, Place>,
    lines: HashMap<Fingerprint, Line>,
    /// Threads whose first event may be delivered now.
    ready: VecDeque<Fingerprint>,
    /// Threads whose first event is to be tried again, and when.
    waiting: BTreeSet<(u64, Fingerprint)>,
    draft: Draft,
    pending: usize,
    buffered: usize,
    /// The memory of pending and buffered events.
    bytes: SlotBytes,
}

/// The events of a subject, in order.
#[derive(Debug)]
struct Line {
    items: VecDeque<Item>,
    stage: Stage,
}

#[derive(Debug)]
struct Item {
    record: Record,
    /// Whether it is, or will be with the next commit, pending in the ledger; else the cursor
    /// stays before it.
    is_pending: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Ready,
    Waiting(u64),
    /// The first event is being delivered.
    Busy,
}

/// What became of a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failed {
    /// It is tried again.
    Pending,
    /// It is given up for now.
    Parked,
}

impl Backlog {
    /// That of these logs, handled up to there.
    pub(super) fn new(
        timing: Timing,
        cursors: impl IntoIterator<Item = (u16, Position)>,
        replica: ReplicaBytes,
    ) -> Self {
        let places = cursors.into_iter();
        Self {
            timing,
            places: places.map(|(log, at)| (log, Place::at(at))).collect(),
            lines: HashMap::new(),
            ready: VecDeque::new(),
            waiting: BTreeSet::new(),
            draft: Draft::default(),
            pending: 0,
            buffered: 0,
            bytes: SlotBytes::of(replica),
        }
    }

    /// Where to read on in a log; none: it is not one of the slot's.
    pub(super) fn read(&self, bucket: u16) -> Option<Position> {
        self.places.get(&bucket).map(Place::read)
    }

    /// How many more events may be read, however large they are.
    pub(super) fn room(&self) -> usize {
        if self.pending >= PENDING_MAX {
            return 0;
        }
        let by_number = BUFFERED_MAX.saturating_sub(self.buffered);
        by_number.min(self.bytes.room(EVENT_MAX_BYTES))
    }

    /// Takes events that were read from a log, in order.
    pub(super) fn take(&mut self, events: Vec<Event>, wanted: EventTypes) {
        for event in events {
            let (bucket, position) = (event.id.bucket, event.id.position);
            let Some(place) = self.places.get_mut(&bucket) else {
                continue;
            };
            let line = self.lines.get(&event.subject_digest());
            // after a change of hands the log is read once more
            let is_known = line.is_some_and(|line| line.is_pending_at_or_after(position));
            let is_wanted = wanted.contains(event.event_type()) && !is_known;
            // behind one that is pending it is pending too: the cursor need not wait for it
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
                let subject = event.subject_digest();
                let record = Record::untried(event);
                if is_blocked {
                    self.draft.pend(record.clone());
                    self.pending += 1;
                } else {
                    self.buffered += 1;
                }
                self.append(subject, record, is_blocked);
            }
        }
    }

    /// Notes that a log was read up to there, whatever was found.
    pub(super) fn reach(&mut self, bucket: u16, position: Position) {
        let place = self.places.get_mut(&bucket);
        if place.is_some_and(|place| place.pass(position, true)) {
            self.draft.pass(bucket);
        }
    }

    /// Takes records that the ledger has as pending, but for those that are known.
    pub(super) fn resume(&mut self, records: impl IntoIterator<Item = Record>, now_ms: u64) {
        for record in records {
            let (id, subject) = (record.event.id, record.event.subject_digest());
            let line = self.lines.get(&subject);
            let is_known = line.is_some_and(|line| line.has(&record));
            if is_known || self.draft.has(id) || !self.places.contains_key(&id.bucket) {
                continue;
            }
            self.pending += 1;
            self.insert(subject, record, now_ms);
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

    /// Puts a pending event in its place in the line of its subject.
    fn insert(&mut self, subject: Fingerprint, record: Record, now_ms: u64) {
        let is_pending = true;
        let Some(line) = self.lines.get_mut(&subject) else {
            self.append(subject, record, is_pending);
            return self.settle(subject, now_ms);
        };
        let position = record.event.id.position;
        let place = line
            .items
            .partition_point(|item| item.record.event.id.position < position);
        // nothing overtakes what is on its way
        let place = place.max(usize::from(line.stage == Stage::Busy));
        let item = Item { record, is_pending };
        self.bytes.add(item.bytes());
        line.items.insert(place, item);
        if line.stage != Stage::Busy {
            self.settle(subject, now_ms);
        }
    }

    /// Brings a line to where its first event belongs.
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

    /// The next event to deliver; of its thread no other follows before it has ended.
    pub(super) fn next(&mut self, now_ms: u64) -> Option<Event> {
        while let Some((at, subject)) = self.waiting.first().copied()
            && at <= now_ms
        {
            self.waiting.pop_first();
            self.settle(subject, now_ms);
        }
        let subject = self.ready.pop_front()?;
        let line = self.lines.get_mut(&subject)?;
        line.stage = Stage::Busy;
        line.items.front().map(|item| item.record.event.clone())
    }

    /// When the oldest event was logged that is neither delivered nor given up.
    pub(super) fn oldest_ms(&self) -> Option<u64> {
        let first = self.lines.values().filter_map(|line| line.items.front());
        first.map(|item| item.record.event.id.position.ms).min()
    }

    /// When the next event that failed is to be tried again.
    pub(super) fn next_due_ms(&self) -> Option<u64> {
        self.waiting.first().map(|(at, _)| *at)
    }

    /// Notes that the first event of a thread was delivered, or is not wanted any more.
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

    /// Notes that an attempt at the first event of a thread has failed, of a consumer that does so
    /// since `failing_since_ms`.
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

    /// Whether an event that has just failed is given up: its own time is over, or, of a consumer
    /// that has taken nothing for as long, it is that old, or a long outage would hold up the log
    /// until it loses what nobody has tried.
    fn is_over(&self, record: &Record, now_ms: u64, failing_since_ms: Option<u64>) -> bool {
        let patience_ms = millis(self.timing.patience);
        let is_long_ago = |then_ms: u64| now_ms.saturating_sub(then_ms) >= patience_ms;
        let is_hopeless = !record.replayed
            && failing_since_ms.is_some_and(is_long_ago)
            && is_long_ago(record.event.id.position.ms);
        is_hopeless || record.first_attempt_ms.is_some_and(is_long_ago)
    }

    fn pop(&mut self, subject: Fingerprint) -> Option<Item> {
        let line = self.lines.get_mut(&subject)?;
        line.items.pop_front()
    }

    /// Makes an event pending that stays the first of its line, and with it all behind it.
    fn put_back(&mut self, subject: Fingerprint, item: Item) {
        let Some(line) = self.lines.get_mut(&subject) else {
            return;
        };
        self.draft.pend(item.record.clone());
        line.items.push_front(item);
        for item in &mut line.items {
            if item.is_pending {
                continue;
            }
            item.is_pending = true;
            self.pending += 1;
            self.buffered -= 1;
            self.draft.pend(item.record.clone());
            let id = item.record.event.id;
            if let Some(place) = self.places.get_mut(&id.bucket) {
                place.handle(id.position);
                self.draft.move_cursor(id.bucket);
            }
        }
    }

    /// Counts an item no more.
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

    /// Adds a note of the consumer as a whole to what is to be written down.
    pub(super) fn note(&mut self, note: Bytes) {
        self.draft.note(note);
    }

    /// What is to be written down.
    pub(super) fn draft(&self) -> &Draft {
        &self.draft
    }

    /// Takes out what is to be written down.
    pub(super) fn take_change(&mut self) -> LedgerChange {
        let cursor = |bucket| self.places.get(&bucket).map(Place::cursor);
        self.draft.take(|bucket| cursor(bucket).unwrap_or_default())
    }
}

impl Item {
    /// Its size, which is the same until it is released.
    fn bytes(&self) -> u64 {
        size_of::<Self>() as u64 + self.record.event.heap_bytes()
    }
}

impl Line {
    /// Whether all of it is pending. Behind one that is not, nothing may be: the cursor stays before
    /// that one, and who reads on from there would find it behind what came later.
    fn is_pending(&self) -> bool {
        self.items.iter().all(|item| item.is_pending)
    }

    /// Whether an event of that place or a later one is pending. Then all before it was handled, or
    /// is pending too: nothing is tried before what was logged earlier.
    fn is_pending_at_or_after(&self, position: Position) -> bool {
        let mut items = self.items.iter();
        items.any(|item| item.is_pending && item.record.event.id.position >= position)
    }

    fn has(&self, record: &Record) -> bool {
        let id = record.event.id;
        self.items.iter().any(|item| item.record.event.id == id)
    }
}

#[cfg(test)]
mod tests {
    use super::super::held::SLOT_MAX_BYTES;
    use super::*;
    use crate::domain::scope::ScopeId;
    use crate::domain::{Completed, EventId, EventKind, EventType, Json, Life, ThreadId};

    const HOUR_MS: u64 = 3_600_000;
    const DAY_MS: u64 = 24 * HOUR_MS;

    fn backlog() -> Backlog {
        Backlog::new(
            Timing::DEFAULT,
            [(0, Position::default()), (4, Position::default())],
            ReplicaBytes::default(),
        )
    }

    fn event(thread: ThreadId, bucket: u16, ms: u64) -> Event {
        Event {
            id: EventId {
                bucket,
                position: Position { ms, seq: 0 },
            },
            subject: ScopeId::Thread(thread),
            time_ms: ms,
            life: Life(1),
            version: 1,
            sequence: ms,
            kind: EventKind::Completed(Completed {
                session: "sess_".into(),
                status: 200,
                duration_ms: 1,
            }),
        }
    }

    fn subject(thread: ThreadId) -> Fingerprint {
        event(thread, 0, 0).subject_digest()
    }

    fn take(backlog: &mut Backlog, events: Vec<Event>) {
        backlog.take(events, EventTypes::ALL);
    }

    fn next_ms(backlog: &mut Backlog, now_ms: u64) -> Option<u64> {
        let event = backlog.next(now_ms)?;
        Some(event.id.position.ms)
    }

    fn fail(backlog: &mut Backlog, thread: ThreadId, now_ms: u64) -> Failed {
        backlog.fail(subject(thread), "no".into(), now_ms, None)
    }

    fn ids(records: &[(EventId, Bytes)]) -> Vec<u64> {
        records.iter().map(|(id, _)| id.position.ms).collect()
    }

    #[test]
    fn a_thread_waits_for_its_first_event_and_others_do_not() {
        let (one, other) = (ThreadId::random(), ThreadId::random());
        let mut backlog = backlog();
        take(
            &mut backlog,
            vec![event(one, 0, 1), event(one, 0, 2), event(other, 0, 3)],
        );

        assert_eq!(next_ms(&mut backlog, 9), Some(1));
        assert_eq!(next_ms(&mut backlog, 9), Some(3));
        assert_eq!(next_ms(&mut backlog, 9), None);
        backlog.succeed(subject(one), 9);

        assert_eq!(next_ms(&mut backlog, 9), Some(2));
    }

    #[test]
    fn the_cursor_passes_what_was_delivered_and_what_nobody_wants() {
        let (one, other) = (ThreadId::random(), ThreadId::random());
        let mut backlog = backlog();
        take(&mut backlog, vec![event(one, 0, 1), event(other, 0, 2)]);
        let unwanted = [EventType::ThreadDestroyed].into_iter().collect();
        backlog.take(vec![event(one, 4, 7)], unwanted);
        let cursor = |ms| Position { ms, seq: 0 };

        assert!(!backlog.draft().is_urgent());
        assert_eq!(backlog.take_change().cursors, [(4, cursor(7))]);
        backlog.next(9);
        backlog.next(9);
        backlog.succeed(subject(other), 9);
        assert!(backlog.draft().is_urgent());
        assert_eq!(backlog.take_change().cursors, [(0, cursor(0))]);
        backlog.succeed(subject(one), 9);
        assert_eq!(backlog.take_change().cursors, [(0, cursor(2))]);
        assert!(backlog.draft().is_empty());
    }

    /// What a ledger has as pending after a change.
    fn records(change: &LedgerChange) -> Vec<Record> {
        let records = change.pending.iter();
        let read = records.map(|(_, record)| Record::read(record).unwrap());
        read.collect()
    }

    #[test]
    fn what_is_pending_comes_once_though_the_log_is_read_once_more() {
        let (one, other) = (ThreadId::random(), ThreadId::random());
        let events = || {
            let of_one = [2, 3, 4].map(|ms| event(one, 0, ms));
            let of_other = event(other, 0, 1);
            std::iter::once(of_other).chain(of_one).collect()
        };
        let mut before = backlog();
        take(&mut before, events());
        assert_eq!(next_ms(&mut before, 10), Some(1));
        assert_eq!(next_ms(&mut before, 10), Some(2));
        before.succeed(subject(one), 10);
        assert_eq!(next_ms(&mut before, 10), Some(3));
        fail(&mut before, one, 10);
        let change = before.take_change();
        let cursor = Position::default();
        assert_eq!(change.cursors, [(0, cursor)], "the first hangs");

        let mut after = backlog();
        after.resume(records(&change), 10);
        take(&mut after, events());

        let change = after.take_change();
        assert_eq!(
            ids(&change.pending),
            [0; 0],
            "it is tried as often as before"
        );
        assert_eq!(next_ms(&mut after, 10), Some(1));
        after.succeed(subject(other), 10);
        assert_eq!(next_ms(&mut after, 10), None);
        let due = after.next_due_ms().unwrap();
        assert_eq!(
            next_ms(&mut after, due),
            Some(3),
            "before it all was handled"
        );
        after.succeed(subject(one), due);
        assert_eq!(next_ms(&mut after, due), Some(4));
        after.succeed(subject(one), due);
        assert_eq!(next_ms(&mut after, due), None);
        let change = after.take_change();
        assert_eq!(change.cursors, [(0, Position { ms: 4, seq: 0 })]);
    }

    #[test]
    fn nothing_is_pending_while_an_earlier_event_of_its_thread_is_not() {
        let thread = ThreadId::random();
        let mut backlog = backlog();
        take(&mut backlog, vec![event(thread, 0, 5)]);
        backlog.resume([Record::untried(event(thread, 0, 1)).replayed()], 10);

        take(&mut backlog, vec![event(thread, 0, 6)]);

        assert_eq!(ids(&backlog.take_change().pending), [0; 0]);
        for ms in [1, 5, 6] {
            assert_eq!(next_ms(&mut backlog, 10), Some(ms));
            backlog.succeed(subject(thread), 10);
        }
    }

    #[test]
    fn what_fails_is_pending_with_all_of_its_thread_and_tried_later() {
        let thread = ThreadId::random();
        let mut backlog = backlog();
        take(&mut backlog, vec![event(thread, 0, 1), event(thread, 0, 2)]);
        backlog.next(10);

        fail(&mut backlog, thread, 10);
        take(&mut backlog, vec![event(thread, 0, 3)]);

        let change = backlog.take_change();
        assert_eq!(ids(&change.pending), [1, 2, 3]);
        assert_eq!(change.cursors, [(0, Position { ms: 3, seq: 0 })]);
        assert_eq!(backlog.pending, 3);
        let due_ms = backlog.next_due_ms().unwrap();
        assert!((910..=1_110).contains(&due_ms), "{due_ms}");
        assert_eq!(next_ms(&mut backlog, due_ms - 1), None);
        for ms in 1..=3 {
            assert_eq!(next_ms(&mut backlog, due_ms), Some(ms));
            backlog.succeed(subject(thread), due_ms);
        }
        let done: Vec<_> = backlog.take_change().done;
        assert_eq!(done.len(), 3);
        assert_eq!(backlog.pending, 0);
    }

    #[test]
    fn delays_grow_with_each_failure() {
        let thread = ThreadId::random();
        let mut backlog = backlog();
        take(&mut backlog, vec![event(thread, 0, 1)]);
        let mut now_ms = 10;

        for expected_ms in [1_000, 2_000, 4_000, 8_000] {
            backlog.next(now_ms).unwrap();
            fail(&mut backlog, thread, now_ms);
            let wait_ms = backlog.next_due_ms().unwrap() - now_ms;
            assert!(
                wait_ms.abs_diff(expected_ms) <= expected_ms / 10,
                "{wait_ms}"
            );
            now_ms += wait_ms;
        }
    }

    #[test]
    fn an_event_is_parked_a_day_after_its_first_attempt_and_the_next_goes_on() {
        let thread = ThreadId::random();
        let mut backlog = backlog();
        take(&mut backlog, vec![event(thread, 0, 1), event(thread, 0, 2)]);

        backlog.next(10);
        assert_eq!(fail(&mut backlog, thread, 10), Failed::Pending);
        backlog.next(DAY_MS + 9);
        assert_eq!(fail(&mut backlog, thread, DAY_MS + 9), Failed::Pending);
        backlog.take_change();
        backlog.next(2 * DAY_MS);
        assert_eq!(fail(&mut backlog, thread, 2 * DAY_MS), Failed::Parked);

        let change = backlog.take_change();
        assert_eq!(ids(&change.parked), [1]);
        assert!(change.pending.is_empty());
        assert_eq!(next_ms(&mut backlog, 2 * DAY_MS), Some(2));
    }

    #[test]
    fn an_old_event_of_a_dead_consumer_is_parked_at_once_unless_it_was_replayed() {
        let threads: [_; 3] = std::array::from_fn(|_| ThreadId::random());
        let now_ms = 3 * DAY_MS;
        let since = Some(now_ms - DAY_MS);
        let mut backlog = backlog();
        take(
            &mut backlog,
            vec![
                event(threads[0], 0, 1),
                event(threads[1], 0, now_ms - HOUR_MS),
            ],
        );
        let replayed = Record::untried(event(threads[2], 4, 1)).replayed();
        backlog.resume([replayed], now_ms);
        while backlog.next(now_ms).is_some() {}

        let outcomes =
            threads.map(|thread| backlog.fail(subject(thread), String::new(), now_ms, since));

        assert_eq!(outcomes, [Failed::Parked, Failed::Pending, Failed::Pending]);
    }

    #[test]
    fn a_replayed_event_comes_before_later_ones_of_its_thread() {
        let thread = ThreadId::random();
        let mut backlog = backlog();
        take(&mut backlog, vec![event(thread, 0, 2), event(thread, 0, 3)]);
        backlog.next(10);
        fail(&mut backlog, thread, 10);

        backlog.resume([Record::untried(event(thread, 0, 1))], 10);
        assert_eq!(next_ms(&mut backlog, 10), Some(1));
        backlog.resume([Record::untried(event(thread, 0, 0))], 10);
        assert_eq!(next_ms(&mut backlog, 10), None);

        backlog.succeed(subject(thread), 10);
        assert_eq!(next_ms(&mut backlog, 10), Some(0));
        backlog.succeed(subject(thread), 10);
        assert_eq!(next_ms(&mut backlog, 10), None);
        assert_eq!(next_ms(&mut backlog, 2_000), Some(2));
    }

    #[test]
    fn what_is_known_is_not_resumed_twice() {
        let thread = ThreadId::random();
        let mut backlog = backlog();
        let record = Record::untried(event(thread, 0, 1));
        backlog.resume([record.clone()], 10);
        backlog.resume([record.clone()], 10);
        assert_eq!(backlog.pending, 1);

        backlog.next(10);
        backlog.succeed(subject(thread), 10);
        // done here, which the ledger does not know yet
        backlog.resume([record.clone()], 10);
        assert_eq!(next_ms(&mut backlog, 10), None);

        let foreign = Record::untried(event(thread, 1, 1));
        backlog.resume([foreign], 10);
        assert_eq!(next_ms(&mut backlog, 10), None);
    }

    #[test]
    fn no_more_is_read_while_a_thousand_are_pending() {
        let thread = ThreadId::random();
        let mut backlog = backlog();
        take(&mut backlog, vec![event(thread, 0, 1)]);
        backlog.next(10);
        fail(&mut backlog, thread, 10);
        assert!(backlog.room() > 0);

        let more = (2..=PENDING_MAX as u64).map(|ms| event(thread, 0, ms));
        take(&mut backlog, more.collect());

        assert_eq!(backlog.room(), 0);
    }

    /// An event that names as many bytes of keys as any may.
    fn large_event(thread: ThreadId, ms: u64) -> Event {
        let keys = format!(r#"["{}"]"#, "k".repeat(MOST_KEY_BYTES_NAMED - 4));
        let kind = EventKind::Updated {
            keys: Some(Json::parse(&keys).unwrap()),
            metadata: false,
        };
        Event {
            kind,
            ..event(thread, 0, ms)
        }
    }

    #[test]
    fn large_events_never_take_more_bytes_than_a_slot_may_have() {
        let (failing, other) = (ThreadId::random(), ThreadId::random());
        let mut backlog = backlog();
        let mut logged = 1;
        let mut read_all = |backlog: &mut Backlog| {
            while backlog.room() > 0 {
                let read = (0..backlog.room() as u64).map(|place| {
                    let ms = logged + place;
                    let thread = if ms.is_multiple_of(2) { other } else { failing };
                    large_event(thread, ms)
                });
                let read: Vec<_> = read.collect();
                logged += read.len() as u64;
                backlog.take(read, EventTypes::ALL);
            }
            let items = backlog.lines.values().flat_map(|line| &line.items);
            let bytes: u64 = items.map(|item| item.record.event.heap_bytes()).sum();
            assert!(bytes <= SLOT_MAX_BYTES, "{bytes}");
            assert!(bytes > SLOT_MAX_BYTES / 2, "{bytes}");
        };
        read_all(&mut backlog);
        assert_eq!(next_ms(&mut backlog, 0), Some(1));
        fail(&mut backlog, failing, 0);
        read_all(&mut backlog);

        let mut expected = 2;
        for _ in 0..1_000 {
            read_all(&mut backlog);
            let Some(ms) = next_ms(&mut backlog, 0) else {
                break;
            };
            assert_eq!(ms, expected, "none is left out");
            backlog.succeed(subject(other), 0);
            expected += 2;
        }

        // the thread that fails has taken all the room, until it is delivered
        assert_eq!(backlog.room(), 0);
        let due_ms = backlog.next_due_ms().unwrap();
        for expected in (1..logged).step_by(2) {
            assert_eq!(next_ms(&mut backlog, due_ms), Some(expected));
            backlog.succeed(subject(failing), due_ms);
        }
        assert!(backlog.room() > 0);
        assert_eq!(backlog.bytes.get(), 0);
    }
}
