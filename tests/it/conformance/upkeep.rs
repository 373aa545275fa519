use std::time::Duration;

use threadkeep_domain::{Life, Position, Retention};
use threadkeep_store::{Holding, LedgerChange};

use super::room::{Room, Subject, set};

const SECOND: Duration = Duration::from_secs(1);

async fn forgetful(room: Room) -> Room {
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

async fn an_event_stays_in_the_log_for_its_time(room: Room) {
    let room = forgetful(room).await;
    let (thread, _) = ended(&room).await;

    room.advance(90 * SECOND);
    room.tidy().await;

    assert_eq!(room.events(&thread).await.len(), 2);
    assert_eq!(horizon(&room, &thread).await, Position::default());
}

async fn what_leaves_the_log_is_told_by_its_horizon(room: Room) {
    let room = forgetful(room).await;
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

async fn positions_go_on_after_all_events_have_left(room: Room) {
    let room = forgetful(room).await;
    let (thread, _) = ended(&room).await;
    room.advance(101 * SECOND);
    room.tidy().await;
    let gone = horizon(&room, &thread).await;
    let head = room.watch(&thread, SECOND).await.head;

    thread.merge(&[]).await;

    let made = room.events(&thread).await.pop().unwrap();
    assert_eq!(head, gone);
    assert!(made.id.position > gone);
    assert_eq!(horizon(&room, &thread).await, gone);
}

async fn what_is_past_its_time_leaves_and_what_is_not_stays(room: Room) {
    let room = forgetful(room).await;
    let (thread, _) = ended(&room).await;
    room.advance(60 * SECOND);
    thread.merge(&[]).await;
    room.advance(60 * SECOND);

    room.tidy().await;

    assert_eq!(room.story(&thread).await, ["#3 v1 created []"]);
}

async fn a_final_state_leaves_after_its_event(room: Room) {
    let room = forgetful(room).await;
    let ended = ended(&room).await;

    room.advance(90 * SECOND);
    room.tidy().await;
    assert!(has_final(&room, &ended).await);
    room.advance(11 * SECOND);
    room.tidy().await;

    assert!(!has_final(&room, &ended).await);
}

async fn an_archive_stays_when_its_event_has_left(room: Room) {
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

async fn of_two_lives_the_earlier_is_forgotten_first(room: Room) {
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

async fn what_a_consumer_has_not_handled_stays(room: Room) {
    let room = forgetful(room).await;
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

async fn what_was_handled_stays_for_its_time_all_the_same(room: Room) {
    let room = forgetful(room).await;
    let (thread, _) = ended(&room).await;
    let last = room.events(&thread).await[1].id.position;
    consumer(&room, "quick", last).await;
    room.advance(90 * SECOND);

    room.tidy().await;

    assert_eq!(room.events(&thread).await.len(), 2);
}

async fn no_consumer_holds_an_event_for_more_than_seven_times_as_long(room: Room) {
    let room = forgetful(room).await;
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

async fn a_consumer_that_was_dropped_holds_nothing(room: Room) {
    let room = forgetful(room).await;
    consumer(&room, "gone", Position::default()).await;
    let (thread, _) = ended(&room).await;
    room.advance(300 * SECOND);

    room.backend.drop_ledger("gone").await.unwrap();
    room.tidy().await;

    assert!(room.events(&thread).await.is_empty());
}

async fn many_are_deleted_at_once(room: Room) {
    const THREADS: usize = 2_000;
    let room = forgetful(room).await;
    let mut all = Vec::new();
    for _ in 0..THREADS {
        all.push(ended(&room).await);
    }
    room.advance(101 * SECOND);

    room.tidy().await;

    for ended in all.iter().step_by(97) {
        assert!(room.events(&ended.0).await.is_empty());
        assert!(!has_final(&room, ended).await);
    }
}

super::over_every_store! {
    an_event_stays_in_the_log_for_its_time,
    what_leaves_the_log_is_told_by_its_horizon,
    positions_go_on_after_all_events_have_left,
    what_is_past_its_time_leaves_and_what_is_not_stays,
    a_final_state_leaves_after_its_event,
    an_archive_stays_when_its_event_has_left,
    of_two_lives_the_earlier_is_forgotten_first,
    what_a_consumer_has_not_handled_stays,
    what_was_handled_stays_for_its_time_all_the_same,
    no_consumer_holds_an_event_for_more_than_seven_times_as_long,
    a_consumer_that_was_dropped_holds_nothing,
    many_are_deleted_at_once,
}
