use std::sync::Arc;
use std::time::Duration;

use threadkeep_domain::{Life, Refusal, Slice, Stamp, Thread, ThreadPolicy};
use threadkeep_store::{ArchivePosition, WriteError};

use super::room::{Room, Subject, delete, increment, push, push_window, set};

const SECOND: Duration = Duration::from_secs(1);
const LONG: Duration = Duration::from_secs(10_000);
/// Tolerance for an expiry. Redis computes the expiry from two clock readings, with a possible pause in between. A
/// wrong expiry would be off by at least ten seconds.
const TOLERANCE_MS: u64 = 5_000;
const START: ArchivePosition = ArchivePosition {
    archived_ms: 0,
    archive: None,
};

async fn restore(
    room: &Room,
    thread: &Subject,
    life: Option<Life>,
) -> Result<Option<Thread>, Stamp> {
    match room.backend.restore(&thread.id, life, &thread.policy).await {
        Ok(thread) => Ok(thread),
        Err(WriteError::Refused(Refusal::VersionMismatch { current })) => Err(current),
        Err(error) => panic!("{error:?}"),
    }
}

async fn a_restored_thread_has_its_content_in_a_new_life(room: Room) {
    let thread = room.subject();
    thread
        .merge(&[set("k", "1.0"), set("o", r#"{"b":1,"a":[]}"#)])
        .await;
    thread.set_metadata(r#"{"a":1}"#).await.unwrap();
    thread.set_ttl(100 * SECOND).await;
    let last = thread.thread().await.unwrap();
    let state = thread.state().await;
    thread.destroy().await;
    room.advance(10 * SECOND);

    let back = restore(&room, &thread, None).await.unwrap().unwrap();

    assert_eq!(thread.state().await, state);
    assert_eq!(back.stamp.version, 4);
    assert_ne!(back.stamp.life, last.stamp.life);
    assert_eq!(back.metadata.as_str(), r#"{"a":1}"#);
    assert_eq!((back.size_bytes, back.keys), (last.size_bytes, last.keys));
    assert_eq!(back.ttl, 100 * SECOND);
    assert_eq!(back.created_ms, last.created_ms);
    assert!(back.updated_ms >= last.updated_ms + 10_000);
    assert!(back.expires_ms.abs_diff(back.updated_ms + 100_000) <= TOLERANCE_MS);
    let read = thread.thread().await.unwrap();
    assert_eq!((read.stamp, read.metadata), (back.stamp, back.metadata));
    assert_eq!(
        room.story(&thread).await,
        [
            r#"#1 v1 created ["k","o"]"#,
            "#2 v3 destroyed",
            r#"#3 v4 created ["k","o"] restored"#,
        ]
    );
    let event = room.events(&thread).await.pop().unwrap();
    assert_eq!(
        (event.life, event.time_ms),
        (back.stamp.life, back.updated_ms)
    );
}

async fn a_restore_removes_the_archive_and_the_tombstone(room: Room) {
    let thread = room.subject();
    let life = thread.merge(&[set("k", "1")]).await.stamp.life;
    thread.destroy().await;
    assert_eq!(thread.try_merge(&[]).await, Err(Refusal::Destroyed));

    restore(&room, &thread, Some(life)).await.unwrap().unwrap();

    assert_eq!(room.archive(&thread).await, None);
    let by_life = room.backend.get_archive(&thread.id, Some(life)).await;
    assert_eq!(by_life.unwrap(), None);
    assert_eq!(thread.merge(&[set("l", "1")]).await.stamp.version, 3);
    assert_eq!(thread.state().await.unwrap(), r#"{"k":1,"l":1}"#);
}

async fn the_end_event_keeps_the_final_state(room: Room) {
    let thread = room.subject();
    let life = thread.merge(&[push("l", "1")]).await.stamp.life;
    thread.set_metadata(r#"{"a":1}"#).await.unwrap();
    thread.destroy().await;
    let before = room.backend.get_final(&thread.id, life).await.unwrap();

    restore(&room, &thread, None).await.unwrap().unwrap();
    thread.merge(&[push("l", "2"), set("k", "1")]).await;
    thread.set_metadata("{}").await.unwrap();

    let now = room.backend.get_final(&thread.id, life).await.unwrap();
    assert!(before.is_some());
    assert_eq!(now, before);
    let listed = room.backend.list_archives(&START, 10).await.unwrap();
    assert!(listed.heads.is_empty());
    thread.destroy().await;
    let listed = room.backend.list_archives(&START, 10).await.unwrap();
    assert_eq!(listed.heads.len(), 1);
    assert_eq!(restore(&room, &thread, Some(life)).await, Ok(None));
    let now = room.backend.get_final(&thread.id, life).await.unwrap();
    assert_eq!(now, before);
}

async fn large_arrays_can_be_changed_after_a_restore(room: Room) {
    let thread = room.subject();
    let element = |n: u32| format!("\"{n}{}\"", "x".repeat(100));
    for number in 0..100 {
        thread
            .merge(&[push_window("l", &element(number), 80)])
            .await;
    }
    let huge = format!("\"{}\"", "y".repeat(10_000));
    thread
        .merge(&[push("m", &huge), push("m", "1"), increment("n", 7)])
        .await;
    let state = thread.state().await;
    room.advance(thread.policy.ttl);
    room.reap().await;

    restore(&room, &thread, None).await.unwrap().unwrap();

    assert_eq!(thread.state().await, state);
    thread.merge(&[push_window("l", &element(100), 80)]).await;
    thread
        .merge(&[push("m", "2"), increment("n", 1), set("new", "[1]")])
        .await;
    let tail = thread.part("l", Some(Slice::Tail(1))).await.unwrap();
    let expected: Vec<_> = (21..=100).map(element).collect();
    assert_eq!(tail.total, Some(80));
    assert_eq!(
        thread.value("l").await.unwrap(),
        format!("[{}]", expected.join(","))
    );
    assert_eq!(thread.value("m").await.unwrap(), format!("[{huge},1,2]"));
    assert_eq!(thread.value("n").await.unwrap(), "8");
    thread.merge(&[delete("l"), delete("m")]).await;
    assert_eq!(thread.state().await.unwrap(), r#"{"n":8,"new":[1]}"#);
}

async fn a_restore_does_not_replace_an_existing_thread(room: Room) {
    let thread = room.subject();
    let old = thread.merge(&[set("old", "1")]).await.stamp.life;
    thread.destroy().await;
    room.advance(thread.policy.tombstone);
    let current = thread.merge(&[set("new", "1")]).await.stamp;

    for life in [None, Some(old), Some(Life(7))] {
        assert_eq!(restore(&room, &thread, life).await, Err(current));
    }

    assert_eq!(thread.state().await.unwrap(), r#"{"new":1}"#);
    assert_eq!(thread.stamp().await, current);
    assert!(room.archive(&thread).await.is_some());
    assert_eq!(room.events(&thread).await.len(), 3);
}

async fn a_thread_without_an_archive_is_not_restored(room: Room) {
    let never = room.subject();
    let other = room.subject();
    other.merge(&[]).await;
    other.destroy().await;

    assert_eq!(restore(&room, &never, None).await, Ok(None));
    assert_eq!(restore(&room, &never, Some(Life(7))).await, Ok(None));
    assert_eq!(restore(&room, &other, Some(Life(7))).await, Ok(None));

    assert!(!never.exists().await);
    assert!(room.events(&never).await.is_empty());
    assert_eq!(other.try_merge(&[]).await, Err(Refusal::Destroyed));
}

async fn a_second_restore_is_refused_because_the_thread_exists(room: Room) {
    let thread = room.subject();
    let life = thread.merge(&[]).await.stamp.life;
    thread.destroy().await;

    let back = restore(&room, &thread, Some(life)).await.unwrap().unwrap();

    for life in [None, Some(life)] {
        assert_eq!(restore(&room, &thread, life).await, Err(back.stamp));
    }
    assert_eq!(room.events(&thread).await.len(), 3);
}

async fn one_of_several_concurrent_restores_succeeds(room: Room) {
    let room = Arc::new(room);
    let thread = room.subject();
    thread.merge(&[push("l", "1")]).await;
    thread.destroy().await;

    let tries = (0..20).map(|_| {
        let (room, thread) = (Arc::clone(&room), thread.clone());
        tokio::spawn(async move { restore(&room, &thread, None).await })
    });
    let mut done = Vec::new();
    for attempt in tries.collect::<Vec<_>>() {
        done.extend(attempt.await.unwrap().ok().flatten());
    }

    assert_eq!(done.len(), 1);
    assert_eq!(thread.stamp().await, done[0].stamp);
    assert_eq!(room.events(&thread).await.len(), 3);
}

async fn an_expired_thread_that_is_not_yet_ended_is_ended_and_restored(room: Room) {
    let thread = room.subject();
    let life = thread.merge(&[set("k", "1")]).await.stamp.life;
    room.advance(thread.policy.ttl);

    let back = restore(&room, &thread, Some(life)).await.unwrap().unwrap();

    assert_eq!(back.stamp.version, 2);
    assert_eq!(thread.state().await.unwrap(), r#"{"k":1}"#);
    assert_eq!(
        room.story(&thread).await,
        [
            r#"#1 v1 created ["k"]"#,
            "#2 v1 expired",
            r#"#3 v2 created ["k"] restored"#,
        ]
    );
}

async fn an_earlier_life_can_be_restored_and_event_numbers_continue(room: Room) {
    let thread = room.subject();
    let mut lives = Vec::new();
    for state in ["1", "2"] {
        lives.push(thread.merge(&[set("k", state)]).await.stamp.life);
        thread.merge(&[]).await;
        thread.destroy().await;
        room.advance(thread.policy.tombstone);
    }

    restore(&room, &thread, Some(lives[0]))
        .await
        .unwrap()
        .unwrap();

    assert_eq!(thread.state().await.unwrap(), r#"{"k":1}"#);
    let later = room.backend.get_archive(&thread.id, Some(lives[1])).await;
    assert_eq!(&later.unwrap().unwrap().state[..], br#"{"k":2}"#);
    assert_eq!(
        room.story(&thread).await[3..],
        ["#4 v2 destroyed", r#"#5 v3 created ["k"] restored"#]
    );
}

async fn a_restored_thread_ends_like_any_other(room: Room) {
    let thread = room.subject();
    thread.merge(&[set("k", "1")]).await;
    room.advance(thread.policy.ttl);
    room.reap().await;

    for number in 1..4 {
        let back = restore(&room, &thread, None).await.unwrap().unwrap();
        assert_eq!(back.stamp.version, 2 * number);
        thread.merge(&[push("l", "1")]).await;
        room.advance(thread.policy.ttl - SECOND);
        room.reap().await;
        assert!(thread.exists().await);
        room.advance(thread.policy.ttl);
        room.reap().await;
        let archive = room.archive(&thread).await.unwrap();
        assert_eq!(archive.head.version, 2 * number + 1);
    }
    assert_eq!(
        room.story(&thread).await[..4],
        [
            r#"#1 v1 created ["k"]"#,
            "#2 v1 expired",
            r#"#3 v2 created ["k"] restored"#,
            "#4 v3 expired",
        ]
    );
    assert_eq!(room.events(&thread).await.len(), 8);
}

async fn a_restore_restarts_the_absolute_lifetime(room: Room) {
    let thread = room.subject_under(ThreadPolicy {
        max_age: Some(150 * SECOND),
        ttl: 100 * SECOND,
        ..ThreadPolicy::THREAD
    });
    thread.merge(&[]).await;
    room.advance(1_000 * SECOND);
    room.reap().await;

    let back = restore(&room, &thread, None).await.unwrap().unwrap();
    room.advance(90 * SECOND);
    let used = thread.thread().await.unwrap();
    room.advance(60 * SECOND);

    assert!(used.expires_ms.abs_diff(back.updated_ms + 150_000) <= TOLERANCE_MS);
    assert!(!thread.exists().await);
}

async fn a_restored_thread_is_still_watched(room: Room) {
    let thread = room.subject();
    thread.merge(&[]).await;
    thread.destroy().await;
    room.watch(&thread, LONG).await;

    restore(&room, &thread, None).await.unwrap().unwrap();
    thread.merge(&[set("k", "1")]).await;

    assert_eq!(
        room.story(&thread).await[2..],
        ["#3 v2 created [] restored", r#"#4 v3 updated ["k"]"#]
    );
}

super::over_every_store_and_confirmed! {
    a_restored_thread_has_its_content_in_a_new_life,
    a_restore_removes_the_archive_and_the_tombstone,
    the_end_event_keeps_the_final_state,
    large_arrays_can_be_changed_after_a_restore,
    a_restore_does_not_replace_an_existing_thread,
    a_thread_without_an_archive_is_not_restored,
    a_second_restore_is_refused_because_the_thread_exists,
    one_of_several_concurrent_restores_succeeds,
    an_expired_thread_that_is_not_yet_ended_is_ended_and_restored,
    an_earlier_life_can_be_restored_and_event_numbers_continue,
    a_restored_thread_ends_like_any_other,
    a_restore_restarts_the_absolute_lifetime,
    a_restored_thread_is_still_watched,
}
