use std::sync::Arc;
use std::time::Duration;

use threadkeep_domain::{Retention, ThreadPolicy};

use super::{ThreadSubscriber, WATCH_EXPIRY, over_every_store, replica, soon};
use crate::conformance::room::{Room, delete, push, set};
use crate::conformance::scope_room::numbered;

async fn events_arrive_in_order(room: Room) {
    let events = replica(&room);
    let thread = room.subject();
    let mut subscriber = ThreadSubscriber::of(&events, &thread).await;

    thread.merge(&[set("b", "1"), push("a", "2")]).await;
    thread.merge(&[delete("b")]).await;
    thread.set_metadata(r#"{"m":1}"#).await.unwrap();
    thread.destroy().await;

    assert_eq!(
        subscriber.recv_many(4).await,
        [
            r#"#1 v1 created ["a","b"]"#,
            r#"#2 v2 updated ["b"]"#,
            "#3 v3 updated [] metadata",
            "#4 v3 destroyed",
        ]
    );
    subscriber.assert_quiet().await;
}

async fn events_of_other_threads_do_not_arrive(room: Room) {
    let events = replica(&room);
    let (thread, other) = (room.subject(), room.subject());
    let mut subscriber = ThreadSubscriber::of(&events, &thread).await;
    let _other = ThreadSubscriber::of(&events, &other).await;

    other.merge(&[set("k", "1")]).await;
    thread.merge(&[set("k", "1")]).await;

    assert_eq!(subscriber.recv().await.unwrap(), r#"#1 v1 created ["k"]"#);
    subscriber.assert_quiet().await;
}

async fn every_subscriber_receives_each_event(room: Room) {
    let (one, other) = (replica(&room), replica(&room));
    let thread = room.subject();
    let mut subscribers = [
        ThreadSubscriber::of(&one, &thread).await,
        ThreadSubscriber::of(&one, &thread).await,
        ThreadSubscriber::of(&other, &thread).await,
    ];

    thread.merge(&[set("k", "1")]).await;
    thread.merge(&[set("k", "2")]).await;

    for subscriber in &mut subscribers {
        assert_eq!(
            subscriber.recv_many(2).await,
            [r#"#1 v1 created ["k"]"#, r#"#2 v2 updated ["k"]"#]
        );
    }
}

async fn a_reconnected_subscriber_receives_missed_events(room: Room) {
    let events = replica(&room);
    let thread = room.subject();
    let mut subscriber = ThreadSubscriber::of(&events, &thread).await;
    thread.merge(&[set("k", "1")]).await;
    subscriber.recv().await.unwrap();
    let cursor = subscriber.cursor;
    drop(subscriber);

    // the thread is still watched shortly after its last subscriber disconnects
    thread.merge(&[set("k", "2")]).await;
    thread.merge(&[set("k", "3")]).await;
    let mut subscriber = ThreadSubscriber::after(&events, &thread, Some(cursor)).await;
    thread.merge(&[set("k", "4")]).await;

    assert_eq!(
        subscriber.recv_many(3).await,
        [
            r#"#2 v2 updated ["k"]"#,
            r#"#3 v3 updated ["k"]"#,
            r#"#4 v4 updated ["k"]"#,
        ]
    );
    subscriber.assert_quiet().await;
}

async fn a_subscriber_resumes_on_another_replica(room: Room) {
    let (one, other) = (replica(&room), replica(&room));
    let thread = room.subject();
    let mut subscriber = ThreadSubscriber::of(&one, &thread).await;
    thread.merge(&[set("k", "1")]).await;
    subscriber.recv().await.unwrap();
    let cursor = subscriber.cursor;
    one.shutdown().await;
    assert_eq!(subscriber.recv().await, None);

    thread.merge(&[set("k", "2")]).await;
    let mut subscriber = ThreadSubscriber::after(&other, &thread, Some(cursor)).await;

    assert_eq!(subscriber.recv().await.unwrap(), r#"#2 v2 updated ["k"]"#);
}

async fn a_reconnected_subscriber_of_an_unchanged_thread_receives_nothing(room: Room) {
    let events = replica(&room);
    let (thread, neighbour) = (room.subject(), room.subject());
    thread.merge(&[set("k", "1")]).await;
    let cursor = ThreadSubscriber::of(&events, &thread).await.cursor;

    neighbour.merge(&[set("k", "1")]).await;
    room.advance(WATCH_EXPIRY);
    let mut subscriber = ThreadSubscriber::after(&events, &thread, Some(cursor)).await;

    subscriber.assert_quiet().await;
    assert_eq!(events.counters().resets.get(), 0);
}

async fn appends_and_changes_arrive_in_order(room: Room) {
    let events = replica(&room);
    let thread = room.subject();
    let history = room.scope_of(&thread);
    let mut subscriber = ThreadSubscriber::of(&events, &thread).await;

    thread.merge(&[set("k", "1")]).await;
    history.add(&numbered(1..3)).await;
    thread.merge(&[set("k", "2")]).await;
    history.add(&numbered(1..4)).await;

    let expected = [
        r#"#1 v1 created ["k"]"#,
        "#2 v1 appended 1-2",
        r#"#3 v2 updated ["k"]"#,
        "#4 v2 appended 3-3",
    ];
    assert_eq!(subscriber.recv_many(4).await, expected);
    let cursor = subscriber.cursor;
    drop(subscriber);

    history.add(&numbered(4..5)).await;
    let mut subscriber = ThreadSubscriber::after(&events, &thread, Some(cursor)).await;
    assert_eq!(subscriber.recv().await.unwrap(), "#5 v2 appended 4-4");
    subscriber.assert_quiet().await;
    assert_eq!(events.counters().resets.get(), 0);
}

async fn an_unlogged_append_causes_a_reset(room: Room) {
    let events = replica(&room);
    let thread = room.subject();
    let history = room.scope_of(&thread);
    thread.merge(&[set("k", "1")]).await;
    let cursor = ThreadSubscriber::of(&events, &thread).await.cursor;
    room.advance(WATCH_EXPIRY);

    history.add(&numbered(1..3)).await;
    let mut subscriber = ThreadSubscriber::after(&events, &thread, Some(cursor)).await;
    assert_eq!(subscriber.recv().await.unwrap(), "reset v1");
    history.add(&numbered(3..4)).await;
    assert_eq!(subscriber.recv().await.unwrap(), "#2 v1 appended 3-3");

    subscriber.assert_quiet().await;
    assert_eq!(events.counters().resets.get(), 1);
}

async fn a_restored_history_causes_no_reset(room: Room) {
    let events = replica(&room);
    let thread = room.subject();
    let history = room.scope_of(&thread);
    let mut subscriber = ThreadSubscriber::of(&events, &thread).await;
    thread.merge(&[set("k", "1")]).await;
    history.add(&numbered(1..3)).await;
    thread.destroy().await;
    assert_eq!(subscriber.recv_many(3).await[2], "#3 v1 destroyed");

    let restored = room.backend.restore(&thread.id, None, &thread.policy).await;
    assert!(restored.unwrap().is_some());
    history.add(&numbered(3..4)).await;

    assert_eq!(
        subscriber.recv_many(2).await,
        [r#"#4 v2 created ["k"] restored"#, "#5 v2 appended 3-3"]
    );
    subscriber.assert_quiet().await;
    assert_eq!(events.counters().resets.get(), 0);
}

async fn an_unlogged_change_causes_a_reset(room: Room) {
    let events = replica(&room);
    let thread = room.subject();
    thread.merge(&[set("k", "1")]).await;
    let cursor = ThreadSubscriber::of(&events, &thread).await.cursor;
    room.advance(WATCH_EXPIRY);

    thread.merge(&[set("k", "2")]).await;
    thread.merge(&[set("k", "3")]).await;
    let mut subscriber = ThreadSubscriber::after(&events, &thread, Some(cursor)).await;
    thread.merge(&[set("k", "4")]).await;

    assert_eq!(
        subscriber.recv_many(2).await,
        ["reset v3", r#"#2 v4 updated ["k"]"#],
    );
    subscriber.assert_quiet().await;
    assert_eq!(events.counters().resets.get(), 1);
}

async fn a_reset_precedes_the_events_that_are_still_logged(room: Room) {
    let events = replica(&room);
    let thread = room.subject();
    thread.merge(&[set("k", "1")]).await;
    let cursor = ThreadSubscriber::of(&events, &thread).await.cursor;
    room.advance(WATCH_EXPIRY);
    thread.merge(&[set("k", "2")]).await;
    thread.destroy().await;

    let mut subscriber = ThreadSubscriber::after(&events, &thread, Some(cursor)).await;

    assert_eq!(
        subscriber.recv_many(2).await,
        ["reset v0", "#2 v2 destroyed"]
    );
    subscriber.assert_quiet().await;
    let mut again = ThreadSubscriber::after(&events, &thread, Some(subscriber.cursor)).await;
    again.assert_quiet().await;
}

async fn a_trimmed_event_causes_a_reset(room: Room) {
    let room = room
        .keeping(Retention {
            log: Duration::from_secs(60),
            ..Retention::DEFAULT
        })
        .await;
    let events = replica(&room);
    let thread = room.subject();
    thread.merge(&[set("k", "1")]).await;
    let mut subscriber = ThreadSubscriber::of(&events, &thread).await;
    let cursor = subscriber.cursor;
    thread.merge(&[set("k", "2")]).await;
    subscriber.recv().await.unwrap();
    drop(subscriber);

    room.advance(WATCH_EXPIRY);
    room.tidy().await;
    let mut subscriber = ThreadSubscriber::after(&events, &thread, Some(cursor)).await;

    assert_eq!(subscriber.recv().await.unwrap(), "reset v2");
    subscriber.assert_quiet().await;
}

async fn events_of_a_life_that_began_and_ended_while_disconnected_arrive(room: Room) {
    let events = replica(&room);
    let thread = room.subject();
    let cursor = ThreadSubscriber::of(&events, &thread).await.cursor;
    room.advance(WATCH_EXPIRY);
    thread.merge(&[set("k", "1")]).await;
    thread.destroy().await;

    let mut subscriber = ThreadSubscriber::after(&events, &thread, Some(cursor)).await;

    assert_eq!(
        subscriber.recv_many(2).await,
        [r#"#1 v1 created ["k"]"#, "#2 v1 destroyed"]
    );
    subscriber.assert_quiet().await;
}

async fn an_expiry_arrives_before_the_next_life(room: Room) {
    let events = replica(&room);
    let policy = ThreadPolicy {
        ttl: Duration::from_secs(60),
        ..ThreadPolicy::THREAD
    };
    let thread = room.subject_under(policy);
    thread.merge(&[set("k", "1")]).await;
    let mut subscriber = ThreadSubscriber::of(&events, &thread).await;
    let cursor = subscriber.cursor;

    // `back` may reconnect before the expiry is noticed, but `subscriber` has been connected all the time
    room.advance(Duration::from_secs(61));
    let mut back = ThreadSubscriber::after(&events, &thread, Some(cursor)).await;
    for subscriber in [&mut subscriber, &mut back] {
        assert_eq!(subscriber.recv().await.unwrap(), "#2 v1 expired");
    }
    thread.merge(&[set("k", "2")]).await;

    for subscriber in [&mut subscriber, &mut back] {
        assert_eq!(subscriber.recv().await.unwrap(), r#"#3 v1 created ["k"]"#);
        subscriber.assert_quiet().await;
    }
    assert_eq!(events.counters().resets.get(), 0);
}

async fn missed_events_arrive_in_order_after_a_long_absence(room: Room) {
    const WRITES: u64 = 1_000;
    let events = replica(&room);
    let thread = room.subject();
    thread.merge(&[set("k", "0")]).await;
    let cursor = ThreadSubscriber::of(&events, &thread).await.cursor;
    for number in 1..=WRITES {
        thread.merge(&[set("k", &number.to_string())]).await;
    }

    let mut subscriber = ThreadSubscriber::after(&events, &thread, Some(cursor)).await;

    let received = subscriber.recv_many(WRITES as usize).await;
    let expected = (1..=WRITES).map(|n| format!(r#"#{} v{} updated ["k"]"#, n + 1, n + 1));
    assert!(received.into_iter().eq(expected));
    subscriber.assert_quiet().await;
}

async fn only_a_slow_subscriber_is_cut_off(room: Room) {
    const WRITES: usize = 300;
    let events = replica(&room);
    let thread = room.subject();
    let mut slow = ThreadSubscriber::of(&events, &thread).await;
    let mut quick = ThreadSubscriber::of(&events, &thread).await;

    for number in 0..WRITES {
        thread.merge(&[set("k", &number.to_string())]).await;
        quick.recv().await.unwrap();
    }

    let mut received = 0;
    while slow.recv().await.is_some() {
        received += 1;
    }
    assert_eq!(received, 128, "the capacity of the buffer");
    assert_eq!(events.counters().streams_cut_off.get(), 1);
    let mut back = ThreadSubscriber::after(&events, &thread, Some(slow.cursor)).await;
    assert_eq!(
        back.recv_many(WRITES - received).await.last().unwrap(),
        r#"#300 v300 updated ["k"]"#
    );
}

async fn a_cursor_from_a_lost_log_causes_a_reset(room: Room) {
    let events = replica(&room);
    let thread = room.subject();
    thread.merge(&[set("k", "1")]).await;
    let mut cursor = ThreadSubscriber::of(&events, &thread).await.cursor;
    cursor.position.ms += 60_000;
    cursor.stamp.version += 4;

    let mut subscriber = ThreadSubscriber::after(&events, &thread, Some(cursor)).await;
    thread.merge(&[set("k", "2")]).await;

    assert_eq!(
        subscriber.recv_many(2).await,
        ["reset v1", r#"#2 v2 updated ["k"]"#]
    );
}

async fn a_subscription_does_not_extend_the_lifetime(room: Room) {
    let events = replica(&room);
    let thread = room.subject();
    thread.merge(&[set("k", "1")]).await;
    let half = ThreadPolicy::THREAD.ttl / 2;

    room.advance(half);
    let mut subscriber = ThreadSubscriber::of(&events, &thread).await;
    room.advance(half + Duration::from_secs(1));

    assert_eq!(subscriber.recv().await.unwrap(), "#2 v1 expired");
    assert!(!thread.exists().await);
}

async fn reconnecting_loses_no_events(room: Room) {
    let events = replica(&room);
    let thread = Arc::new(room.subject());
    let writer = tokio::spawn({
        let thread = Arc::clone(&thread);
        async move {
            for number in 0..400 {
                thread.merge(&[set("k", &number.to_string())]).await;
            }
        }
    });

    // reconnect after every seventh event, and resume from the cursor of the previous stream
    let mut subscriber = ThreadSubscriber::of(&events, &thread).await;
    let first = subscriber.cursor.stamp.version;
    let mut versions = Vec::new();
    let read_to_end = async {
        while versions.last() != Some(&400) && subscriber.cursor.stamp.version < 400 {
            subscriber.recv().await.unwrap();
            versions.push(subscriber.cursor.stamp.version);
            if versions.len() % 7 == 0 {
                subscriber =
                    ThreadSubscriber::after(&events, &thread, Some(subscriber.cursor)).await;
            }
        }
    };
    soon(read_to_end).await;
    writer.await.unwrap();

    let expected: Vec<_> = (first + 1..=400).collect();
    assert_eq!(versions, expected);
    assert_eq!(events.counters().resets.get(), 0);
}

over_every_store!(
    events_arrive_in_order,
    events_of_other_threads_do_not_arrive,
    every_subscriber_receives_each_event,
    a_reconnected_subscriber_receives_missed_events,
    a_subscriber_resumes_on_another_replica,
    a_reconnected_subscriber_of_an_unchanged_thread_receives_nothing,
    appends_and_changes_arrive_in_order,
    an_unlogged_append_causes_a_reset,
    a_restored_history_causes_no_reset,
    an_unlogged_change_causes_a_reset,
    a_reset_precedes_the_events_that_are_still_logged,
    a_trimmed_event_causes_a_reset,
    events_of_a_life_that_began_and_ended_while_disconnected_arrive,
    an_expiry_arrives_before_the_next_life,
    missed_events_arrive_in_order_after_a_long_absence,
    only_a_slow_subscriber_is_cut_off,
    a_cursor_from_a_lost_log_causes_a_reset,
    a_subscription_does_not_extend_the_lifetime,
    reconnecting_loses_no_events,
);
