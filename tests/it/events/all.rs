use std::time::Duration;

use threadkeep_domain::{EventType, EventTypes, Retention};
use threadkeep_events::Watermark;

use super::{Ears, WATCH_EXPIRY, over_every_store, replica, soon};
use crate::conformance::room::{Room, Subject, set};
use crate::support::until;

fn only(event_type: EventType) -> EventTypes {
    [event_type].into_iter().collect()
}

/// Waits until changes to all threads are logged. Replicas take a while to notice a new subscriber.
async fn until_changes_are_logged(ears: &mut Ears, thread: &Subject) {
    let heard = async {
        while ears.hear_all(thread, 1).await[0].contains("created") {
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
        () = soon(heard) => {}
        () = write => {}
    }
}

async fn the_events_of_all_threads_are_heard(room: Room) {
    let events = replica(&room);
    let mut ears = Ears::of(&events, EventTypes::ALL).await;
    let threads: Vec<_> = (0..100).map(|_| room.subject()).collect();

    for thread in &threads {
        thread.merge(&[set("k", "1")]).await;
    }
    for thread in &threads {
        thread.destroy().await;
    }

    let of: Vec<_> = threads.iter().collect();
    let mut heard = vec![0; threads.len()];
    for _ in 0..2 * threads.len() {
        let (place, words) = ears.hear(&of).await.unwrap();
        heard[place] += 1;
        assert_eq!(words.contains("destroyed"), heard[place] == 2, "{words}");
    }
    assert!(heard.iter().all(|count| *count == 2));
}

async fn changes_are_logged_while_somebody_wants_them(room: Room) {
    let events = replica(&room);
    let thread = room.subject();
    let mut ears = Ears::of(&events, only(EventType::ThreadUpdated)).await;

    until_changes_are_logged(&mut ears, &thread).await;

    let other = room.subject();
    other.merge(&[set("k", "1")]).await;
    other.merge(&[set("k", "2")]).await;
    assert_eq!(
        ears.hear_all(&other, 1).await,
        [r#"#2 v2 updated ["k"]"#],
        "and of no other type"
    );
}

async fn changes_are_not_logged_for_who_does_not_want_them(room: Room) {
    let events = replica(&room);
    let thread = room.subject();
    let mut ears = Ears::of(&events, only(EventType::ThreadDestroyed)).await;

    thread.merge(&[set("k", "1")]).await;
    thread.merge(&[set("k", "2")]).await;
    thread.destroy().await;

    assert_eq!(ears.hear_all(&thread, 1).await, ["#2 v2 destroyed"]);
    assert_eq!(room.events(&thread).await.len(), 2);
}

async fn who_comes_back_misses_nothing(room: Room) {
    let events = replica(&room);
    let types = only(EventType::ThreadCreated);
    let before = room.subject();
    let mut ears = Ears::of(&events, types).await;
    before.merge(&[set("k", "1")]).await;
    ears.hear_all(&before, 1).await;
    let cursor = ears.cursor;
    drop(ears);
    let missed: Vec<_> = (0..300).map(|_| room.subject()).collect();
    for thread in &missed {
        thread.merge(&[set("k", "1")]).await;
    }

    let mut ears = Ears::after(&events, types, Some(cursor)).await;

    let of: Vec<_> = missed.iter().collect();
    let mut heard = vec![false; missed.len()];
    while heard.contains(&false) {
        let (place, words) = ears.hear(&of).await.unwrap();
        assert_eq!(words, r#"#1 v1 created ["k"]"#);
        heard[place] = true;
    }
    assert_eq!(events.counters().resets.get(), 0);
}

async fn the_cursor_goes_on_when_all_is_read(room: Room) {
    let events = replica(&room);
    let thread = room.subject();
    let types = only(EventType::ThreadCreated);
    let mut ears = Ears::of(&events, types).await;
    thread.merge(&[set("k", "1")]).await;
    ears.hear_all(&thread, 1).await;
    let head = room.backend.log_heads().await.unwrap().now_ms;

    // keep reading, as the feed does
    let goes_on = async {
        while ears.stream.cursor().is_none_or(|cursor| cursor.0 <= head) {
            let next = tokio::time::timeout(Duration::from_millis(50), ears.stream.next());
            assert!(next.await.is_err(), "nothing more happened");
        }
    };
    soon(goes_on).await;

    let cursor = ears.stream.cursor();
    let mut back = Ears::after(&events, types, cursor).await;
    let next = tokio::time::timeout(Duration::from_millis(200), back.stream.next());
    assert!(next.await.is_err(), "it was all heard before");
}

async fn events_that_were_trimmed_are_a_reset(room: Room) {
    let room = room
        .keeping(Retention {
            log: Duration::from_secs(60),
            ..Retention::DEFAULT
        })
        .await;
    let events = replica(&room);
    let types = only(EventType::ThreadCreated);
    let cursor = Ears::of(&events, types).await.cursor;
    let (old, new) = (room.subject(), room.subject());
    old.merge(&[set("k", "1")]).await;
    room.advance(WATCH_EXPIRY);
    room.tidy().await;
    new.merge(&[set("k", "1")]).await;

    let mut ears = Ears::after(&events, types, Some(cursor)).await;
    let of = [&old, &new];

    let mut heard = Vec::new();
    while !heard.contains(&(1, r#"#1 v1 created ["k"]"#.to_owned())) {
        heard.push(ears.hear(&of).await.unwrap());
    }
    assert!(heard.contains(&(2, "reset".into())), "{heard:?}");
}

async fn logs_that_were_all_trimmed_are_one_reset(room: Room) {
    let room = room
        .keeping(Retention {
            log: Duration::from_secs(60),
            ..Retention::DEFAULT
        })
        .await;
    let events = replica(&room);
    let types = only(EventType::ThreadCreated);
    let cursor = Ears::of(&events, types).await.cursor;
    // enough threads that most logs have events
    for _ in 0..500 {
        room.subject().merge(&[set("k", "1")]).await;
    }
    room.advance(WATCH_EXPIRY);
    room.tidy().await;
    let new = room.subject();

    let mut ears = Ears::after(&events, types, Some(cursor)).await;
    assert_eq!(ears.hear(&[]).await.unwrap(), (0, "reset".into()));
    let is_read = async {
        while ears.stream.cursor().is_none_or(|reached| reached <= cursor) {
            let next = tokio::time::timeout(Duration::from_millis(50), ears.stream.next());
            assert!(next.await.is_err(), "it was reported already");
        }
    };
    soon(is_read).await;
    new.merge(&[set("k", "1")]).await;

    assert_eq!(ears.hear_all(&new, 1).await, [r#"#1 v1 created ["k"]"#]);
    assert_eq!(events.counters().resets.get(), 1);
}

async fn changes_that_were_not_logged_are_a_reset(room: Room) {
    let events = replica(&room);
    let cursor = Ears::of(&events, EventTypes::ALL).await.cursor;
    room.advance(WATCH_EXPIRY);

    let mut ears = Ears::after(&events, EventTypes::ALL, Some(cursor)).await;

    assert_eq!(ears.hear(&[]).await.unwrap(), (0, "reset".into()));
}

async fn a_cursor_of_the_future_is_a_reset(room: Room) {
    let events = replica(&room);
    let now = room.backend.log_heads().await.unwrap().now_ms;
    let types = only(EventType::ThreadCreated);
    let thread = room.subject();

    let mut ears = Ears::after(&events, types, Some(Watermark(now + 60_000))).await;
    thread.merge(&[set("k", "1")]).await;

    assert_eq!(ears.hear(&[&thread]).await.unwrap(), (1, "reset".into()));
    assert_eq!(ears.hear_all(&thread, 1).await, [r#"#1 v1 created ["k"]"#]);
}

async fn nobody_is_counted_who_has_gone(room: Room) {
    let events = replica(&room);
    let thread = room.subject();
    let counters = events.counters();

    let ears = Ears::of(&events, EventTypes::ALL).await;
    let ear = super::Ear::of(&events, &thread).await;
    let open = (counters.global_streams.get(), counters.thread_streams.get());
    drop((ears, ear));

    assert_eq!(open, (1, 1));
    let closed = (counters.global_streams.get(), counters.thread_streams.get());
    assert_eq!(closed, (0, 0));
}

async fn nothing_is_read_when_nobody_listens(room: Room) {
    let events = replica(&room);
    let thread = room.subject();
    let mut ear = super::Ear::of(&events, &thread).await;
    thread.merge(&[set("k", "1")]).await;
    ear.hear().await.unwrap();
    drop(ear);
    let read = || async { events.counters().events_read.get() };
    let before = read().await;

    let other = room.subject();
    for number in 0..20 {
        other.merge(&[set("k", &number.to_string())]).await;
    }
    let mut ear = super::Ear::of(&events, &thread).await;
    thread.merge(&[set("k", "2")]).await;
    ear.hear().await.unwrap();

    // since it reconnected, the stream reads only events of its own log
    until(|| async { read().await > before }).await;
    assert!(read().await <= before + 2);
}

over_every_store!(
    the_events_of_all_threads_are_heard,
    changes_are_logged_while_somebody_wants_them,
    changes_are_not_logged_for_who_does_not_want_them,
    who_comes_back_misses_nothing,
    the_cursor_goes_on_when_all_is_read,
    events_that_were_trimmed_are_a_reset,
    logs_that_were_all_trimmed_are_one_reset,
    changes_that_were_not_logged_are_a_reset,
    a_cursor_of_the_future_is_a_reset,
    nobody_is_counted_who_has_gone,
    nothing_is_read_when_nobody_listens,
);
