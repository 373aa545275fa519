use std::sync::Arc;
use std::time::Duration;

use threadkeep_domain::{Retention, ThreadPolicy};

use super::{Ear, WATCH_EXPIRY, over_every_store, replica, soon};
use crate::conformance::room::{Room, delete, push, set};
use crate::conformance::scope_room::numbered;

async fn what_happens_is_heard_in_order(room: Room) {
    let events = replica(&room);
    let thread = room.subject();
    let mut ear = Ear::of(&events, &thread).await;

    thread.merge(&[set("b", "1"), push("a", "2")]).await;
    thread.merge(&[delete("b")]).await;
    thread.set_metadata(r#"{"m":1}"#).await.unwrap();
    thread.destroy().await;

    assert_eq!(
        ear.hear_all(4).await,
        [
            r#"#1 v1 created ["a","b"]"#,
            r#"#2 v2 updated ["b"]"#,
            "#3 v3 updated [] metadata",
            "#4 v3 destroyed",
        ]
    );
    ear.is_quiet().await;
}

async fn other_threads_are_not_heard(room: Room) {
    let events = replica(&room);
    let (thread, other) = (room.subject(), room.subject());
    let mut ear = Ear::of(&events, &thread).await;
    let _other = Ear::of(&events, &other).await;

    other.merge(&[set("k", "1")]).await;
    thread.merge(&[set("k", "1")]).await;

    assert_eq!(ear.hear().await.unwrap(), r#"#1 v1 created ["k"]"#);
    ear.is_quiet().await;
}

async fn everybody_who_listens_hears_it(room: Room) {
    let (one, other) = (replica(&room), replica(&room));
    let thread = room.subject();
    let mut ears = [
        Ear::of(&one, &thread).await,
        Ear::of(&one, &thread).await,
        Ear::of(&other, &thread).await,
    ];

    thread.merge(&[set("k", "1")]).await;
    thread.merge(&[set("k", "2")]).await;

    for ear in &mut ears {
        assert_eq!(
            ear.hear_all(2).await,
            [r#"#1 v1 created ["k"]"#, r#"#2 v2 updated ["k"]"#]
        );
    }
}

async fn who_comes_back_hears_what_was_missed(room: Room) {
    let events = replica(&room);
    let thread = room.subject();
    let mut ear = Ear::of(&events, &thread).await;
    thread.merge(&[set("k", "1")]).await;
    ear.hear().await.unwrap();
    let cursor = ear.cursor;
    drop(ear);

    // the thread is still watched shortly after its last subscriber disconnects
    thread.merge(&[set("k", "2")]).await;
    thread.merge(&[set("k", "3")]).await;
    let mut ear = Ear::after(&events, &thread, Some(cursor)).await;
    thread.merge(&[set("k", "4")]).await;

    assert_eq!(
        ear.hear_all(3).await,
        [
            r#"#2 v2 updated ["k"]"#,
            r#"#3 v3 updated ["k"]"#,
            r#"#4 v4 updated ["k"]"#,
        ]
    );
    ear.is_quiet().await;
}

async fn who_comes_back_to_another_replica_goes_on_there(room: Room) {
    let (one, other) = (replica(&room), replica(&room));
    let thread = room.subject();
    let mut ear = Ear::of(&one, &thread).await;
    thread.merge(&[set("k", "1")]).await;
    ear.hear().await.unwrap();
    let cursor = ear.cursor;
    one.shutdown().await;
    assert_eq!(ear.hear().await, None);

    thread.merge(&[set("k", "2")]).await;
    let mut ear = Ear::after(&other, &thread, Some(cursor)).await;

    assert_eq!(ear.hear().await.unwrap(), r#"#2 v2 updated ["k"]"#);
}

async fn who_comes_back_to_what_is_as_it_was_hears_nothing(room: Room) {
    let events = replica(&room);
    let (thread, neighbour) = (room.subject(), room.subject());
    thread.merge(&[set("k", "1")]).await;
    let cursor = Ear::of(&events, &thread).await.cursor;

    neighbour.merge(&[set("k", "1")]).await;
    room.advance(WATCH_EXPIRY);
    let mut ear = Ear::after(&events, &thread, Some(cursor)).await;

    ear.is_quiet().await;
    assert_eq!(events.counters().resets.get(), 0);
}

async fn appends_are_heard_among_the_changes(room: Room) {
    let events = replica(&room);
    let thread = room.subject();
    let history = room.scope_of(&thread);
    let mut ear = Ear::of(&events, &thread).await;

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
    assert_eq!(ear.hear_all(4).await, expected);
    let cursor = ear.cursor;
    drop(ear);

    history.add(&numbered(4..5)).await;
    let mut ear = Ear::after(&events, &thread, Some(cursor)).await;
    assert_eq!(ear.hear().await.unwrap(), "#5 v2 appended 4-4");
    ear.is_quiet().await;
    assert_eq!(events.counters().resets.get(), 0);
}

async fn an_append_that_was_not_logged_is_a_reset(room: Room) {
    let events = replica(&room);
    let thread = room.subject();
    let history = room.scope_of(&thread);
    thread.merge(&[set("k", "1")]).await;
    let cursor = Ear::of(&events, &thread).await.cursor;
    room.advance(WATCH_EXPIRY);

    history.add(&numbered(1..3)).await;
    let mut ear = Ear::after(&events, &thread, Some(cursor)).await;
    assert_eq!(ear.hear().await.unwrap(), "reset v1");
    history.add(&numbered(3..4)).await;
    assert_eq!(ear.hear().await.unwrap(), "#2 v1 appended 3-3");

    ear.is_quiet().await;
    assert_eq!(events.counters().resets.get(), 1);
}

async fn a_restored_history_is_no_gap(room: Room) {
    let events = replica(&room);
    let thread = room.subject();
    let history = room.scope_of(&thread);
    let mut ear = Ear::of(&events, &thread).await;
    thread.merge(&[set("k", "1")]).await;
    history.add(&numbered(1..3)).await;
    thread.destroy().await;
    assert_eq!(ear.hear_all(3).await[2], "#3 v1 destroyed");

    let restored = room.backend.restore(&thread.id, None, &thread.policy).await;
    assert!(restored.unwrap().is_some());
    history.add(&numbered(3..4)).await;

    assert_eq!(
        ear.hear_all(2).await,
        [r#"#4 v2 created ["k"] restored"#, "#5 v2 appended 3-3"]
    );
    ear.is_quiet().await;
    assert_eq!(events.counters().resets.get(), 0);
}

async fn a_change_that_was_not_logged_is_a_reset(room: Room) {
    let events = replica(&room);
    let thread = room.subject();
    thread.merge(&[set("k", "1")]).await;
    let cursor = Ear::of(&events, &thread).await.cursor;
    room.advance(WATCH_EXPIRY);

    thread.merge(&[set("k", "2")]).await;
    thread.merge(&[set("k", "3")]).await;
    let mut ear = Ear::after(&events, &thread, Some(cursor)).await;
    thread.merge(&[set("k", "4")]).await;

    assert_eq!(
        ear.hear_all(2).await,
        ["reset v3", r#"#2 v4 updated ["k"]"#],
    );
    ear.is_quiet().await;
    assert_eq!(events.counters().resets.get(), 1);
}

async fn a_reset_comes_before_what_is_still_in_the_log(room: Room) {
    let events = replica(&room);
    let thread = room.subject();
    thread.merge(&[set("k", "1")]).await;
    let cursor = Ear::of(&events, &thread).await.cursor;
    room.advance(WATCH_EXPIRY);
    thread.merge(&[set("k", "2")]).await;
    thread.destroy().await;

    let mut ear = Ear::after(&events, &thread, Some(cursor)).await;

    assert_eq!(ear.hear_all(2).await, ["reset v0", "#2 v2 destroyed"]);
    ear.is_quiet().await;
    let mut again = Ear::after(&events, &thread, Some(ear.cursor)).await;
    again.is_quiet().await;
}

async fn an_event_that_was_trimmed_is_a_reset(room: Room) {
    let room = room
        .keeping(Retention {
            log: Duration::from_secs(60),
            ..Retention::DEFAULT
        })
        .await;
    let events = replica(&room);
    let thread = room.subject();
    thread.merge(&[set("k", "1")]).await;
    let mut ear = Ear::of(&events, &thread).await;
    let cursor = ear.cursor;
    thread.merge(&[set("k", "2")]).await;
    ear.hear().await.unwrap();
    drop(ear);

    room.advance(WATCH_EXPIRY);
    room.tidy().await;
    let mut ear = Ear::after(&events, &thread, Some(cursor)).await;

    assert_eq!(ear.hear().await.unwrap(), "reset v2");
    ear.is_quiet().await;
}

async fn a_life_that_came_and_went_meanwhile_is_heard(room: Room) {
    let events = replica(&room);
    let thread = room.subject();
    let cursor = Ear::of(&events, &thread).await.cursor;
    room.advance(WATCH_EXPIRY);
    thread.merge(&[set("k", "1")]).await;
    thread.destroy().await;

    let mut ear = Ear::after(&events, &thread, Some(cursor)).await;

    assert_eq!(
        ear.hear_all(2).await,
        [r#"#1 v1 created ["k"]"#, "#2 v1 destroyed"]
    );
    ear.is_quiet().await;
}

async fn an_end_by_time_is_heard_with_the_next_life(room: Room) {
    let events = replica(&room);
    let policy = ThreadPolicy {
        ttl: Duration::from_secs(60),
        ..ThreadPolicy::THREAD
    };
    let thread = room.subject_under(policy);
    thread.merge(&[set("k", "1")]).await;
    let mut ear = Ear::of(&events, &thread).await;
    let cursor = ear.cursor;

    // `back` may reconnect before the expiry is noticed; `ear` was connected throughout
    room.advance(Duration::from_secs(61));
    let mut back = Ear::after(&events, &thread, Some(cursor)).await;
    for ear in [&mut ear, &mut back] {
        assert_eq!(ear.hear().await.unwrap(), "#2 v1 expired");
    }
    thread.merge(&[set("k", "2")]).await;

    for ear in [&mut ear, &mut back] {
        assert_eq!(ear.hear().await.unwrap(), r#"#3 v1 created ["k"]"#);
        ear.is_quiet().await;
    }
    assert_eq!(events.counters().resets.get(), 0);
}

async fn a_long_absence_is_caught_up_with_in_order(room: Room) {
    const WRITES: u64 = 1_000;
    let events = replica(&room);
    let thread = room.subject();
    thread.merge(&[set("k", "0")]).await;
    let cursor = Ear::of(&events, &thread).await.cursor;
    for number in 1..=WRITES {
        thread.merge(&[set("k", &number.to_string())]).await;
    }

    let mut ear = Ear::after(&events, &thread, Some(cursor)).await;

    let heard = ear.hear_all(WRITES as usize).await;
    let expected = (1..=WRITES).map(|n| format!(r#"#{} v{} updated ["k"]"#, n + 1, n + 1));
    assert!(heard.into_iter().eq(expected));
    ear.is_quiet().await;
}

async fn a_slow_listener_is_cut_off_and_others_are_not(room: Room) {
    const WRITES: usize = 300;
    let events = replica(&room);
    let thread = room.subject();
    let mut slow = Ear::of(&events, &thread).await;
    let mut quick = Ear::of(&events, &thread).await;

    for number in 0..WRITES {
        thread.merge(&[set("k", &number.to_string())]).await;
        quick.hear().await.unwrap();
    }

    let mut heard = 0;
    while slow.hear().await.is_some() {
        heard += 1;
    }
    assert_eq!(heard, 128, "what the buffer holds");
    assert_eq!(events.counters().streams_cut_off.get(), 1);
    let mut back = Ear::after(&events, &thread, Some(slow.cursor)).await;
    assert_eq!(
        back.hear_all(WRITES - heard).await.last().unwrap(),
        r#"#300 v300 updated ["k"]"#
    );
}

async fn a_cursor_from_a_log_that_is_gone_is_a_reset(room: Room) {
    let events = replica(&room);
    let thread = room.subject();
    thread.merge(&[set("k", "1")]).await;
    let mut cursor = Ear::of(&events, &thread).await.cursor;
    cursor.position.ms += 60_000;
    cursor.stamp.version += 4;

    let mut ear = Ear::after(&events, &thread, Some(cursor)).await;
    thread.merge(&[set("k", "2")]).await;

    assert_eq!(
        ear.hear_all(2).await,
        ["reset v1", r#"#2 v2 updated ["k"]"#]
    );
}

async fn listening_moves_no_expiry(room: Room) {
    let events = replica(&room);
    let thread = room.subject();
    thread.merge(&[set("k", "1")]).await;
    let half = ThreadPolicy::THREAD.ttl / 2;

    room.advance(half);
    let mut ear = Ear::of(&events, &thread).await;
    room.advance(half + Duration::from_secs(1));

    assert_eq!(ear.hear().await.unwrap(), "#2 v1 expired");
    assert!(!thread.exists().await);
}

async fn streams_come_and_go_while_events_come(room: Room) {
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
    let mut ear = Ear::of(&events, &thread).await;
    let first = ear.cursor.stamp.version;
    let mut versions = Vec::new();
    let all = async {
        while versions.last() != Some(&400) && ear.cursor.stamp.version < 400 {
            ear.hear().await.unwrap();
            versions.push(ear.cursor.stamp.version);
            if versions.len() % 7 == 0 {
                ear = Ear::after(&events, &thread, Some(ear.cursor)).await;
            }
        }
    };
    soon(all).await;
    writer.await.unwrap();

    let expected: Vec<_> = (first + 1..=400).collect();
    assert_eq!(versions, expected);
    assert_eq!(events.counters().resets.get(), 0);
}

over_every_store!(
    what_happens_is_heard_in_order,
    other_threads_are_not_heard,
    everybody_who_listens_hears_it,
    who_comes_back_hears_what_was_missed,
    who_comes_back_to_another_replica_goes_on_there,
    who_comes_back_to_what_is_as_it_was_hears_nothing,
    appends_are_heard_among_the_changes,
    an_append_that_was_not_logged_is_a_reset,
    a_restored_history_is_no_gap,
    a_change_that_was_not_logged_is_a_reset,
    a_reset_comes_before_what_is_still_in_the_log,
    an_event_that_was_trimmed_is_a_reset,
    a_life_that_came_and_went_meanwhile_is_heard,
    an_end_by_time_is_heard_with_the_next_life,
    a_long_absence_is_caught_up_with_in_order,
    a_slow_listener_is_cut_off_and_others_are_not,
    a_cursor_from_a_log_that_is_gone_is_a_reset,
    listening_moves_no_expiry,
    streams_come_and_go_while_events_come,
);
