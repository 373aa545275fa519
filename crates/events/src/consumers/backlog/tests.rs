use super::super::byte_limits::SLOT_BYTES_MAX;
use super::*;
use threadkeep_domain::heap::Heap;
use threadkeep_domain::scope::ScopeId;
use threadkeep_domain::{Completed, EventId, EventKind, EventType, Json, Life, ThreadId};

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
        trace: None,
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
    let (_, event) = backlog.next(now_ms)?;
    Some(event.id.position.ms)
}

fn fail(backlog: &mut Backlog, thread: ThreadId, now_ms: u64) -> Failed {
    backlog.fail(subject(thread), "no".into(), now_ms, None)
}

fn ids(records: &[(EventId, Bytes)]) -> Vec<u64> {
    records.iter().map(|(id, _)| id.position.ms).collect()
}

#[test]
fn a_thread_waits_for_its_first_event_without_blocking_others() {
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
fn the_cursor_passes_delivered_and_unwanted_events() {
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

fn records(change: &LedgerChange) -> Vec<Record> {
    let records = change.pending.iter();
    let read = records.map(|(_, record)| Record::read(record).unwrap());
    read.collect()
}

#[test]
fn pending_events_are_delivered_once_when_the_log_is_reread() {
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
    assert_eq!(
        change.cursors,
        [(0, cursor)],
        "the first event is still in flight"
    );

    let mut after = backlog();
    after.resume(records(&change), 10);
    take(&mut after, events());

    let change = after.take_change();
    assert_eq!(ids(&change.pending), [0; 0], "no record is written again");
    assert_eq!(next_ms(&mut after, 10), Some(1));
    after.succeed(subject(other), 10);
    assert_eq!(next_ms(&mut after, 10), None);
    let due = after.next_due_ms().unwrap();
    assert_eq!(
        next_ms(&mut after, due),
        Some(3),
        "all earlier events were handled"
    );
    after.succeed(subject(one), due);
    assert_eq!(next_ms(&mut after, due), Some(4));
    after.succeed(subject(one), due);
    assert_eq!(next_ms(&mut after, due), None);
    let change = after.take_change();
    assert_eq!(change.cursors, [(0, Position { ms: 4, seq: 0 })]);
}

#[test]
fn an_event_does_not_become_pending_before_an_earlier_one() {
    let thread = ThreadId::random();
    let mut backlog = backlog();
    take(&mut backlog, vec![event(thread, 0, 5)]);
    backlog.resume(
        [Record::without_attempts(event(thread, 0, 1)).replayed()],
        10,
    );

    take(&mut backlog, vec![event(thread, 0, 6)]);

    assert_eq!(ids(&backlog.take_change().pending), [0; 0]);
    for ms in [1, 5, 6] {
        assert_eq!(next_ms(&mut backlog, 10), Some(ms));
        backlog.succeed(subject(thread), 10);
    }
}

#[test]
fn a_failure_makes_all_events_of_its_thread_pending() {
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
fn an_event_is_parked_a_day_after_its_first_attempt() {
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
fn an_old_event_of_a_failing_consumer_is_parked_immediately_unless_replayed() {
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
    let replayed = Record::without_attempts(event(threads[2], 4, 1)).replayed();
    backlog.resume([replayed], now_ms);
    while backlog.next(now_ms).is_some() {}

    let outcomes =
        threads.map(|thread| backlog.fail(subject(thread), String::new(), now_ms, since));

    assert_eq!(outcomes, [Failed::Parked, Failed::Pending, Failed::Pending]);
}

#[test]
fn a_replayed_event_precedes_later_events_of_its_thread() {
    let thread = ThreadId::random();
    let mut backlog = backlog();
    take(&mut backlog, vec![event(thread, 0, 2), event(thread, 0, 3)]);
    backlog.next(10);
    fail(&mut backlog, thread, 10);

    backlog.resume([Record::without_attempts(event(thread, 0, 1))], 10);
    assert_eq!(next_ms(&mut backlog, 10), Some(1));
    backlog.resume([Record::without_attempts(event(thread, 0, 0))], 10);
    assert_eq!(next_ms(&mut backlog, 10), None);

    backlog.succeed(subject(thread), 10);
    assert_eq!(next_ms(&mut backlog, 10), Some(0));
    backlog.succeed(subject(thread), 10);
    assert_eq!(next_ms(&mut backlog, 10), None);
    assert_eq!(next_ms(&mut backlog, 2_000), Some(2));
}

#[test]
fn a_known_record_is_not_resumed_again() {
    let thread = ThreadId::random();
    let mut backlog = backlog();
    let record = Record::without_attempts(event(thread, 0, 1));
    backlog.resume([record.clone()], 10);
    backlog.resume([record.clone()], 10);
    assert_eq!(backlog.pending, 1);

    backlog.next(10);
    backlog.succeed(subject(thread), 10);
    // done here, but still pending in the ledger
    backlog.resume([record.clone()], 10);
    assert_eq!(next_ms(&mut backlog, 10), None);

    let foreign = Record::without_attempts(event(thread, 1, 1));
    backlog.resume([foreign], 10);
    assert_eq!(next_ms(&mut backlog, 10), None);
}

#[test]
fn reading_stops_at_a_thousand_pending_events() {
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

fn large_event(thread: ThreadId, ms: u64) -> Event {
    let keys = format!(r#"["{}"]"#, "k".repeat(NAMED_KEY_BYTES_MAX - 4));
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
fn large_events_stay_within_the_byte_limit_of_a_slot() {
    let (failing, other) = (ThreadId::random(), ThreadId::random());
    let mut backlog = backlog();
    let mut logged = 1;
    let mut read_all = |backlog: &mut Backlog| {
        while backlog.room() > 0 {
            let read = (0..backlog.room() as u64).map(|offset| {
                let ms = logged + offset;
                let thread = if ms.is_multiple_of(2) { other } else { failing };
                large_event(thread, ms)
            });
            let read: Vec<_> = read.collect();
            logged += read.len() as u64;
            backlog.take(read, EventTypes::ALL);
        }
        let items = backlog.queues.values().flat_map(|queue| &queue.items);
        let bytes: u64 = items.map(|item| item.record.event.heap_bytes()).sum();
        assert!(bytes <= SLOT_BYTES_MAX, "{bytes}");
        assert!(bytes > SLOT_BYTES_MAX / 2, "{bytes}");
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
        assert_eq!(ms, expected, "no event is skipped");
        backlog.succeed(subject(other), 0);
        expected += 2;
    }

    // the failing thread's events take up all the space until the first of these events is delivered
    assert_eq!(backlog.room(), 0);
    let due_ms = backlog.next_due_ms().unwrap();
    for expected in (1..logged).step_by(2) {
        assert_eq!(next_ms(&mut backlog, due_ms), Some(expected));
        backlog.succeed(subject(failing), due_ms);
    }
    assert!(backlog.room() > 0);
    assert_eq!(backlog.bytes.get(), 0);
}

fn rotated(thread: ThreadId, to: ThreadId, ms: u64) -> Event {
    Event {
        kind: EventKind::Rotated { to },
        ..event(thread, 0, ms)
    }
}

#[test]
fn events_of_a_new_id_wait_for_events_of_the_old_id() {
    let [old, new, newest] = [(); 3].map(|()| ThreadId::random());
    for wants_rotations in [true, false] {
        let mut backlog = backlog();
        let mut types: Vec<_> = EventTypes::ALL.iter().collect();
        types.retain(|kind| wants_rotations || *kind != EventType::ThreadRotated);
        let wanted = types.into_iter().collect();
        let events = vec![
            event(old, 0, 1),
            rotated(old, new, 2),
            event(new, 0, 3),
            rotated(new, newest, 4),
            event(newest, 0, 5),
            event(old, 0, 6),
        ];
        backlog.take(events, wanted);

        for ms in 1..=6 {
            assert_eq!(next_ms(&mut backlog, 9), Some(ms));
            assert_eq!(next_ms(&mut backlog, 9), None);
            backlog.succeed(subject(old), 9);
        }
        take(&mut backlog, vec![event(newest, 0, 7)]);
        assert_eq!(next_ms(&mut backlog, 9), Some(7));
        backlog.succeed(subject(newest), 9);
        assert!(backlog.rotated.is_empty() && backlog.queues.is_empty());
    }
}

#[test]
fn another_lease_holder_keeps_the_order_of_a_rotated_thread() {
    let [old, new] = [(); 2].map(|()| ThreadId::random());
    let mut first = backlog();
    let wanted = [EventType::SessionCompleted].into_iter().collect();
    first.take(vec![event(old, 0, 1)], wanted);
    assert_eq!(next_ms(&mut first, 1), Some(1));
    assert_eq!(fail(&mut first, old, 1), Failed::Pending);
    first.take(vec![rotated(old, new, 2), event(new, 0, 3)], wanted);
    let change = first.take_change();
    assert_eq!(ids(&change.pending), [1, 2, 3]);

    let mut second = backlog();
    let records = change.pending.iter();
    let mut records: Vec<_> = records
        .map(|(_, record)| Record::read(record).unwrap())
        .collect();
    records.sort_by_key(|record| record.event.id.position);
    second.resume(records, HOUR_MS);

    for ms in 1..=3 {
        assert_eq!(next_ms(&mut second, HOUR_MS), Some(ms));
        assert_eq!(next_ms(&mut second, HOUR_MS), None);
        second.succeed(subject(old), HOUR_MS);
    }
}

#[test]
fn an_unwanted_rotation_without_waiting_events_is_skipped() {
    let [old, new] = [(); 2].map(|()| ThreadId::random());
    let mut backlog = backlog();
    let wanted = [EventType::SessionCompleted].into_iter().collect();

    backlog.take(vec![rotated(old, new, 1), event(new, 0, 2)], wanted);

    assert_eq!(next_ms(&mut backlog, 9), Some(2));
    assert!(backlog.rotated.is_empty());
}
