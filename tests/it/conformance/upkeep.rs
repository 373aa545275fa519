use std::time::Duration;

use threadkeep_domain::{Life, Position, Retention};
use threadkeep_store::{Holding, LedgerChange};

use super::room::{Room, Subject, set};

const SECOND: Duration = Duration::from_secs(1);

async fn with_short_retention(room: Room) -> Room {
    room.keeping(Retention {
        archive: Duration::ZERO,
        log: 100 * SECOND,
        ..Retention::DEFAULT
    })
    .await
}

async fn ended(room: &Room) -> (Subject, Life) {
    let thread = room.subject();
    let life = thread.merge(&[set("k", "1")]).await.stamp.life;
    thread.destroy().await;
    (thread, life)
}

async fn has_final(room: &Room, (thread, life): &(Subject, Life)) -> bool {
    let last = room.backend.get_final(&thread.id, *life).await.unwrap();
    last.is_some()
}

async fn horizon(room: &Room, thread: &Subject) -> Position {
    let horizons = room.backend.log_horizons(&[room.bucket(thread)]).await;
    horizons.unwrap()[0]
}

async fn an_event_stays_in_the_log_for_the_retention(room: Room) {
    let room = with_short_retention(room).await;
    let (thread, _) = ended(&room).await;

    room.advance(90 * SECOND);
    room.tidy().await;

    assert_eq!(room.events(&thread).await.len(), 2);
    assert_eq!(horizon(&room, &thread).await, Position::default());
}

async fn the_horizon_is_the_position_of_the_last_removed_event(room: Room) {
    let room = with_short_retention(room).await;
    let (thread, _) = ended(&room).await;
    let last = room.events(&thread).await.pop().unwrap().id.position;
    room.advance(101 * SECOND);

    room.tidy().await;

    let head = room.backend.log_heads().await.unwrap();
    assert!(room.events(&thread).await.is_empty());
    assert_eq!(horizon(&room, &thread).await, last);
    assert_eq!(head.positions[usize::from(room.bucket(&thread))], last);
    let others = room.backend.log_horizons(&[]).await.unwrap();
    assert!(others.is_empty());
}

async fn positions_continue_after_all_events_are_removed(room: Room) {
    let room = with_short_retention(room).await;
    let (thread, _) = ended(&room).await;
    room.advance(101 * SECOND);
    room.tidy().await;
    let removed = horizon(&room, &thread).await;
    let head = room.watch(&thread, SECOND).await.head;

    thread.merge(&[]).await;

    let made = room.events(&thread).await.pop().unwrap();
    assert_eq!(head, removed);
    assert!(made.id.position > removed);
    assert_eq!(horizon(&room, &thread).await, removed);
}

async fn expired_events_are_removed_and_newer_ones_stay(room: Room) {
    let room = with_short_retention(room).await;
    let (thread, _) = ended(&room).await;
    room.advance(60 * SECOND);
    thread.merge(&[]).await;
    room.advance(60 * SECOND);

    room.tidy().await;

    assert_eq!(room.story(&thread).await, ["#3 v1 created []"]);
}

async fn a_final_state_is_removed_with_its_event(room: Room) {
    let room = with_short_retention(room).await;
    let ended = ended(&room).await;

    room.advance(90 * SECOND);
    room.tidy().await;
    assert!(has_final(&room, &ended).await);
    room.advance(11 * SECOND);
    room.tidy().await;

    assert!(!has_final(&room, &ended).await);
}

async fn an_archive_outlives_its_event(room: Room) {
    let room = room
        .keeping(Retention {
            archive: 1_000 * SECOND,
            log: 100 * SECOND,
            ..Retention::DEFAULT
        })
        .await;
    let ended = ended(&room).await;

    room.advance(900 * SECOND);
    room.tidy().await;
    assert!(room.events(&ended.0).await.is_empty());
    assert!(room.archive(&ended.0).await.is_some());
    room.advance(101 * SECOND);
    room.tidy().await;

    assert!(!has_final(&room, &ended).await);
}

