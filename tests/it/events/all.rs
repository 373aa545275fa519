use std::time::Duration;

use threadkeep_domain::{EventType, EventTypes, Retention};
use threadkeep_events::Watermark;

use super::{GlobalSubscriber, WATCH_EXPIRY, over_every_store, replica, soon};
use crate::conformance::room::{Room, Subject, set};
use crate::support::until;

fn only(event_type: EventType) -> EventTypes {
    [event_type].into_iter().collect()
}

/// Waits until changes to all threads are logged, because replicas take a while to notice a new subscriber.
async fn until_changes_are_logged(subscriber: &mut GlobalSubscriber, thread: &Subject) {
    let received = async {
        while subscriber.recv_many(thread, 1).await[0].contains("created") {
            // only the creation was logged, so changes are not logged yet
        }
    };
    let write = async {
        loop {
            thread.merge(&[set("k", "1")]).await;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::select! {
        () = soon(received) => {}
        () = write => {}
    }
}

async fn a_global_stream_receives_the_events_of_all_threads(room: Room) {
    let events = replica(&room);
    let mut subscriber = GlobalSubscriber::of(&events, EventTypes::ALL).await;
    let threads: Vec<_> = (0..100).map(|_| room.subject()).collect();

    for thread in &threads {
        thread.merge(&[set("k", "1")]).await;
    }
    for thread in &threads {
        thread.destroy().await;
    }

    let references: Vec<_> = threads.iter().collect();
    let mut received = vec![0; threads.len()];
    for _ in 0..2 * threads.len() {
        let (index, text) = subscriber.recv(&references).await.unwrap();
        received[index] += 1;
        assert_eq!(text.contains("destroyed"), received[index] == 2, "{text}");
    }
    assert!(received.iter().all(|count| *count == 2));
}

async fn changes_are_logged_while_a_subscriber_wants_them(room: Room) {
    let events = replica(&room);
    let thread = room.subject();
    let mut subscriber = GlobalSubscriber::of(&events, only(EventType::ThreadUpdated)).await;

    until_changes_are_logged(&mut subscriber, &thread).await;

    let other = room.subject();
    other.merge(&[set("k", "1")]).await;
    other.merge(&[set("k", "2")]).await;
    assert_eq!(
        subscriber.recv_many(&other, 1).await,
        [r#"#2 v2 updated ["k"]"#],
        "no events of other types"
    );
}

async fn changes_are_not_logged_for_subscribers_of_other_types(room: Room) {
    let events = replica(&room);
    let thread = room.subject();
    let mut subscriber = GlobalSubscriber::of(&events, only(EventType::ThreadDestroyed)).await;

    thread.merge(&[set("k", "1")]).await;
    thread.merge(&[set("k", "2")]).await;
    thread.destroy().await;

    assert_eq!(subscriber.recv_many(&thread, 1).await, ["#2 v2 destroyed"]);
    assert_eq!(room.events(&thread).await.len(), 2);
}

async fn a_reconnected_stream_misses_no_events(room: Room) {
    let events = replica(&room);
    let types = only(EventType::ThreadCreated);
    let before = room.subject();
    let mut subscriber = GlobalSubscriber::of(&events, types).await;
    before.merge(&[set("k", "1")]).await;
    subscriber.recv_many(&before, 1).await;
    let cursor = subscriber.cursor;
    drop(subscriber);
    let missed: Vec<_> = (0..300).map(|_| room.subject()).collect();
    for thread in &missed {
        thread.merge(&[set("k", "1")]).await;
    }

    let mut subscriber = GlobalSubscriber::after(&events, types, Some(cursor)).await;

    let references: Vec<_> = missed.iter().collect();
    let mut received = vec![false; missed.len()];
    while received.contains(&false) {
        let (index, text) = subscriber.recv(&references).await.unwrap();
        assert_eq!(text, r#"#1 v1 created ["k"]"#);
        received[index] = true;
    }
    assert_eq!(events.counters().resets.get(), 0);
}

async fn the_cursor_advances_without_new_events(room: Room) {
    let events = replica(&room);
    let thread = room.subject();
    let types = only(EventType::ThreadCreated);
    let mut subscriber = GlobalSubscriber::of(&events, types).await;
    thread.merge(&[set("k", "1")]).await;
    subscriber.recv_many(&thread, 1).await;
    let head = room.backend.log_heads().await.unwrap().now_ms;

    // keep reading, as the feed does
    let cursor_advances = async {
        while subscriber
            .stream
            .cursor()
            .is_none_or(|cursor| cursor.0 <= head)
        {
            let next = tokio::time::timeout(Duration::from_millis(50), subscriber.stream.next());
            assert!(next.await.is_err(), "no new events");
        }
    };
    soon(cursor_advances).await;

    let cursor = subscriber.stream.cursor();
    let mut back = GlobalSubscriber::after(&events, types, cursor).await;
    let next = tokio::time::timeout(Duration::from_millis(200), back.stream.next());
    assert!(next.await.is_err(), "all events were received before");
}

async fn trimmed_events_cause_a_reset(room: Room) {
    let room = room
        .keeping(Retention {
            log: Duration::from_secs(60),
            ..Retention::DEFAULT
        })
        .await;
    let events = replica(&room);
    let types = only(EventType::ThreadCreated);
    let cursor = GlobalSubscriber::of(&events, types).await.cursor;
    let (old, new) = (room.subject(), room.subject());
    old.merge(&[set("k", "1")]).await;
    room.advance(WATCH_EXPIRY);
    room.tidy().await;
    new.merge(&[set("k", "1")]).await;

    let mut subscriber = GlobalSubscriber::after(&events, types, Some(cursor)).await;
    let references = [&old, &new];

    let mut received = Vec::new();
    while !received.contains(&(1, r#"#1 v1 created ["k"]"#.to_owned())) {
        received.push(subscriber.recv(&references).await.unwrap());
    }
    assert!(received.contains(&(2, "reset".into())), "{received:?}");
}

async fn logs_that_were_all_trimmed_cause_one_reset(room: Room) {
    let room = room
        .keeping(Retention {
            log: Duration::from_secs(60),
            ..Retention::DEFAULT
        })
        .await;
    let events = replica(&room);
    let types = only(EventType::ThreadCreated);
    let cursor = GlobalSubscriber::of(&events, types).await.cursor;
    // enough threads that most logs have events
    for _ in 0..500 {
        room.subject().merge(&[set("k", "1")]).await;
    }
    room.advance(WATCH_EXPIRY);
    room.tidy().await;
    let new = room.subject();

    let mut subscriber = GlobalSubscriber::after(&events, types, Some(cursor)).await;
    assert_eq!(subscriber.recv(&[]).await.unwrap(), (0, "reset".into()));
    let cursor_passes = async {
        while subscriber
            .stream
            .cursor()
            .is_none_or(|reached| reached <= cursor)
        {
            let next = tokio::time::timeout(Duration::from_millis(50), subscriber.stream.next());
            assert!(next.await.is_err(), "the reset was reported already");
        }
    };
    soon(cursor_passes).await;
    new.merge(&[set("k", "1")]).await;

    assert_eq!(
        subscriber.recv_many(&new, 1).await,
        [r#"#1 v1 created ["k"]"#]
    );
    assert_eq!(events.counters().resets.get(), 1);
}

async fn unlogged_changes_cause_a_reset(room: Room) {
    let events = replica(&room);
    let cursor = GlobalSubscriber::of(&events, EventTypes::ALL).await.cursor;
    room.advance(WATCH_EXPIRY);

    let mut subscriber = GlobalSubscriber::after(&events, EventTypes::ALL, Some(cursor)).await;

    assert_eq!(subscriber.recv(&[]).await.unwrap(), (0, "reset".into()));
}

async fn a_future_cursor_causes_a_reset(room: Room) {
    let events = replica(&room);
    let now = room.backend.log_heads().await.unwrap().now_ms;
    let types = only(EventType::ThreadCreated);
    let thread = room.subject();

    let mut subscriber =
        GlobalSubscriber::after(&events, types, Some(Watermark(now + 60_000))).await;
    thread.merge(&[set("k", "1")]).await;

    assert_eq!(
        subscriber.recv(&[&thread]).await.unwrap(),
        (1, "reset".into())
    );
    assert_eq!(
        subscriber.recv_many(&thread, 1).await,
        [r#"#1 v1 created ["k"]"#]
    );
}

async fn closed_streams_are_not_counted(room: Room) {
    let events = replica(&room);
    let thread = room.subject();
    let counters = events.counters();

    let subscriber = GlobalSubscriber::of(&events, EventTypes::ALL).await;
    let thread_subscriber = super::ThreadSubscriber::of(&events, &thread).await;
    let open = (counters.global_streams.get(), counters.thread_streams.get());
    drop((subscriber, thread_subscriber));

    assert_eq!(open, (1, 1));
    let closed = (counters.global_streams.get(), counters.thread_streams.get());
    assert_eq!(closed, (0, 0));
}

async fn no_events_are_read_without_subscribers(room: Room) {
    let events = replica(&room);
    let thread = room.subject();
    let mut thread_subscriber = super::ThreadSubscriber::of(&events, &thread).await;
    thread.merge(&[set("k", "1")]).await;
    thread_subscriber.recv().await.unwrap();
    drop(thread_subscriber);
    let read = || async { events.counters().events_read.get() };
    let before = read().await;

    let other = room.subject();
    for number in 0..20 {
        other.merge(&[set("k", &number.to_string())]).await;
    }
    let mut thread_subscriber = super::ThreadSubscriber::of(&events, &thread).await;
    thread.merge(&[set("k", "2")]).await;
    thread_subscriber.recv().await.unwrap();

    // after the subscriber has reconnected, its stream reads only the events in the log of its own thread
    until(|| async { read().await > before }).await;
    assert!(read().await <= before + 2);
}

over_every_store!(
    a_global_stream_receives_the_events_of_all_threads,
    changes_are_logged_while_a_subscriber_wants_them,
    changes_are_not_logged_for_subscribers_of_other_types,
    a_reconnected_stream_misses_no_events,
    the_cursor_advances_without_new_events,
    trimmed_events_cause_a_reset,
    logs_that_were_all_trimmed_cause_one_reset,
    unlogged_changes_cause_a_reset,
    a_future_cursor_causes_a_reset,
    closed_streams_are_not_counted,
    no_events_are_read_without_subscribers,
);
