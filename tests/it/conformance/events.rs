use std::time::Duration;

use threadkeep_domain::{
    Completed, Conditions, EventId, EventKind, Life, MetadataChange, Operation, Position,
    Precondition, Retention, ThreadPolicy, Write,
};
use threadkeep_store::Destroy;

use super::room::{Room, Subject, delete, in_parallel, increment, json, once, push, set};

const SECOND: Duration = Duration::from_secs(1);
const LONG: Duration = Duration::from_secs(10_000);

async fn a_first_write_logs_a_creation_with_every_key(room: Room) {
    let thread = room.subject();

    let written = thread
        .merge(&[
            set("b", "1"),
            push("a\"", "2"),
            delete("absent"),
            increment("é", 3),
        ])
        .await;

    let events = room.events(&thread).await;
    let object = thread.thread().await.unwrap();
    assert_eq!(
        room.story(&thread).await,
        [r#"#1 v1 created ["a\"","b","é"]"#]
    );
    assert_eq!(events[0].thread(), Some(&thread.id));
    assert_eq!(events[0].life, written.stamp.life);
    assert_eq!(events[0].time_ms, object.created_ms);
    assert_eq!(events[0].id.bucket, room.bucket(&thread));
    assert!(events[0].id.position > Position::default());
}

async fn a_first_write_without_state_logs_a_creation(room: Room) {
    let by_metadata = room.subject();
    let by_nothing = room.subject();
    by_metadata.set_metadata(r#"{"a":1}"#).await.unwrap();
    by_nothing.merge(&[set("k", "1"), Operation::Clear]).await;

    assert_eq!(room.story(&by_metadata).await, ["#1 v1 created []"]);
    assert_eq!(room.story(&by_nothing).await, ["#1 v1 created []"]);
}

async fn an_unwatched_thread_logs_only_its_creation_and_end(room: Room) {
    let thread = room.subject();
    thread.merge(&[set("k", "1")]).await;
    thread.merge(&[set("k", "2")]).await;
    thread.merge(&[push("l", "2")]).await;
    thread.merge(&[set("k", "3"), Operation::Clear]).await;
    thread.set_metadata("{}").await.unwrap();
    thread.destroy().await;

    assert_eq!(
        room.story(&thread).await,
        [r#"#1 v1 created ["k"]"#, "#2 v5 destroyed"]
    );
}

async fn a_watched_thread_logs_each_write_with_its_changed_keys(room: Room) {
    let thread = room.subject();
    room.watch(&thread, LONG).await;
    thread.merge(&[set("k", "1"), set("z", "1")]).await;

    thread.merge(&[set("k", "1")]).await;
    thread.merge(&[push("l", "1")]).await;
    thread
        .merge(&[increment("n", 1), set("b\\", "{}"), push("l", "2")])
        .await;
    thread.merge(&[delete("absent"), delete("z")]).await;
    thread.merge(&[delete("absent")]).await;
    thread.merge(&[delete("k"), set("k", "2")]).await;
    thread.merge(&[set("brief", "1"), delete("brief")]).await;
    thread.merge(&[]).await;
    thread.set_ttl(LONG).await;

    assert_eq!(
        room.story(&thread).await,
        [
            r#"#1 v1 created ["k","z"]"#,
            r#"#2 v2 updated ["k"]"#,
            r#"#3 v3 updated ["l"]"#,
            r#"#4 v4 updated ["b\\","l","n"]"#,
            r#"#5 v5 updated ["z"]"#,
            "#6 v6 updated []",
            r#"#7 v7 updated ["k"]"#,
            "#8 v8 updated []",
            "#9 v9 updated []",
            "#10 v10 updated []",
        ]
    );
}

async fn a_clear_logs_every_key_that_existed(room: Room) {
    let thread = room.subject();
    room.watch(&thread, LONG).await;
    let long = format!("[{}0]", "\"element\",".repeat(1_000));
    thread
        .merge(&[set("b", "1"), set("a", &long), set("c", "1")])
        .await;
    thread.set_metadata("{}").await.unwrap();

    thread
        .merge(&[
            set("brief", "1"),
            Operation::Clear,
            set("b", "2"),
            set("d", "1"),
        ])
        .await;
    thread.merge(&[Operation::Clear]).await;
    thread.merge(&[Operation::Clear]).await;

    assert_eq!(
        room.story(&thread).await,
        [
            r#"#1 v1 created ["a","b","c"]"#,
            "#2 v2 updated [] metadata",
            r#"#3 v3 updated ["a","b","c","d"]"#,
            r#"#4 v4 updated ["b","d"]"#,
            "#5 v5 updated []",
        ]
    );
}

async fn a_metadata_change_is_logged_with_the_changed_keys(room: Room) {
    let thread = room.subject();
    room.watch(&thread, LONG).await;
    thread.set_metadata(r#"{"a":1}"#).await.unwrap();

    thread.set_metadata(r#"{"a":1}"#).await.unwrap();
    let change = MetadataChange {
        new: json("{}"),
        old: None,
    };
    let both = Write {
        operations: &[set("k", "1")],
        metadata: Some(&change),
        ..thread.blank()
    };
    thread.write(&both).await.unwrap();

    assert_eq!(
        room.story(&thread).await,
        [
            "#1 v1 created []",
            "#2 v2 updated [] metadata",
            r#"#3 v3 updated ["k"] metadata"#,
        ]
    );
}

async fn events_name_up_to_a_thousand_keys_and_64_kib(room: Room) {
    let story = async |first: Vec<Operation>, second: &[Operation]| {
        let thread = room.subject();
        room.watch(&thread, LONG).await;
        thread.merge(&first).await;
        thread.merge(second).await;
        let story = room.story(&thread).await.into_iter();
        let is_named = story.map(|event| !event.ends_with("many"));
        is_named.collect::<Vec<_>>()
    };
    let short = |count: usize| {
        (0..count)
            .map(|n| set(&n.to_string(), "1"))
            .collect::<Vec<_>>()
    };
    let long = |count: usize| (0..count).map(|n| set(&format!("{n:0254}"), "1")).collect();

    assert_eq!(story(short(1_000), &short(999)).await, [true, true]);
    assert_eq!(story(short(1_001), &short(1)).await, [false, true]);
    assert_eq!(story(short(2), &short(1_001)).await, [true, false]);
    assert_eq!(
        story(short(1_001), &[Operation::Clear]).await,
        [false, false]
    );
    assert_eq!(story(long(256), &[]).await, [true, true]);
    assert_eq!(story(long(257), &[]).await, [false, true]);
}

async fn refusals_are_not_logged(room: Room) {
    let thread = room.subject_under(ThreadPolicy {
        max_bytes: 40,
        max_metadata_bytes: 5,
        ..ThreadPolicy::THREAD
    });
    room.watch(&thread, LONG).await;
    let too_large = [set("k", &format!("\"{}\"", "x".repeat(40)))];
    thread.try_merge(&too_large).await.unwrap_err();
    thread.merge(&[set("k", "{}")]).await;

    thread.try_merge(&too_large).await.unwrap_err();
    thread.try_merge(&[push("k", "1")]).await.unwrap_err();
    thread
        .try_merge(&[set("a", "1"), increment("k", 1)])
        .await
        .unwrap_err();
    thread.set_metadata(r#"{"a":1}"#).await.unwrap_err();
    let unmet = Precondition::Version(7);
    thread.merge_if(unmet, &[]).await.unwrap_err();
    let refused_end = Destroy {
        conditions: Conditions {
            precondition: Some(unmet),
            ..Conditions::default()
        },
        ..thread.end()
    };
    thread.destroy_by(&refused_end).await.unwrap_err();
    thread.destroy().await;
    thread.try_merge(&[set("k", "1")]).await.unwrap_err();

    assert_eq!(
        room.story(&thread).await,
        [r#"#1 v1 created ["k"]"#, "#2 v1 destroyed"]
    );
}

async fn repeats_are_not_logged(room: Room) {
    let thread = room.subject();
    room.watch(&thread, LONG).await;
    let made = once("made", "made");
    let changed = once("changed", "changed");
    let ended = Destroy {
        conditions: Conditions {
            idempotency: Some(once("ended", "ended")),
            ..Conditions::default()
        },
        ..thread.end()
    };

    for _ in 0..3 {
        thread.merge_once(made, &[set("k", "1")]).await.unwrap();
    }
    for _ in 0..3 {
        thread.merge_once(changed, &[set("l", "1")]).await.unwrap();
    }
    for _ in 0..3 {
        thread.destroy_by(&ended).await.unwrap();
    }
    thread.destroy().await;

    assert_eq!(
        room.story(&thread).await,
        [
            r#"#1 v1 created ["k"]"#,
            r#"#2 v2 updated ["l"]"#,
            "#3 v2 destroyed",
        ]
    );
}

async fn destroying_an_absent_thread_is_not_logged(room: Room) {
    let thread = room.subject();

    thread.destroy().await;

    assert!(room.events(&thread).await.is_empty());
}

async fn a_destroy_is_logged_with_its_time_and_life(room: Room) {
    let thread = room.subject();
    let stamp = thread.merge(&[set("k", "1")]).await.stamp;
    room.advance(5 * SECOND);

    let before_ms = room.backend.log_heads().await.unwrap().now_ms;
    thread.destroy().await;
    let after_ms = room.backend.log_heads().await.unwrap().now_ms;

    let end = room.events(&thread).await.pop().unwrap();
    assert_eq!(end.life, stamp.life);
    assert!((before_ms..=after_ms).contains(&end.time_ms));
    assert!((before_ms..=after_ms).contains(&end.id.position.ms));
}

async fn the_sequence_continues_while_the_previous_life_is_archived(room: Room) {
    let room = room
        .keeping(Retention {
            archive: 100 * SECOND,
            log: 100 * SECOND,
            ..Retention::DEFAULT
        })
        .await;
    let thread = room.subject();
    thread.merge(&[]).await;
    thread.destroy().await;
    room.advance(thread.policy.tombstone);
    room.watch(&thread, 10 * SECOND).await;
    thread.merge(&[]).await;
    thread.merge(&[]).await;
    thread.destroy().await;

    assert_eq!(
        room.story(&thread).await,
        [
            "#1 v1 created []",
            "#2 v1 destroyed",
            "#3 v1 created []",
            "#4 v2 updated []",
            "#5 v2 destroyed",
        ]
    );
    room.advance(1_000 * SECOND);
    room.tidy().await;
    thread.merge(&[]).await;
    assert_eq!(room.story(&thread).await, ["#1 v1 created []"]);
}

async fn positions_increase_and_ids_parse_back(room: Room) {
    let thread = room.subject();
    room.watch(&thread, LONG).await;
    for _ in 0..100 {
        thread.merge(&[set("k", "1")]).await;
    }

    let events = room.events(&thread).await;

    assert_eq!(events.len(), 100);
    assert!(events.is_sorted_by(|a, b| a.id.position < b.id.position));
    for event in &events {
        assert_eq!(event.id.to_string().parse::<EventId>(), Ok(event.id));
    }
}

async fn concurrent_writes_are_logged_in_version_order(room: Room) {
    let thread = room.subject();
    room.watch(&thread, LONG).await;
    let writes = (0..50).map(|_| {
        let thread = thread.clone();
        tokio::spawn(async move { thread.merge(&[push("l", "1")]).await })
    });
    for write in writes.collect::<Vec<_>>() {
        write.await.unwrap();
    }

    let events = room.events(&thread).await;

    let logged = events.iter().map(|event| (event.version, event.sequence));
    assert!(logged.eq((1..=50).map(|number| (number, number))));
}

async fn several_logs_are_read_together_each_from_its_position(room: Room) {
    let first = room.subject();
    let other = loop {
        let other = room.subject();
        if room.bucket(&other) != room.bucket(&first) {
            break other;
        }
    };
    for thread in [&first, &other] {
        room.watch(thread, LONG).await;
        for _ in 0..3 {
            thread.merge(&[]).await;
        }
    }
    let logged = [room.events(&first).await, room.events(&other).await];
    let [first, other] = [room.bucket(&first), room.bucket(&other)];
    let read =
        async |after: &[(u16, Position)], limit| room.backend.read_log(after, limit).await.unwrap();

    let start = Position::default();
    assert_eq!(read(&[(first, start), (other, start)], 9).await, logged);
    let part = read(&[(other, logged[1][0].id.position), (first, start)], 2).await;
    assert_eq!(part, [&logged[1][1..3], &logged[0][..2]]);
    let none = read(&[(first, logged[0][2].id.position)], 2).await;
    assert_eq!(none, [[]]);
    assert!(read(&[], 9).await.is_empty());
}

async fn heads_are_the_last_positions_of_the_logs(room: Room) {
    let thread = room.subject();
    let before = room.backend.log_heads().await.unwrap();
    thread.merge(&[]).await;
    let after = room.backend.log_heads().await.unwrap();

    let bucket = usize::from(room.bucket(&thread));
    let made = room.events(&thread).await.pop().unwrap();
    let mut expected = vec![Position::default(); usize::from(room.backend.buckets())];
    assert_eq!(before.positions, expected);
    expected[bucket] = made.id.position;
    assert_eq!(after.positions, expected);
    assert!(before.now_ms <= made.id.position.ms);
    assert!(made.id.position.ms <= after.now_ms);
}

async fn events_logged_after_a_read_of_the_heads_have_no_earlier_time(room: Room) {
    let threads: Vec<_> = (0..300).map(|_| room.subject()).collect();
    let writers = threads.clone();
    let writing = in_parallel(async move {
        for thread in writers {
            thread.merge(&[]).await;
        }
    });
    let mut heads_read = Vec::new();
    while !writing.is_finished() {
        heads_read.push(room.backend.log_heads().await.unwrap());
    }
    writing.await.unwrap();

    for thread in &threads {
        let made = room.events(thread).await.pop().unwrap().id;
        for heads in &heads_read {
            let is_before = made.position <= heads.positions[usize::from(made.bucket)];
            assert!(is_before || made.position.ms >= heads.now_ms);
        }
    }
}

async fn a_log_can_be_read_from_a_time(room: Room) {
    for _ in 0..50 {
        let thread = room.subject();
        let now_ms = room.backend.log_heads().await.unwrap().now_ms;
        thread.merge(&[]).await;

        let before = Position {
            ms: now_ms - 1,
            seq: u64::MAX,
        };
        let read = room.log(room.bucket(&thread), before).await;

        assert!(read.iter().any(|event| event.thread() == Some(&thread.id)));
        assert!(read.iter().all(|event| event.id.position.ms >= now_ms));
    }
}

fn request(status: u16) -> Completed {
    Completed {
        session: "sess_0123456789abcdef0123456789abcdef".into(),
        status,
        duration_ms: 12,
    }
}

async fn complete(room: &Room, thread: &Subject, status: u16) {
    let completed = request(status);
    let logged = room.backend.log_completed(&thread.id, &completed);
    logged.await.unwrap();
}

async fn a_completed_request_is_logged_with_the_current_version(room: Room) {
    let thread = room.subject();
    let stamp = thread.merge(&[]).await.stamp;
    complete(&room, &thread, 200).await;
    thread.merge(&[]).await;
    complete(&room, &thread, 503).await;
    thread.destroy().await;

    let events = room.events(&thread).await;
    let fields = |index: usize| {
        (
            events[index].sequence,
            events[index].version,
            events[index].life,
        )
    };
    assert_eq!(fields(1), (2, 1, stamp.life));
    assert_eq!(fields(2), (3, 2, stamp.life));
    assert_eq!(fields(3), (4, 2, stamp.life));
    assert_eq!(events[1].kind, EventKind::Completed(request(200)));
    assert_eq!(events[2].kind, EventKind::Completed(request(503)));
}

async fn a_completed_request_without_a_thread_has_no_life_or_sequence(room: Room) {
    let absent = room.subject();
    let expired = room.subject();
    expired.merge(&[]).await;
    room.advance(expired.policy.ttl);

    complete(&room, &absent, 404).await;
    complete(&room, &expired, 404).await;

    for thread in [absent, expired] {
        let events = room.events(&thread).await;
        let is_request = |kind: &EventKind| *kind == EventKind::Completed(request(404));
        let event = events.iter().find(|event| is_request(&event.kind)).unwrap();
        assert_eq!((event.sequence, event.version), (0, 0));
        assert_eq!(event.life, Life::default());
        assert!(!thread.exists().await);
    }
}

async fn a_completed_request_extends_no_lifetime(room: Room) {
    let thread = room.subject();
    thread.merge(&[]).await;

    room.advance(thread.policy.ttl - SECOND);
    complete(&room, &thread, 200).await;
    room.advance(SECOND);

    assert!(!thread.exists().await);
}

super::over_every_store! {
    a_first_write_logs_a_creation_with_every_key,
    a_first_write_without_state_logs_a_creation,
    an_unwatched_thread_logs_only_its_creation_and_end,
    a_watched_thread_logs_each_write_with_its_changed_keys,
    a_clear_logs_every_key_that_existed,
    a_metadata_change_is_logged_with_the_changed_keys,
    events_name_up_to_a_thousand_keys_and_64_kib,
    refusals_are_not_logged,
    repeats_are_not_logged,
    destroying_an_absent_thread_is_not_logged,
    a_destroy_is_logged_with_its_time_and_life,
    the_sequence_continues_while_the_previous_life_is_archived,
    positions_increase_and_ids_parse_back,
    concurrent_writes_are_logged_in_version_order,
    several_logs_are_read_together_each_from_its_position,
    heads_are_the_last_positions_of_the_logs,
    events_logged_after_a_read_of_the_heads_have_no_earlier_time,
    a_log_can_be_read_from_a_time,
    a_completed_request_is_logged_with_the_current_version,
    a_completed_request_without_a_thread_has_no_life_or_sequence,
    a_completed_request_extends_no_lifetime,
}
