use std::sync::Arc;
use std::time::Duration;

use threadkeep_domain::{EndReason, Refusal, Retention, ThreadPolicy};

use super::room::{Room, Subject, in_parallel, increment, once, push, set};

const SECOND: Duration = Duration::from_secs(1);
/// Tolerance in milliseconds, because Redis may pause during a script. A wrong time would be off by much more.
const TOLERANCE_MS: u64 = 10_000;

fn living_for(ttl_seconds: u32) -> ThreadPolicy {
    ThreadPolicy {
        ttl: ttl_seconds * SECOND,
        ..ThreadPolicy::THREAD
    }
}

async fn reaping_an_expired_thread_archives_its_state(room: Room) {
    let thread = room.subject();
    thread.merge(&[set("k", "1.0"), push("l", "[]")]).await;
    thread.set_metadata(r#"{"a":1}"#).await.unwrap();
    let last = thread.thread().await.unwrap();
    room.advance(thread.policy.ttl + 100 * SECOND);

    room.reap().await;

    let end = room.events(&thread).await.pop().unwrap();
    let archive = room.archive(&thread).await.unwrap();
    assert_eq!(
        room.story(&thread).await,
        [r#"#1 v1 created ["k","l"]"#, "#2 v2 expired"]
    );
    assert_eq!(end.life, last.stamp.life);
    assert!(end.time_ms.abs_diff(last.expires_ms) <= TOLERANCE_MS);
    assert!(end.id.position.ms >= end.time_ms + 100_000 - TOLERANCE_MS);
    assert_eq!(&archive.state[..], br#"{"k":1.0,"l":[[]]}"#);
    assert_eq!(archive.head.id, thread.id);
    assert_eq!(archive.head.life, last.stamp.life);
    assert_eq!(archive.head.version, 2);
    assert_eq!(archive.head.size_bytes, last.size_bytes);
    assert_eq!(archive.head.reason, EndReason::Expired);
    assert_eq!(archive.head.ended_ms, end.time_ms);
    assert!(archive.head.archived_ms.abs_diff(end.id.position.ms) <= TOLERANCE_MS);
    assert_eq!(archive.head.metadata.as_str(), r#"{"a":1}"#);
    assert!(!room.is_due(&thread).await);
    assert!(!thread.exists().await);
}

async fn a_thread_is_due_at_its_deadline_and_not_before(room: Room) {
    let thread = room.subject_under(living_for(100));
    thread.merge(&[]).await;

    room.advance(90 * SECOND);
    let before = room.is_due(&thread).await;
    room.advance(10 * SECOND);
    let after = room.is_due(&thread).await;

    assert!(!before);
    // an embedded store may already have ended the thread itself
    assert!(after || room.events(&thread).await.len() == 2);
}

async fn a_thread_used_just_before_its_deadline_stays_alive(room: Room) {
    let read = room.subject_under(living_for(100));
    let written = room.subject_under(living_for(100));
    let listed = room.subject_under(living_for(100));
    for thread in [&read, &written, &listed] {
        thread.merge(&[push("l", "1")]).await;
    }

    room.advance(99 * SECOND);
    assert!(read.exists().await);
    written.merge(&[push("l", "2")]).await;
    listed.merge(&[push("l", "2"), set("k", "1")]).await;
    room.advance(90 * SECOND);
    room.reap().await;

    for thread in [&read, &written, &listed] {
        assert!(!room.is_due(thread).await);
        assert_eq!(room.events(thread).await.len(), 1);
        room.backend
            .end_due(room.bucket(thread), &[thread.id])
            .await
            .unwrap();
    }
    room.advance(10 * SECOND);
    room.reap().await;
    for thread in [&read, &written, &listed] {
        let end = room.events(thread).await.pop().unwrap();
        let used_ms = end.time_ms - 100_000;
        assert_eq!(end.sequence, 2);
        assert!(used_ms + 89_000 < room.clock.now_ms() - 10_000);
        assert!(!thread.exists().await);
    }
}

async fn every_kind_of_write_ends_an_expired_life_and_begins_a_new_one(room: Room) {
    let check = async |kind: Kind, keys: &str| {
        let thread = room.subject();
        let expired = thread
            .merge(&[push("old", "1"), set("k", "[]")])
            .await
            .stamp;
        let last = thread.thread().await.unwrap();
        room.advance(thread.policy.ttl + 50 * SECOND);

        kind.write(&thread).await;

        let events = room.events(&thread).await;
        let end = &events[1];
        assert_eq!(
            room.story(&thread).await,
            [
                r#"#1 v1 created ["k","old"]"#.to_owned(),
                "#2 v1 expired".to_owned(),
                format!("#3 v1 created {keys}"),
            ]
        );
        assert_eq!(end.life, expired.life);
        assert!(end.time_ms.abs_diff(last.expires_ms) <= TOLERANCE_MS);
        assert_ne!(events[2].life, expired.life);
        let archive = room.archive(&thread).await.unwrap();
        assert_eq!(&archive.state[..], br#"{"k":[],"old":[1]}"#);
        room.reap().await;
        assert_eq!(room.events(&thread).await.len(), 3);
        assert!(thread.exists().await);
    };

    check(Kind::Set, r#"["k"]"#).await;
    check(Kind::Push, r#"["k"]"#).await;
    check(Kind::List, r#"["k","n"]"#).await;
    check(Kind::Metadata, "[]").await;
    check(Kind::Keyed, r#"["k"]"#).await;
    check(Kind::Nothing, "[]").await;
}

#[derive(Debug)]
enum Kind {
    Set,
    Push,
    List,
    Metadata,
    Keyed,
    Nothing,
}

impl Kind {
    async fn write(&self, thread: &Subject) {
        let written = match self {
            Self::Set => thread.try_merge(&[set("k", "2")]).await,
            Self::Push => thread.try_merge(&[push("k", "2")]).await,
            Self::List => thread.try_merge(&[set("k", "2"), increment("n", 1)]).await,
            Self::Metadata => thread.set_metadata("{}").await,
            Self::Keyed => thread.merge_once(once("a", "a"), &[push("k", "2")]).await,
            Self::Nothing => thread.try_merge(&[]).await,
        };
        assert_eq!(written.unwrap().stamp.version, 1);
    }
}

async fn destroying_an_expired_thread_logs_that_it_expired(room: Room) {
    let thread = room.subject();
    thread.merge(&[set("k", "1")]).await;
    let last = thread.thread().await.unwrap();
    room.advance(thread.policy.ttl);

    let destroyed = thread.destroy().await;

    let end = room.events(&thread).await.pop().unwrap();
    assert!(!destroyed.existed);
    assert_eq!(
        room.story(&thread).await,
        [r#"#1 v1 created ["k"]"#, "#2 v1 expired"]
    );
    assert!(end.time_ms.abs_diff(last.expires_ms) <= TOLERANCE_MS);
    // unlike a destroyed thread, an expired thread does not reject the next write, which creates the thread again
    assert_eq!(thread.merge(&[]).await.stamp.version, 1);
}

async fn a_destroyed_thread_is_not_due(room: Room) {
    let thread = room.subject();
    thread.merge(&[]).await;
    thread.destroy().await;

    room.advance(2 * thread.policy.ttl);
    room.reap().await;

    assert!(!room.is_due(&thread).await);
    assert_eq!(
        room.story(&thread).await,
        ["#1 v1 created []", "#2 v1 destroyed"]
    );
}

async fn a_late_reap_logs_the_exact_end_of_an_absolute_lifetime(room: Room) {
    let thread = room.subject_under(ThreadPolicy {
        max_age: Some(150 * SECOND),
        ..living_for(100)
    });
    thread.merge(&[]).await;
    room.advance(90 * SECOND);
    let created_ms = thread.thread().await.unwrap().created_ms;
    room.advance(3_600 * SECOND);

    room.reap().await;

    let end = room.events(&thread).await.pop().unwrap();
    assert_eq!(end.time_ms, created_ms + 150_000);
    assert_eq!(end.sequence, 2);
}

async fn a_thread_whose_ttl_was_shortened_is_due_sooner(room: Room) {
    let shorter = room.subject_under(living_for(10_000));
    let longer = room.subject_under(living_for(100));
    for thread in [&shorter, &longer] {
        thread.merge(&[]).await;
    }

    shorter.set_ttl(60 * SECOND).await;
    longer.set_ttl(10_000 * SECOND).await;
    room.advance(120 * SECOND);
    room.reap().await;

    assert_eq!(
        room.story(&shorter).await,
        ["#1 v1 created []", "#2 v2 expired"]
    );
    assert!(longer.exists().await);
    assert_eq!(room.events(&longer).await.len(), 1);
}

async fn concurrent_reapers_end_each_thread_once(room: Room) {
    const THREADS: usize = 300;
    let policy = living_for(100);
    let threads: Vec<_> = (0..THREADS).map(|_| room.subject_under(policy)).collect();
    for (number, thread) in threads.iter().enumerate() {
        thread.merge(&[set("n", &number.to_string())]).await;
    }
    room.advance(policy.ttl);

    let room = Arc::new(room);
    let reapers = (0..4).map(|_| {
        let room = Arc::clone(&room);
        in_parallel(async move { room.reap().await })
    });
    let mut ended = 0;
    for reaper in reapers.collect::<Vec<_>>() {
        ended += reaper.await.unwrap().ended;
    }

    // an embedded store may have ended some threads itself
    assert!(ended <= THREADS as u64);
    for (number, thread) in threads.iter().enumerate() {
        let state = room.archive(thread).await.unwrap().state;
        assert_eq!(
            room.story(thread).await,
            [r#"#1 v1 created ["n"]"#, "#2 v1 expired"]
        );
        assert_eq!(state, format!(r#"{{"n":{number}}}"#));
    }
}

async fn a_concurrent_reaper_and_write_end_a_life_once(room: Room) {
    let room = Arc::new(room);
    let threads: Vec<_> = (0..50).map(|_| room.subject()).collect();
    for thread in &threads {
        thread.merge(&[]).await;
    }
    room.advance(threads[0].policy.ttl);

    let reaper = Arc::clone(&room);
    let reaper = in_parallel(async move { reaper.reap().await });
    for thread in &threads {
        thread.merge(&[set("k", "1")]).await;
    }
    reaper.await.unwrap();

    for thread in &threads {
        let expected = [
            "#1 v1 created []",
            "#2 v1 expired",
            r#"#3 v1 created ["k"]"#,
        ];
        assert_eq!(room.story(thread).await, expected);
    }
}

async fn ending_threads_that_are_not_due_does_nothing(room: Room) {
    let living = room.subject();
    let ended = room.subject();
    let absent = room.subject();
    living.merge(&[]).await;
    ended.merge(&[]).await;
    ended.destroy().await;

    for thread in [&living, &ended, &absent] {
        let ids = [thread.id, thread.id];
        let reaped = room.backend.end_due(room.bucket(thread), &ids).await;
        let reaped = reaped.unwrap();
        assert_eq!((reaped.ended, reaped.lost), (0, 0));
    }
    let foreign = (room.bucket(&living) + 1) % room.backend.buckets();
    let reaped = room.backend.end_due(foreign, &[living.id]).await.unwrap();
    assert_eq!((reaped.ended, reaped.lost), (0, 0));

    assert!(living.exists().await);
    assert_eq!(room.events(&living).await.len(), 1);
    assert_eq!(room.events(&ended).await.len(), 2);
    assert!(room.events(&absent).await.is_empty());
    assert_eq!(ended.try_merge(&[]).await, Err(Refusal::Destroyed));
}

async fn an_end_after_the_grace_period_is_still_logged(room: Room) {
    let room = room
        .keeping(Retention {
            grace: 100 * SECOND,
            ..Retention::DEFAULT
        })
        .await;
    let reaped = room.subject();
    let written = room.subject();
    for thread in [&reaped, &written] {
        thread.merge(&[set("k", "1")]).await;
    }
    let last = reaped.thread().await.unwrap();
    room.advance(reaped.policy.ttl + 1_000 * SECOND);

    written.merge(&[]).await;
    room.reap().await;
    room.reap().await;

    for (thread, event_count) in [(&reaped, 2), (&written, 3)] {
        let events = room.events(thread).await;
        let archive = room.archive(thread).await;
        let end = super::story::words(&events[1]);
        assert_eq!(events.len(), event_count);
        // the end event reports the state as lost, unless the store kept the thread's data beyond the grace period
        assert_eq!(end.ends_with("lost"), archive.is_none(), "{end}");
        assert!(end.contains("expired"));
        assert!(events[1].time_ms.abs_diff(last.expires_ms) <= 60_000);
    }
}

async fn an_expired_thread_keeps_its_data_until_the_grace_period_ends(room: Room) {
    let room = room
        .keeping(Retention {
            grace: 1_000 * SECOND,
            ..Retention::DEFAULT
        })
        .await;
    let thread = room.subject();
    thread.merge(&[set("k", "1")]).await;
    room.advance(thread.policy.ttl + 990 * SECOND);

    room.reap().await;

    assert_eq!(
        room.story(&thread).await,
        [r#"#1 v1 created ["k"]"#, "#2 v1 expired"]
    );
    assert_eq!(
        &room.archive(&thread).await.unwrap().state[..],
        br#"{"k":1}"#
    );
}

async fn due_threads_are_listed_by_deadline_up_to_a_limit(room: Room) {
    let first = room.subject_under(living_for(100));
    let mut threads = vec![first];
    while threads.len() < 5 {
        let thread = room.subject_under(living_for(100));
        if room.bucket(&thread) == room.bucket(&threads[0]) {
            threads.push(thread);
        }
    }
    for thread in &threads {
        thread.merge(&[]).await;
        room.advance(SECOND);
    }
    room.advance(200 * SECOND);

    let bucket = room.bucket(&threads[0]);
    let due = room.backend.due(&[bucket], 3).await.unwrap().ids.remove(0);

    let ids: Vec<_> = threads.iter().map(|thread| thread.id).collect();
    // an embedded store may already have ended the threads itself
    let are_ended = room.events(&threads[0]).await.len() == 2;
    assert!(are_ended || due == ids[..3]);
}

super::over_every_store! {
    reaping_an_expired_thread_archives_its_state,
    a_thread_is_due_at_its_deadline_and_not_before,
    a_thread_used_just_before_its_deadline_stays_alive,
    every_kind_of_write_ends_an_expired_life_and_begins_a_new_one,
    destroying_an_expired_thread_logs_that_it_expired,
    a_destroyed_thread_is_not_due,
    a_late_reap_logs_the_exact_end_of_an_absolute_lifetime,
    a_thread_whose_ttl_was_shortened_is_due_sooner,
    concurrent_reapers_end_each_thread_once,
    a_concurrent_reaper_and_write_end_a_life_once,
    ending_threads_that_are_not_due_does_nothing,
    an_end_after_the_grace_period_is_still_logged,
    an_expired_thread_keeps_its_data_until_the_grace_period_ends,
    due_threads_are_listed_by_deadline_up_to_a_limit,
}
