use threadkeep_domain::{MetadataChange, Operation, Refusal, ThreadPolicy, Write};

use super::room::{Room, delete, increment, json, once, push, push_window, set};

fn string(bytes: usize) -> String {
    format!("\"{}\"", "x".repeat(bytes - 2))
}

fn metadata(bytes: usize) -> String {
    format!("{{\"m\":{}}}", string(bytes - 6))
}

fn limited(max_bytes: u64) -> ThreadPolicy {
    ThreadPolicy {
        max_bytes,
        ..ThreadPolicy::THREAD
    }
}

async fn a_state_may_fill_the_documented_limit_to_the_byte(room: Room) {
    let thread = room.subject();
    let limit = 1_048_576;

    let full = thread.merge(&[set("k", &string(limit - 6))]).await;
    let refused = thread.try_merge(&[set("k", &string(limit - 5))]).await;

    assert_eq!(full.size_bytes, limit as u64);
    assert_eq!(
        refused,
        Err(Refusal::StateTooLarge {
            limit_bytes: 1_048_576,
            size_bytes: 1_048_576,
            attempted_bytes: 1_048_577,
        })
    );
    assert_eq!(thread.stamp().await.version, 1);
    assert_eq!(thread.state().await.unwrap().len(), limit);
}

async fn every_operation_is_limited_to_the_byte(room: Room) {
    for (before, operation, bytes) in [
        (set("k", "9"), increment("k", 1), r#"{"k":10}"#.len()),
        (set("k", "[1]"), push("k", "2"), r#"{"k":[1,2]}"#.len()),
        (set("k", "1"), set("l", "1"), r#"{"k":1,"l":1}"#.len()),
        (set("k", "1"), set("\"", "1"), r#"{"k":1,"\"":1}"#.len()),
        (set("k", "1"), push("l", "1"), r#"{"k":1,"l":[1]}"#.len()),
        (set("k", "1"), increment("l", 1), r#"{"k":1,"l":1}"#.len()),
    ] {
        for (missing_bytes, fits) in [(0, true), (1, false)] {
            let thread = room.subject_under(limited((bytes - missing_bytes) as u64));
            let size_bytes = thread.merge(std::slice::from_ref(&before)).await.size_bytes;

            let written = thread.try_merge(std::slice::from_ref(&operation)).await;

            let refusal = Refusal::StateTooLarge {
                limit_bytes: (bytes - missing_bytes) as u64,
                size_bytes,
                attempted_bytes: bytes as u64,
            };
            assert_eq!(written.map(|written| written.size_bytes), {
                if fits { Ok(bytes as u64) } else { Err(refusal) }
            });
        }
    }
}

async fn long_arrays_are_limited_to_the_byte(room: Room) {
    let thread = room.subject_under(limited(10_000));
    thread.merge(&[set("k", "[1]")]).await;
    let mut size_bytes = 9;
    while size_bytes + 101 <= 9_990 {
        size_bytes = thread.merge(&[push("k", &string(100))]).await.size_bytes;
    }
    let spare_bytes = usize::try_from(10_000 - size_bytes).unwrap() - 1;

    let refused = thread
        .try_merge(&[push("k", &string(spare_bytes + 1))])
        .await;
    let full = thread.merge(&[push("k", &string(spare_bytes))]).await;

    assert_eq!(
        refused,
        Err(Refusal::StateTooLarge {
            limit_bytes: 10_000,
            size_bytes,
            attempted_bytes: 10_001,
        })
    );
    assert_eq!(full.size_bytes, 10_000);
    assert_eq!(thread.state().await.unwrap().len(), 10_000);
}

async fn a_window_makes_room_in_the_same_write(room: Room) {
    let thread = room.subject_under(limited(2_600));
    for _ in 0..25 {
        thread.merge(&[push("k", &string(100))]).await;
    }

    let refused = thread.try_merge(&[push("k", &string(100))]).await;
    let pushed = thread.merge(&[push_window("k", &string(100), 25)]).await;

    assert!(matches!(refused, Err(Refusal::StateTooLarge { .. })));
    assert_eq!(
        pushed.size_bytes,
        thread.state().await.unwrap().len() as u64
    );
}

async fn limits_apply_to_the_result_of_a_batch(room: Room) {
    let policy = ThreadPolicy {
        max_keys: 2,
        ..limited(100)
    };
    let thread = room.subject_under(policy);
    thread.merge(&[set("a", "1"), set("b", "2")]).await;

    let written = thread
        .try_merge(&[
            set("c", &string(1_000)),
            set("d", "1"),
            delete("c"),
            set("a", &string(1_000)),
            delete("a"),
        ])
        .await;

    assert_eq!(written.unwrap().size_bytes, r#"{"b":2,"d":1}"#.len() as u64);
}

async fn a_key_past_the_limit_is_refused(room: Room) {
    let policy = ThreadPolicy {
        max_keys: 3,
        ..ThreadPolicy::THREAD
    };
    let thread = room.subject_under(policy);
    thread.merge(&[set("a", "1"), set("b", "1")]).await;
    let refused = Err(Refusal::TooManyKeys { limit_keys: 3 });

    for batch in [
        [set("c", "1"), set("d", "1")],
        [push("c", "1"), push("d", "1")],
        [increment("c", 1), increment("d", 1)],
    ] {
        assert_eq!(thread.try_merge(&batch).await, refused);
    }
    thread.merge(&[push("c", "1")]).await;
    for operation in [set("d", "1"), push("d", "1"), increment("d", 1)] {
        assert_eq!(thread.try_merge(&[operation]).await, refused);
    }
    thread.merge(&[set("a", "2"), push("c", "2")]).await;
    thread.merge(&[delete("a"), set("d", "1")]).await;
    let replaced = [
        Operation::Clear,
        set("x", "1"),
        set("y", "1"),
        set("z", "1"),
    ];
    thread.merge(&replaced).await;

    assert_eq!(thread.state().await.unwrap(), r#"{"x":1,"y":1,"z":1}"#);
}

async fn the_default_limit_is_ten_thousand_keys(room: Room) {
    let thread = room.subject();
    for batch in 0..10 {
        let keys = (0..1_000).map(|n| set(&format!("k{batch}{n:03}"), "0"));
        thread.merge(&keys.collect::<Vec<_>>()).await;
    }

    let refused = thread.try_merge(&[set("one more", "0")]).await;

    assert_eq!(refused, Err(Refusal::TooManyKeys { limit_keys: 10_000 }));
    let object = thread.thread().await.unwrap();
    assert_eq!(object.keys, 10_000);
    assert_eq!(
        object.size_bytes,
        thread.state().await.unwrap().len() as u64
    );
}

async fn the_size_limit_is_checked_before_the_key_limit(room: Room) {
    let policy = ThreadPolicy {
        max_keys: 1,
        ..limited(20)
    };
    let thread = room.subject_under(policy);

    let refused = thread
        .try_merge(&[set("a", &string(20)), set("b", "1")])
        .await;

    assert!(matches!(refused, Err(Refusal::StateTooLarge { .. })));
}

async fn metadata_may_fill_its_limit_to_the_byte(room: Room) {
    let thread = room.subject();

    let full = thread.set_metadata(&metadata(16_384)).await;
    let refused = thread.set_metadata(&metadata(16_385)).await;

    assert_eq!(full.unwrap().stamp.version, 1);
    assert_eq!(
        refused,
        Err(Refusal::MetadataTooLarge {
            limit_bytes: 16_384,
            attempted_bytes: 16_385,
        })
    );
    let object = thread.thread().await.unwrap();
    assert_eq!(object.metadata.as_str(), metadata(16_384));
    assert_eq!(object.stamp.version, 1);
}

async fn metadata_does_not_count_toward_the_size(room: Room) {
    let thread = room.subject_under(limited(20));

    let written = thread.set_metadata(&metadata(1_000)).await.unwrap();

    assert_eq!(written.size_bytes, 2);
    assert_eq!(thread.state().await.unwrap(), "{}");
}

async fn refused_metadata_discards_the_operations(room: Room) {
    let thread = room.subject();
    let change = MetadataChange {
        new: json(&metadata(16_385)),
        old: None,
    };

    let refused = thread
        .write(&Write {
            operations: &[set("k", "1")],
            metadata: Some(&change),
            ..thread.blank()
        })
        .await;

    assert!(matches!(refused, Err(Refusal::MetadataTooLarge { .. })));
    assert!(!thread.exists().await);
}

async fn refused_operations_discard_the_metadata(room: Room) {
    let thread = room.subject_under(limited(20));
    thread.merge(&[set("k", "1")]).await;
    let change = MetadataChange {
        new: json(&metadata(100)),
        old: None,
    };

    let refused = thread
        .write(&Write {
            operations: &[set("k", &string(20))],
            metadata: Some(&change),
            ttl: Some(std::time::Duration::from_secs(60)),
            ..thread.blank()
        })
        .await;

    let object = thread.thread().await.unwrap();
    assert!(matches!(refused, Err(Refusal::StateTooLarge { .. })));
    assert_eq!(object.metadata.as_str(), "{}");
    assert_eq!(object.ttl, thread.policy.ttl);
}

async fn a_first_write_that_is_too_large_creates_no_thread(room: Room) {
    let thread = room.subject_under(limited(20));

    let refused = thread
        .merge_once(once("key", "request"), &[set("k", &string(20))])
        .await;

    assert_eq!(
        refused,
        Err(Refusal::StateTooLarge {
            limit_bytes: 20,
            size_bytes: 2,
            attempted_bytes: 26,
        })
    );
    assert!(!thread.exists().await);
}

over_every_store! {
    a_state_may_fill_the_documented_limit_to_the_byte,
    every_operation_is_limited_to_the_byte,
    long_arrays_are_limited_to_the_byte,
    a_window_makes_room_in_the_same_write,
    limits_apply_to_the_result_of_a_batch,
    a_key_past_the_limit_is_refused,
    the_default_limit_is_ten_thousand_keys,
    the_size_limit_is_checked_before_the_key_limit,
    metadata_may_fill_its_limit_to_the_byte,
    metadata_does_not_count_toward_the_size,
    refused_metadata_discards_the_operations,
    refused_operations_discard_the_metadata,
    a_first_write_that_is_too_large_creates_no_thread,
}
