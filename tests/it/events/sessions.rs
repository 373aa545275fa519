use std::time::{Duration, Instant};

use threadkeep_domain::Completed;
use threadkeep_events::EventSettings;

use super::{ThreadSubscriber, over_every_store, replica, replica_with};
use crate::conformance::room::{Room, set};
use crate::support::until;

fn completed(session: &str) -> Completed {
    Completed {
        session: session.into(),
        status: 200,
        duration_ms: 3,
    }
}

async fn completed_requests_are_logged_in_order(room: Room) {
    let settings = EventSettings {
        session_events: true,
        ..EventSettings::default()
    };
    let events = replica_with(&room, settings);
    let thread = room.subject();
    thread.merge(&[set("k", "1")]).await;
    let mut subscriber = ThreadSubscriber::of(&events, &thread).await;
    let cursor = subscriber.cursor;

    for session in ["a", "b"] {
        events.session_completed(&thread.id, || completed(session));
    }

    let expected = ["#2 v1 completed a 200 3", "#3 v1 completed b 200 3"];
    assert_eq!(subscriber.recv_many(2).await, expected);
    let mut back = ThreadSubscriber::after(&events, &thread, Some(cursor)).await;
    assert_eq!(back.recv_many(2).await, expected);
}

async fn queued_completions_are_logged_at_shutdown(room: Room) {
    let settings = EventSettings {
        session_events: true,
        ..EventSettings::default()
    };
    // retry, because on a slow machine the shutdown may exceed its time limit
    for _ in 0..20 {
        let events = replica_with(&room, settings.clone());
        let thread = room.subject();

        for session in 0..100 {
            events.session_completed(&thread.id, || completed(&session.to_string()));
        }
        let start = Instant::now();
        events.shutdown().await;
        if start.elapsed() >= Duration::from_secs(2) {
            continue;
        }

        assert_eq!(room.events(&thread).await.len(), 100);
        assert_eq!(events.counters().sessions_dropped.get(), 0);
        return;
    }
    panic!("the machine is too slow");
}

async fn completions_over_the_queue_limit_are_dropped_and_counted(room: Room) {
    const MANY: u64 = 20_000;
    let settings = EventSettings {
        session_events: true,
        ..EventSettings::default()
    };
    let events = replica_with(&room, settings);
    let thread = room.subject();

    // queue all sessions before the writer runs
    for session in 0..MANY {
        events.session_completed(&thread.id, || completed(&session.to_string()));
    }

    let dropped = events.counters().sessions_dropped.get();
    assert!(dropped > 0);
    until(async || room.events(&thread).await.len() as u64 + dropped == MANY).await;
}

async fn completed_requests_are_not_logged_by_default(room: Room) {
    let events = replica(&room);
    let thread = room.subject();

    events.session_completed(&thread.id, || panic!("session events are off"));
    events.shutdown().await;

    assert!(room.events(&thread).await.is_empty());
}

over_every_store!(
    completed_requests_are_logged_in_order,
    queued_completions_are_logged_at_shutdown,
    completions_over_the_queue_limit_are_dropped_and_counted,
    completed_requests_are_not_logged_by_default,
);
