//! Ledgers, which store the progress of durable consumers. Writes are atomic, and only the lease holder can write.

use std::collections::HashSet;
use std::time::Duration;

use bytes::Bytes;
use threadkeep_domain::{EventId, Position};
use threadkeep_store::{Holding, Ledger, LedgerChange, LedgerSignals, PendingEvents};

use super::room::Room;

const LEASE: Duration = Duration::from_secs(10);
const CONSUMER: &str = "app.mailer";
const SLOT: Holding<'_> = Holding {
    consumer: CONSUMER,
    slot: 1,
    holder: "me",
    erasures: 0,
};

fn position(ms: u64, seq: u64) -> Position {
    Position { ms, seq }
}

fn event(bucket: u16, ms: u64, seq: u64) -> EventId {
    EventId {
        bucket,
        position: position(ms, seq),
    }
}

fn record(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

async fn open(room: &Room, consumer: &str) -> Vec<Position> {
    let start: Vec<_> = (0..u64::from(room.backend.buckets()))
        .map(|bucket| position(1_000 + bucket, bucket))
        .collect();
    room.backend.open_ledger(consumer, &start).await.unwrap();
    start
}

async fn hold(room: &Room, holder: &str) -> Vec<u16> {
    room.backend.hold(CONSUMER, 4, holder, LEASE).await.unwrap()
}

async fn commit(room: &Room, change: &LedgerChange) -> bool {
    room.backend.commit(&SLOT, change).await.unwrap()
}

async fn load(room: &Room) -> Ledger {
    let ledger = room.backend.load_ledger(CONSUMER).await.unwrap();
    let mut ledger = ledger.unwrap();
    ledger.pending.sort_unstable();
    ledger
}

async fn pending(room: &Room, limit: usize) -> PendingEvents {
    room.backend.pending(CONSUMER, limit).await.unwrap()
}

async fn parked(room: &Room) -> Vec<(EventId, Bytes)> {
    room.backend.parked(CONSUMER, None, 100).await.unwrap()
}

async fn signals(room: &Room) -> LedgerSignals {
    room.backend.signals(CONSUMER).await.unwrap()
}

async fn consumers(room: &Room) -> Vec<String> {
    let mut names = room.backend.consumers().await.unwrap();
    names.sort_unstable();
    names
}

fn change() -> LedgerChange {
    LedgerChange {
        cursors: vec![(3, position(5_000, 2)), (7, position(6_000, 0))],
        pending: vec![
            (event(3, 4_000, 1), record("once")),
            (event(7, 1, 0), record("\0\n{")),
        ],
        done: Vec::new(),
        parked: vec![(event(3, 4_500, 1), record("given up"))],
        note: Some(record("note")),
    }
}

async fn a_ledger_starts_at_the_given_cursors(room: Room) {
    let start = open(&room, CONSUMER).await;

    let expected = Ledger {
        cursors: start.clone(),
        ..Ledger::default()
    };
    let cursors = room.backend.load_cursors(CONSUMER).await.unwrap();
    assert_eq!(load(&room).await, expected);
    assert_eq!(cursors, Some(start));
    assert!(parked(&room).await.is_empty());
}

async fn opening_an_existing_ledger_changes_nothing(room: Room) {
    let start = open(&room, CONSUMER).await;

    let other = vec![Position::default(); start.len()];
    room.backend.open_ledger(CONSUMER, &other).await.unwrap();

    assert_eq!(load(&room).await.cursors, start);
    assert_eq!(consumers(&room).await, [CONSUMER]);
}

async fn an_unknown_consumer_has_no_ledger(room: Room) {
    let backend = &room.backend;

    assert_eq!(backend.load_ledger(CONSUMER).await.unwrap(), None);
    assert_eq!(backend.load_cursors(CONSUMER).await.unwrap(), None);
    assert_eq!(backend.signals(CONSUMER).await.unwrap().replays, 0);
    assert!(parked(&room).await.is_empty());
    assert!(consumers(&room).await.is_empty());
    backend.drop_ledger(CONSUMER).await.unwrap();
}

async fn all_consumers_are_listed(room: Room) {
    for consumer in ["webhook.b", "app.a", "c"] {
        open(&room, consumer).await;
    }
    room.backend.drop_ledger("c").await.unwrap();

    assert_eq!(consumers(&room).await, ["app.a", "webhook.b"]);
}

async fn a_commit_stores_the_whole_change(room: Room) {
    let mut cursors = open(&room, CONSUMER).await;
    hold(&room, "me").await;

    assert!(commit(&room, &change()).await);

    cursors[3] = position(5_000, 2);
    cursors[7] = position(6_000, 0);
    let mut pending = change().pending;
    pending.sort_unstable();
    let expected = Ledger {
        cursors,
        pending,
        note: Some(record("note")),
        signals: LedgerSignals::default(),
    };
    assert_eq!(load(&room).await, expected);
    assert_eq!(parked(&room).await, change().parked);
}

async fn a_repeated_commit_changes_nothing(room: Room) {
    open(&room, CONSUMER).await;
    hold(&room, "me").await;
    commit(&room, &change()).await;
    let (ledger, given_up) = (load(&room).await, parked(&room).await);

    assert!(commit(&room, &change()).await);

    assert_eq!(load(&room).await, ledger);
    assert_eq!(parked(&room).await, given_up);
}

async fn a_late_commit_moves_no_cursor_back(room: Room) {
    open(&room, CONSUMER).await;
    hold(&room, "me").await;
    let cursor = |bucket, at| LedgerChange {
        cursors: vec![(bucket, at)],
        ..LedgerChange::default()
    };
    commit(&room, &cursor(3, position(5_000, 10))).await;
    commit(&room, &cursor(7, position(10_000, 0))).await;

    for (bucket, late) in [(3, position(5_000, 9)), (7, position(9_999, 20))] {
        assert!(commit(&room, &cursor(bucket, late)).await);
    }

    let cursors = load(&room).await.cursors;
    assert_eq!(
        (cursors[3], cursors[7]),
        (position(5_000, 10), position(10_000, 0))
    );
}

async fn an_empty_commit_changes_nothing(room: Room) {
    open(&room, CONSUMER).await;
    hold(&room, "me").await;
    commit(&room, &change()).await;
    let ledger = load(&room).await;

    assert!(commit(&room, &LedgerChange::default()).await);

    assert_eq!(load(&room).await, ledger);
}

async fn pending_events_are_retried_and_then_done_or_parked(room: Room) {
    open(&room, CONSUMER).await;
    hold(&room, "me").await;
    let (one, two, three) = (event(0, 1, 0), event(0, 2, 0), event(1, 3, 0));
    let first = LedgerChange {
        pending: [one, two, three].map(|id| (id, record("first"))).to_vec(),
        ..LedgerChange::default()
    };
    let second = LedgerChange {
        pending: vec![(two, record("second"))],
        done: vec![one, event(9, 9, 9)],
        parked: vec![(three, record("given up"))],
        ..LedgerChange::default()
    };

    commit(&room, &first).await;
    commit(&room, &second).await;

    let ledger = load(&room).await;
    assert_eq!(ledger.pending, [(two, record("second"))]);
    assert_eq!(parked(&room).await, [(three, record("given up"))]);
}

async fn pending_events_are_listed_up_to_a_limit_with_their_total(room: Room) {
    assert_eq!(pending(&room, 10).await, PendingEvents::default());
    open(&room, CONSUMER).await;
    hold(&room, "me").await;
    let events: Vec<_> = (0..300)
        .map(|number| (event(3, number, 0), record(&number.to_string())))
        .collect();
    let change = LedgerChange {
        pending: events.clone(),
        ..LedgerChange::default()
    };
    commit(&room, &change).await;

    for limit in [1, 100, 299, 300, 1_000] {
        let found = pending(&room, limit).await;
        assert_eq!(found.total, 300);
        let distinct: HashSet<_> = found.some.iter().collect();
        assert_eq!(distinct.len(), limit.min(300), "with limit {limit}");
        assert!(distinct.iter().all(|event| events.contains(event)));
    }
}

async fn only_the_lease_holder_can_commit(room: Room) {
    let start = open(&room, CONSUMER).await;
    let refused = async || !commit(&room, &change()).await;

    assert!(refused().await, "nobody holds the lease");
    hold(&room, "other").await;
    assert!(refused().await, "another holder has the lease");
    room.backend.release(CONSUMER, "other").await.unwrap();
    hold(&room, "me").await;
    room.advance(LEASE);
    assert!(refused().await, "the lease has expired");
    hold(&room, "other").await;
    assert!(refused().await, "another holder took the lease");
    let foreign = Holding { slot: 7, ..SLOT };
    let done = room.backend.commit(&foreign, &change()).await;
    assert!(!done.unwrap(), "the slot does not exist");

    let ledger = Ledger {
        cursors: start,
        ..Ledger::default()
    };
    assert_eq!(load(&room).await, ledger);
    assert!(parked(&room).await.is_empty());
}

async fn a_holder_that_renews_its_lease_can_commit(room: Room) {
    open(&room, CONSUMER).await;
    hold(&room, "me").await;

    for _ in 0..3 {
        room.advance(LEASE - Duration::from_secs(1));
        hold(&room, "me").await;
        assert!(commit(&room, &change()).await);
    }
}

async fn a_dropped_consumer_leaves_nothing(room: Room) {
    open(&room, CONSUMER).await;
    open(&room, "other").await;
    hold(&room, "me").await;
    commit(&room, &change()).await;

    room.backend.drop_ledger(CONSUMER).await.unwrap();

    assert!(!commit(&room, &change()).await);
    assert_eq!(room.backend.load_ledger(CONSUMER).await.unwrap(), None);
    assert!(parked(&room).await.is_empty());
    assert_eq!(consumers(&room).await, ["other"]);
    // the leases of the consumer are free again
    assert_eq!(hold(&room, "next").await, [0, 1, 2, 3]);
    let start = open(&room, CONSUMER).await;
    let fresh = Ledger {
        cursors: start,
        ..Ledger::default()
    };
    assert_eq!(load(&room).await, fresh);
}

async fn a_lease_alone_creates_no_ledger(room: Room) {
    hold(&room, "me").await;

    assert!(!commit(&room, &change()).await);

    assert!(consumers(&room).await.is_empty());
    assert_eq!(room.backend.load_ledger(CONSUMER).await.unwrap(), None);
}

async fn parked_events_are_listed_by_position_and_then_bucket(room: Room) {
    open(&room, CONSUMER).await;
    hold(&room, "me").await;
    let sorted = [
        event(9, 5, 0),
        event(2, 10, 1),
        event(11, 10, 1),
        event(1, 10, 2),
        event(0, 1_700_000_000_000, 0),
    ];
    let mut given_up = sorted.map(|id| (id, record(&id.to_string()))).to_vec();
    given_up.reverse();
    let change = LedgerChange {
        parked: given_up,
        ..LedgerChange::default()
    };
    commit(&room, &change).await;

    let listed = async |after, limit| {
        let parked = room.backend.parked(CONSUMER, after, limit).await.unwrap();
        let records_match = parked.iter().all(|(id, text)| *text == id.to_string());
        assert!(records_match);
        parked.into_iter().map(|(id, _)| id).collect::<Vec<_>>()
    };

    assert_eq!(listed(None, 100).await, sorted);
    assert_eq!(listed(None, 2).await, sorted[..2]);
    assert_eq!(listed(Some(sorted[1]), 2).await, sorted[2..4]);
    assert_eq!(listed(Some(event(5, 10, 1)), 100).await, sorted[2..]);
    assert!(listed(Some(sorted[4]), 100).await.is_empty());
}

async fn the_oldest_parked_events_are_dropped_at_the_limit(room: Room) {
    const PARKED_MAX: u64 = 100_000;
    open(&room, CONSUMER).await;
    hold(&room, "me").await;
    let park = async |numbers: std::ops::Range<u64>| {
        let parked = numbers.map(|number| (event(0, number, 0), record("given up")));
        let change = LedgerChange {
            parked: parked.collect(),
            ..LedgerChange::default()
        };
        assert!(commit(&room, &change).await);
    };
    let oldest = async || parked(&room).await[0].0.position.ms;

    for start in (10..PARKED_MAX + 10).step_by(10_000) {
        park(start..start + 10_000).await;
    }
    let oldest_at_limit = oldest().await;
    park(1..3).await;
    let oldest_after_older = oldest().await;
    park(PARKED_MAX + 10..PARKED_MAX + 20).await;

    let ids = [event(0, 19, 0), event(0, 20, 0)].map(|id| (id, record("again")));
    assert_eq!((oldest_at_limit, oldest_after_older), (10, 10));
    assert_eq!(oldest().await, 20);
    assert_eq!(room.backend.replay(CONSUMER, &ids).await.unwrap(), 1);
}

async fn replayed_events_are_pending_again_and_counted(room: Room) {
    open(&room, CONSUMER).await;
    hold(&room, "me").await;
    let ids = [event(0, 1, 0), event(0, 2, 0), event(0, 3, 0)];
    let change = LedgerChange {
        parked: ids.map(|id| (id, record("given up"))).to_vec(),
        ..LedgerChange::default()
    };
    commit(&room, &change).await;
    let replay = async |ids: &[EventId]| {
        let records: Vec<_> = ids.iter().map(|id| (*id, record("again"))).collect();
        room.backend.replay(CONSUMER, &records).await.unwrap()
    };

    let first = replay(&[ids[0], ids[2], event(7, 7, 7)]).await;
    let counted = signals(&room).await.replays;
    let again = replay(&[ids[0]]).await;

    let pending = [ids[0], ids[2]].map(|id| (id, record("again")));
    let ledger = load(&room).await;
    assert_eq!((first, counted, again), (2, 1, 0));
    assert_eq!(ledger.pending, pending);
    assert_eq!(parked(&room).await, [(ids[1], record("given up"))]);
    assert_eq!(replay(&[ids[1]]).await, 1);
    assert_eq!(signals(&room).await.replays, ledger.signals.replays + 1);
    assert_eq!(room.backend.replay("unknown", &pending).await.unwrap(), 0);
}

async fn forgotten_events_are_neither_pending_nor_parked(room: Room) {
    open(&room, CONSUMER).await;
    hold(&room, "me").await;
    let ids = [1, 2, 3, 4, 5].map(|ms| event(0, ms, 0));
    let change = LedgerChange {
        pending: vec![(ids[0], record("a")), (ids[1], record("b"))],
        parked: vec![(ids[2], record("c")), (ids[3], record("d"))],
        ..LedgerChange::default()
    };
    commit(&room, &change).await;

    let new = |id| (id, Some(record("new")));
    let events = [
        (ids[0], None),
        new(ids[1]),
        (ids[2], None),
        new(ids[3]),
        new(ids[4]),
    ];
    let forgotten = room.backend.forget_events(CONSUMER, &events).await;

    forgotten.unwrap();
    assert_eq!(load(&room).await.pending, [(ids[1], record("new"))]);
    assert_eq!(parked(&room).await, [(ids[3], record("new"))]);
    let again = [(ids[2], record("again"))];
    assert_eq!(room.backend.replay(CONSUMER, &again).await.unwrap(), 0);
    room.backend
        .forget_events("unknown", &events)
        .await
        .unwrap();
    assert_eq!(consumers(&room).await, [CONSUMER]);
}

async fn a_holder_that_predates_an_erasure_cannot_commit(room: Room) {
    open(&room, CONSUMER).await;
    hold(&room, "me").await;
    assert!(commit(&room, &change()).await);
    let before = load(&room).await;
    assert_eq!(before.signals.erasures, 0);

    let forgotten = room.backend.forget_events(CONSUMER, &[]).await;

    forgotten.unwrap();
    let late = LedgerChange {
        pending: vec![(event(3, 9_000, 1), record("read before"))],
        ..LedgerChange::default()
    };
    assert!(!commit(&room, &late).await);
    let after = load(&room).await;
    assert_eq!(after.pending, before.pending);
    assert_eq!(after.signals, signals(&room).await);
    let renewed = Holding {
        erasures: after.signals.erasures,
        ..SLOT
    };
    assert!(room.backend.commit(&renewed, &late).await.unwrap());
}

async fn consumers_are_independent(room: Room) {
    open(&room, CONSUMER).await;
    let start = open(&room, "app.mailer2").await;
    hold(&room, "me").await;

    commit(&room, &change()).await;

    let other = room.backend.load_ledger("app.mailer2").await.unwrap();
    let untouched = Ledger {
        cursors: start,
        ..Ledger::default()
    };
    let none = room.backend.parked("app.mailer2", None, 100).await;
    assert_eq!(other, Some(untouched));
    assert!(none.unwrap().is_empty());
}

super::over_every_store! {
    a_ledger_starts_at_the_given_cursors,
    opening_an_existing_ledger_changes_nothing,
    an_unknown_consumer_has_no_ledger,
    all_consumers_are_listed,
    a_commit_stores_the_whole_change,
    a_repeated_commit_changes_nothing,
    a_late_commit_moves_no_cursor_back,
    an_empty_commit_changes_nothing,
    pending_events_are_retried_and_then_done_or_parked,
    pending_events_are_listed_up_to_a_limit_with_their_total,
    only_the_lease_holder_can_commit,
    a_holder_that_renews_its_lease_can_commit,
    a_dropped_consumer_leaves_nothing,
    a_lease_alone_creates_no_ledger,
    parked_events_are_listed_by_position_and_then_bucket,
    the_oldest_parked_events_are_dropped_at_the_limit,
    replayed_events_are_pending_again_and_counted,
    forgotten_events_are_neither_pending_nor_parked,
    a_holder_that_predates_an_erasure_cannot_commit,
    consumers_are_independent,
}