async fn the_earlier_of_two_lives_is_deleted_first(room: Room) {
    let room = room
        .keeping(Retention {
            archive: 1_000 * SECOND,
            log: 100 * SECOND,
            ..Retention::DEFAULT
        })
        .await;
    let (thread, earlier) = ended(&room).await;
    room.advance(600 * SECOND);
    let later = thread.merge(&[set("k", "2")]).await.stamp.life;
    thread.destroy().await;
    room.advance(500 * SECOND);

    room.tidy().await;

    let archive = room.archive(&thread).await.unwrap();
    assert_eq!(archive.head.life, later);
    assert_eq!(&archive.state[..], br#"{"k":2}"#);
    assert!(!has_final(&room, &(thread, earlier)).await);
}

async fn consumer(room: &Room, name: &str, at: Position) {
    let start = vec![at; usize::from(room.backend.buckets())];
    room.backend.open_ledger(name, &start).await.unwrap();
}

async fn handle(room: &Room, consumer: &str, bucket: u16, to: Position) {
    let lasts = 10 * SECOND;
    let slots = room.backend.hold(consumer, 1, "me", lasts).await.unwrap();
    assert_eq!(slots, [0]);
    let holding = Holding {
        consumer,
        slot: 0,
        holder: "me",
        erasures: 0,
    };
    let change = LedgerChange {
        cursors: vec![(bucket, to)],
        ..LedgerChange::default()
    };
    assert!(room.backend.commit(&holding, &change).await.unwrap());
}

async fn events_stay_until_a_slow_consumer_has_handled_them(room: Room) {
    let room = with_short_retention(room).await;
    consumer(&room, "slow", Position::default()).await;
    let ended = ended(&room).await;
    let bucket = room.bucket(&ended.0);
    let events = room.events(&ended.0).await;
    consumer(&room, "quick", events[1].id.position).await;
    room.advance(300 * SECOND);

    room.tidy().await;
    assert_eq!(room.events(&ended.0).await, events);
    assert!(has_final(&room, &ended).await);

    handle(&room, "slow", bucket, events[0].id.position).await;
    room.tidy().await;
    assert_eq!(room.events(&ended.0).await, events[1..]);
    assert_eq!(horizon(&room, &ended.0).await, events[0].id.position);
    assert!(has_final(&room, &ended).await);

    handle(&room, "slow", bucket, events[1].id.position).await;
    room.tidy().await;
    assert!(room.events(&ended.0).await.is_empty());
    assert!(!has_final(&room, &ended).await);
}

async fn handled_events_stay_for_the_retention(room: Room) {
    let room = with_short_retention(room).await;
    let (thread, _) = ended(&room).await;
    let last = room.events(&thread).await[1].id.position;
    consumer(&room, "quick", last).await;
    room.advance(90 * SECOND);

    room.tidy().await;

    assert_eq!(room.events(&thread).await.len(), 2);
}

async fn no_consumer_retains_an_event_for_more_than_seven_times_the_retention(room: Room) {
    let room = with_short_retention(room).await;
    consumer(&room, "dead", Position::default()).await;
    let ended = ended(&room).await;

    room.advance(690 * SECOND);
    room.tidy().await;
    assert_eq!(room.events(&ended.0).await.len(), 2);
    assert!(has_final(&room, &ended).await);
    room.advance(11 * SECOND);
    room.tidy().await;

    assert!(room.events(&ended.0).await.is_empty());
    assert!(!has_final(&room, &ended).await);
}

async fn a_dropped_consumer_retains_no_events(room: Room) {
    let room = with_short_retention(room).await;
    consumer(&room, "gone", Position::default()).await;
    let (thread, _) = ended(&room).await;
    room.advance(300 * SECOND);

    room.backend.drop_ledger("gone").await.unwrap();
    room.tidy().await;

    assert!(room.events(&thread).await.is_empty());
}

async fn many_events_are_removed_in_one_run(room: Room) {
    const THREADS: usize = 2_000;
    let room = with_short_retention(room).await;
    let mut threads = Vec::new();
    for _ in 0..THREADS {
        threads.push(ended(&room).await);
    }
    room.advance(101 * SECOND);

    room.tidy().await;

    for ended in threads.iter().step_by(97) {
        assert!(room.events(&ended.0).await.is_empty());
        assert!(!has_final(&room, ended).await);
    }
}

super::over_every_store! {
    an_event_stays_in_the_log_for_the_retention,
    the_horizon_is_the_position_of_the_last_removed_event,
    positions_continue_after_all_events_are_removed,
    expired_events_are_removed_and_newer_ones_stay,
    a_final_state_is_removed_with_its_event,
    an_archive_outlives_its_event,
    the_earlier_of_two_lives_is_deleted_first,
    events_stay_until_a_slow_consumer_has_handled_them,
    handled_events_stay_for_the_retention,
    no_consumer_retains_an_event_for_more_than_seven_times_the_retention,
    a_dropped_consumer_retains_no_events,
    many_events_are_removed_in_one_run,
}
