use std::time::Duration;

use bytes::Bytes;
use threadkeep_domain::{Life, Position, Stamp, Write};

use super::room::{Room, in_parallel, key, push, set};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

async fn a_thread_can_be_watched_before_it_exists(room: Room) {
    let thread = room.subject();

    let watched = room.watch(&thread, MINUTE).await;
    thread.merge(&[set("k", "1")]).await;
    thread.merge(&[push("l", "1")]).await;

    assert_eq!(watched.stamp, Stamp::default());
    assert_eq!(watched.head, Position::default());
    assert!(!room.subject().exists().await);
    assert_eq!(
        room.story(&thread).await,
        [r#"#1 v1 created ["k"]"#, r#"#2 v2 updated ["l"]"#]
    );
}

async fn a_watch_returns_the_stamp_and_the_log_position(room: Room) {
    let thread = room.subject();
    thread.merge(&[set("k", "1")]).await;
    let unseen = thread.merge(&[set("k", "2")]).await;

    let watched = room.watch(&thread, MINUTE).await;
    let next = thread.merge(&[set("k", "3")]).await;

    assert_eq!(watched.stamp, unseen.stamp);
    let made = &room.events(&thread).await[0];
    assert_eq!(watched.head, made.id.position);
    let seen = room.log(room.bucket(&thread), watched.head).await;
    assert_eq!(seen.len(), 1);
    assert_eq!((seen[0].version, seen[0].life), (3, next.stamp.life));
}

async fn several_threads_are_watched_and_returned_in_order(room: Room) {
    let threads: Vec<_> = (0..20).map(|_| room.subject()).collect();
    let ids: Vec<_> = threads.iter().map(|thread| thread.id).collect();
    let mut stamps = Vec::new();
    for (number, thread) in threads.iter().enumerate() {
        if number % 3 > 0 {
            stamps.push(thread.merge(&[]).await.stamp);
        } else {
            stamps.push(Stamp::default());
        }
    }

    let watched = room.backend.watch(&ids, MINUTE).await.unwrap();

    assert!(watched.iter().map(|one| one.stamp).eq(stamps));
    assert!(room.backend.watch(&[], MINUTE).await.unwrap().is_empty());
    for thread in threads {
        let seen = room.events(&thread).await.len();
        thread.merge(&[]).await;
        assert_eq!(room.events(&thread).await.len(), seen + 1);
    }
}

async fn an_expired_thread_is_watched_as_none(room: Room) {
    let thread = room.subject();
    thread.merge(&[]).await;
    room.advance(thread.policy.ttl);

    let watched = room.watch(&thread, MINUTE).await;
    thread.merge(&[]).await;
    thread.merge(&[]).await;

    assert_eq!(watched.stamp, Stamp::default());
    assert_eq!(
        room.story(&thread).await,
        [
            "#1 v1 created []",
            "#2 v1 expired",
            "#3 v1 created []",
            "#4 v2 updated []",
        ]
    );
}

async fn a_watch_does_not_extend_a_lifetime(room: Room) {
    let thread = room.subject();
    thread.merge(&[]).await;

    room.advance(thread.policy.ttl - SECOND);
    room.watch(&thread, MINUTE).await;
    room.advance(SECOND);

    assert!(!thread.exists().await);
}

async fn changes_are_logged_until_the_watch_expires(room: Room) {
    let thread = room.subject();
    thread.merge(&[]).await;
    room.watch(&thread, MINUTE).await;
    room.watch(&thread, SECOND).await;

    room.advance(MINUTE - 10 * SECOND);
    thread.merge(&[set("seen", "1")]).await;
    room.advance(10 * SECOND);
    thread.merge(&[set("unseen", "1")]).await;
    thread.merge(&[set("unseen", "1"), set("both", "1")]).await;
    thread.destroy().await;

    assert_eq!(
        room.story(&thread).await,
        [
            "#1 v1 created []",
            r#"#2 v2 updated ["seen"]"#,
            "#3 v4 destroyed",
        ]
    );
}

async fn a_watch_can_be_renewed(room: Room) {
    let thread = room.subject();
    thread.merge(&[]).await;

    for _ in 0..5 {
        room.watch(&thread, MINUTE).await;
        room.advance(MINUTE - 10 * SECOND);
        thread.merge(&[push("l", "1")]).await;
    }

    assert_eq!(room.events(&thread).await.len(), 6);
}

async fn a_watch_outlasts_the_lives_of_a_thread(room: Room) {
    let thread = room.subject();
    thread.merge(&[]).await;
    room.watch(&thread, 100 * MINUTE).await;
    thread.destroy().await;
    room.advance(thread.policy.tombstone);

    thread.merge(&[]).await;
    thread.merge(&[set("k", "1")]).await;

    assert_eq!(
        room.story(&thread).await[2..],
        ["#3 v1 created []", r#"#4 v2 updated ["k"]"#]
    );
}

async fn all_changes_are_logged_while_all_threads_are_watched(room: Room) {
    let thread = room.subject();
    thread.merge(&[]).await;
    let long = 10 * MINUTE;

    let since = room.backend.watch_all(long).await.unwrap();
    room.advance(5 * MINUTE);
    let seen = thread.merge(&[push("l", "1")]).await;
    let again = room.backend.watch_all(long).await.unwrap();
    room.backend.watch_all(SECOND).await.unwrap();
    room.advance(long - 10 * SECOND);
    thread.merge(&[set("k", "1"), set("l", "1")]).await;
    room.advance(10 * SECOND);
    thread.merge(&[set("unseen", "1")]).await;
    let later = room.backend.watch_all(long).await.unwrap();

    assert_eq!(
        room.story(&thread).await,
        [
            "#1 v1 created []",
            r#"#2 v2 updated ["l"]"#,
            r#"#3 v3 updated ["k","l"]"#,
        ]
    );
    let events = room.events(&thread).await;
    assert_eq!(events[1].version, seen.stamp.version);
    assert!(since > events[0].id.position.ms);
    assert!(since <= events[1].id.position.ms);
    assert_eq!(again, since);
    assert!(later > events[2].id.position.ms + 9_000);
}

async fn every_change_since_the_reported_time_is_logged(room: Room) {
    let thread = room.subject();
    thread.merge(&[]).await;
    let writer = thread.clone();
    let writing = in_parallel(async move {
        let mut written = Vec::new();
        for _ in 0..2_000 {
            let write = Write {
                describe: true,
                ..writer.blank()
            };
            let thread = writer.write(&write).await.unwrap().thread.unwrap();
            written.push((thread.stamp.version, thread.updated_ms));
        }
        written
    });

    // log changes for longer than all writes take, even on a busy machine
    let since = room.backend.watch_all(60 * MINUTE).await.unwrap();

    let written = writing.await.unwrap().into_iter();
    let due: Vec<_> = written.filter(|(_, ms)| *ms >= since).collect();
    let events = room.events(&thread).await;
    let is_logged = |version| events.iter().any(|event| event.version == version);
    assert!(due.iter().all(|(version, _)| is_logged(*version)));
}

async fn values_can_be_read_at_the_current_version_only(room: Room) {
    let thread = room.subject();
    // larger than one stored chunk of an array
    let long = format!("\"{}\"", "x".repeat(20_000));
    let first = thread
        .merge(&[set("k", "1.0"), push("list", "{}"), push("list", &long)])
        .await
        .stamp;
    let keys = [key("list"), key("absent"), key("k")];
    let values = async |at, max_bytes| {
        let found = room
            .backend
            .values_at(&thread.id, at, &keys, max_bytes)
            .await;
        let text =
            |value: Option<Bytes>| value.map(|value| String::from_utf8(value.into()).unwrap());
        found
            .unwrap()
            .map(|values| values.into_iter().map(text).collect::<Vec<_>>())
    };
    let list = format!("[{{}},{long}]");

    let all = Some(vec![Some(list), None, Some("1.0".into())]);
    assert_eq!(values(first, 65_536).await, all);
    assert_eq!(values(first, 19_000).await, None);
    let other_life = Stamp {
        life: Life(first.life.0 ^ 1),
        ..first
    };
    assert_eq!(values(other_life, 65_536).await, None);
    room.advance(thread.policy.ttl - SECOND);
    assert_eq!(values(first, 65_536).await, all);
    room.advance(2 * SECOND);
    assert_eq!(values(first, 65_536).await, None);

    let again = thread.merge(&[set("k", "2")]).await.stamp;
    thread.merge(&[set("k", "3")]).await;
    assert_eq!(values(again, 65_536).await, None);
}

super::over_every_store! {
    a_thread_can_be_watched_before_it_exists,
    a_watch_returns_the_stamp_and_the_log_position,
    several_threads_are_watched_and_returned_in_order,
    an_expired_thread_is_watched_as_none,
    a_watch_does_not_extend_a_lifetime,
    changes_are_logged_until_the_watch_expires,
    a_watch_can_be_renewed,
    a_watch_outlasts_the_lives_of_a_thread,
    all_changes_are_logged_while_all_threads_are_watched,
    every_change_since_the_reported_time_is_logged,
    values_can_be_read_at_the_current_version_only,
}
