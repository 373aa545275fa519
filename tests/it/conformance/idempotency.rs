use std::time::Duration;

use threadkeep_domain::{
    Conditions, Fingerprint, IdempotencyKey, MetadataChange, Precondition, Refusal, ThreadPolicy,
    Write, Written,
};
use threadkeep_store::{Destroy, Destroyed};

use super::room::{
    Room, Subject, delete, guard_not_an_object, increment, json, numbered_key, once, push, set,
};

const HOUR: Duration = Duration::from_secs(3_600);
const REUSED: Refusal = Refusal::IdempotencyKeyReused;

fn replay_of(written: &Written) -> Written {
    Written {
        replayed: true,
        ..written.clone()
    }
}

async fn destroy_once(thread: &Subject, key: IdempotencyKey) -> Result<Destroyed, Refusal> {
    let destroy = Destroy {
        conditions: Conditions {
            idempotency: Some(key),
            ..Conditions::default()
        },
        ..thread.end()
    };
    thread.destroy_by(&destroy).await
}

async fn a_repeat_returns_the_complete_first_answer(room: Room) {
    let thread = room.subject();
    thread.merge(&[set("n", "9007199254740992")]).await;
    let metadata = MetadataChange {
        new: json(r#"{"m":[1.0,{}]}"#),
        old: None,
    };
    let write = Write {
        operations: &[
            set("k", "1"),
            push("l", "1"),
            increment("n", 1),
            delete("k"),
            delete("k"),
        ],
        metadata: Some(&metadata),
        ttl: Some(Duration::from_secs(1_000)),
        describe: true,
        conditions: Conditions {
            idempotency: Some(numbered_key(1)),
            ..Conditions::default()
        },
        ..thread.blank()
    };

    let first = thread.write(&write).await.unwrap();
    thread.merge(&[set("k", "2"), push("l", "2")]).await;
    room.advance(Duration::from_secs(30));
    let second = thread.write(&write).await.unwrap();

    assert!(!first.replayed);
    assert_eq!(second, replay_of(&first));
    assert_eq!(thread.stamp().await.version, 3);
    assert_eq!(thread.value("l").await.unwrap(), "[1,2]");
}

async fn a_repeat_of_any_kind_of_write_runs_once(room: Room) {
    for (operations, state) in [
        (vec![], "{}"),
        (vec![set("k", "1")], r#"{"k":1}"#),
        (vec![push("k", "1")], r#"{"k":[1]}"#),
        (vec![increment("k", 5)], r#"{"k":5}"#),
        (vec![push("k", "1"), push("k", "2")], r#"{"k":[1,2]}"#),
    ] {
        let thread = room.subject();
        let first = thread
            .merge_once(numbered_key(1), &operations)
            .await
            .unwrap();

        for _ in 0..3 {
            let repeat = thread.merge_once(numbered_key(1), &operations).await;
            assert_eq!(repeat, Ok(replay_of(&first)));
        }

        assert_eq!(thread.state().await.unwrap(), state);
        assert_eq!(thread.stamp().await, first.stamp);
    }
}

async fn another_request_with_a_used_key_is_refused(room: Room) {
    let thread = room.subject();
    thread.merge_once(once("key", "one"), &[]).await.unwrap();

    let reused = thread
        .merge_once(once("key", "two"), &[set("k", "1")])
        .await;
    let other_key = thread.merge_once(once("other", "one"), &[]).await;

    assert_eq!(reused, Err(REUSED));
    assert_eq!(other_key.unwrap().stamp.version, 2);
    assert_eq!(thread.state().await.unwrap(), "{}");
}

async fn a_key_applies_to_one_thread_only(room: Room) {
    let one = room.subject();
    let other = room.subject();

    let first = one.merge_once(numbered_key(1), &[]).await.unwrap();
    let second = other.merge_once(numbered_key(1), &[]).await.unwrap();

    assert!(!first.replayed);
    assert!(!second.replayed);
}

async fn a_replay_precedes_preconditions_guards_and_limits(room: Room) {
    let thread = room.subject();
    let guards = [guard_not_an_object("k")];
    let write = Write {
        operations: &[set("k", "{}")],
        guards: &guards,
        conditions: Conditions {
            precondition: Some(Precondition::Version(0)),
            idempotency: Some(numbered_key(1)),
            ..Conditions::default()
        },
        ..thread.blank()
    };
    let first = thread.write(&write).await.unwrap();

    let unmet = thread.write(&write).await;
    let limits = ThreadPolicy {
        max_bytes: 2,
        max_keys: 0,
        ..ThreadPolicy::THREAD
    };
    let too_large = thread
        .write(&Write {
            policy: &limits,
            ..write
        })
        .await;

    assert_eq!(unmet, Ok(replay_of(&first)));
    assert_eq!(too_large, Ok(replay_of(&first)));
}

async fn a_reused_key_is_refused_before_any_other_check(room: Room) {
    let thread = room.subject();
    thread.merge_once(once("key", "one"), &[]).await.unwrap();
    let write = Write {
        operations: &[push("k", "1")],
        conditions: Conditions {
            precondition: Some(Precondition::Version(9)),
            idempotency: Some(once("key", "two")),
            ..Conditions::default()
        },
        ..thread.blank()
    };

    let living = thread.write(&write).await;
    thread.destroy().await;
    let destroyed = thread.write(&write).await;

    assert_eq!(living, Err(REUSED));
    assert_eq!(destroyed, Err(REUSED));
}

async fn a_refused_write_is_not_remembered(room: Room) {
    let thread = room.subject();
    thread.merge(&[set("k", "{}")]).await;

    let refused = thread
        .merge_once(once("key", "bad"), &[push("k", "1")])
        .await;
    let done = thread
        .merge_once(once("key", "good"), &[push("l", "1")])
        .await;

    assert_eq!(refused, Err(Refusal::NotAnArray { operation: 0 }));
    assert!(!done.unwrap().replayed);
}

async fn remembered_answers_outlive_a_destroy(room: Room) {
    let thread = room.subject();
    let first = thread.merge_once(numbered_key(1), &[set("k", "1")]).await;
    let first = first.unwrap();
    thread.destroy().await;

    let repeat = thread.merge_once(numbered_key(1), &[set("k", "1")]).await;
    let new = thread.merge_once(numbered_key(2), &[set("k", "1")]).await;

    assert_eq!(repeat, Ok(replay_of(&first)));
    assert_eq!(new, Err(Refusal::Destroyed));
    assert!(!thread.exists().await);
}

async fn a_repeated_destroy_runs_once(room: Room) {
    let thread = room.subject();
    thread.merge(&[]).await;

    let first = destroy_once(&thread, numbered_key(1)).await.unwrap();
    let second = destroy_once(&thread, numbered_key(1)).await.unwrap();
    let other = destroy_once(&thread, numbered_key(2)).await.unwrap();

    let answer = |existed, replayed| Destroyed { existed, replayed };
    assert_eq!(first, answer(true, false));
    assert_eq!(second, answer(true, true));
    assert_eq!(other, answer(false, false));
    let replayed = destroy_once(&thread, numbered_key(2)).await.unwrap();
    assert_eq!(replayed, answer(false, true));
}

async fn a_late_repeat_of_a_destroy_does_not_end_a_new_life(room: Room) {
    let thread = room.subject_under(ThreadPolicy {
        tombstone: Duration::from_secs(10),
        ..ThreadPolicy::THREAD
    });
    thread.merge(&[]).await;
    destroy_once(&thread, numbered_key(1)).await.unwrap();
    room.advance(Duration::from_secs(10));
    thread.merge(&[set("k", "1")]).await;

    let repeat = destroy_once(&thread, numbered_key(1)).await.unwrap();

    assert!(repeat.existed);
    assert!(repeat.replayed);
    assert_eq!(thread.state().await.unwrap(), r#"{"k":1}"#);
}

async fn destroying_an_absent_thread_is_remembered(room: Room) {
    let thread = room.subject();
    let first = destroy_once(&thread, numbered_key(1)).await.unwrap();
    thread.merge(&[]).await;

    let repeat = destroy_once(&thread, numbered_key(1)).await.unwrap();

    assert!(!first.existed);
    assert_eq!(
        repeat,
        Destroyed {
            replayed: true,
            ..first
        }
    );
    assert!(thread.exists().await);
}

async fn a_key_of_a_write_cannot_be_reused_for_a_destroy(room: Room) {
    let thread = room.subject();
    thread
        .merge_once(once("write", "write"), &[])
        .await
        .unwrap();

    let by_other_request = destroy_once(&thread, once("write", "end")).await;
    let by_same_request = destroy_once(&thread, once("write", "write")).await;
    destroy_once(&thread, once("end", "end")).await.unwrap();
    let write = thread.merge_once(once("end", "end"), &[]).await;

    assert_eq!(by_other_request, Err(REUSED));
    assert_eq!(by_same_request, Err(REUSED));
    assert_eq!(write, Err(REUSED));
}

async fn every_answer_is_remembered_for_a_minute(room: Room) {
    let thread = room.subject();
    let mut first = Vec::new();
    for number in 0..200 {
        let written = thread
            .merge_once(numbered_key(number), &[push("k", "1")])
            .await;
        first.push(written.unwrap());
    }

    // advance by less than a minute, because on a slow machine the writes also take time
    room.advance(Duration::from_secs(50));
    thread.merge_once(numbered_key(200), &[]).await.unwrap();

    for (number, first) in first.iter().enumerate() {
        let repeat = thread
            .merge_once(numbered_key(number as u64), &[push("k", "1")])
            .await;
        assert_eq!(repeat, Ok(replay_of(first)));
    }
}

async fn answers_outlive_their_thread_for_a_minute(room: Room) {
    let thread = room.subject_under(ThreadPolicy {
        ttl: Duration::from_secs(5),
        tombstone: Duration::ZERO,
        ..ThreadPolicy::THREAD
    });
    let first = thread.merge_once(numbered_key(1), &[set("k", "1")]).await;
    room.advance(Duration::from_secs(50));
    let destroyed = room.subject_under(thread.policy);
    let before = destroyed.merge_once(numbered_key(1), &[]).await;
    destroyed.destroy().await;
    let ended = destroyed.stamp().await;

    let repeat = thread.merge_once(numbered_key(1), &[set("k", "1")]).await;
    let repeat_after_destroy = destroyed.merge_once(numbered_key(1), &[]).await;

    assert_eq!(repeat, Ok(replay_of(&first.unwrap())));
    assert!(!thread.exists().await);
    assert_eq!(ended.version, 0);
    assert_eq!(repeat_after_destroy, Ok(replay_of(&before.unwrap())));
    assert!(!destroyed.exists().await);
}

async fn the_newest_64_answers_are_remembered_longer(room: Room) {
    let thread = room.subject();
    let mut first = Vec::new();
    for number in 0..100 {
        let written = thread.merge_once(numbered_key(number), &[]).await;
        first.push(written.unwrap());
    }

    room.advance(thread.policy.ttl - Duration::from_secs(60));

    for (number, first) in first.iter().enumerate().skip(36) {
        let repeat = thread.merge_once(numbered_key(number as u64), &[]).await;
        assert_eq!(repeat, Ok(replay_of(first)), "{number}");
    }
}

async fn a_later_answer_does_not_shorten_the_retention_of_earlier_ones(room: Room) {
    let thread = room.subject();
    let first = thread.merge_once(numbered_key(1), &[]).await.unwrap();
    let shorter = Write {
        ttl: Some(Duration::from_secs(65)),
        conditions: Conditions {
            idempotency: Some(numbered_key(2)),
            ..Conditions::default()
        },
        ..thread.blank()
    };
    thread.write(&shorter).await.unwrap();
    room.advance(Duration::from_secs(100));

    let repeat = thread.merge_once(numbered_key(1), &[]).await;

    assert_eq!(repeat, Ok(replay_of(&first)));
}

async fn a_new_life_keeps_the_remembered_answers(room: Room) {
    let thread = room.subject_under(ThreadPolicy {
        ttl: Duration::from_secs(5),
        ..ThreadPolicy::THREAD
    });
    let first = thread.merge_once(numbered_key(1), &[]).await.unwrap();
    room.advance(Duration::from_secs(5));
    let reborn = thread.merge_once(numbered_key(2), &[]).await.unwrap();

    let repeat = thread.merge_once(numbered_key(1), &[]).await;

    assert_ne!(reborn.stamp.life, first.stamp.life);
    assert_eq!(repeat, Ok(replay_of(&first)));
    assert_eq!(thread.stamp().await, reborn.stamp);
}

async fn new_keys_past_the_limit_are_refused_for_a_minute(room: Room) {
    const KEYS_MAX: u64 = 65_536;
    room.advance(HOUR);
    let thread = room.subject();
    let first = thread.merge_once(keyed(0), &[]).await.unwrap();
    room.for_each_concurrently(1..KEYS_MAX, async |number| {
        thread.merge_once(keyed(number), &[]).await.unwrap();
    })
    .await;

    let refused = thread.merge_once(keyed(KEYS_MAX), &[]).await;
    let repeat = thread.merge_once(keyed(0), &[]).await;
    let without_key = thread.try_merge(&[]).await;
    room.advance(Duration::from_secs(60));
    let after = thread.merge_once(keyed(KEYS_MAX), &[]).await;

    let Err(Refusal::TooManyIdempotencyKeys { retry_after_ms }) = refused else {
        panic!("{refused:?}");
    };
    assert!((1..=60_000).contains(&retry_after_ms), "{retry_after_ms}");
    assert_eq!(repeat, Ok(replay_of(&first)));
    assert_eq!(without_key.unwrap().stamp.version, KEYS_MAX + 1);
    assert!(!after.unwrap().replayed);
}

/// Like [`numbered_key`], but without computing a digest.
fn keyed(number: u64) -> IdempotencyKey {
    let print = Fingerprint(u128::from(number).to_be_bytes());
    IdempotencyKey {
        digest: print,
        request: print,
    }
}

async fn remembered_metadata_is_limited_in_bytes(room: Room) {
    room.advance(HOUR);
    let thread = room.subject();
    let metadata = format!("{{\"m\":\"{}\"}}", "x".repeat(16_376));
    thread.set_metadata(&metadata).await.unwrap();
    let describe = async |number: u64| {
        let write = Write {
            describe: true,
            conditions: Conditions {
                idempotency: Some(numbered_key(number)),
                ..Conditions::default()
            },
            ..thread.blank()
        };
        thread.write(&write).await
    };

    describe(0).await.unwrap();
    room.for_each_concurrently(1..1_024, async |number| {
        describe(number).await.unwrap();
    })
    .await;

    assert!(matches!(
        describe(1_024).await,
        Err(Refusal::TooManyIdempotencyKeys { .. })
    ));
    assert!(describe(0).await.unwrap().replayed);
    room.advance(Duration::from_secs(60));
    assert!(describe(1_024).await.is_ok());
}

over_every_store_and_confirmed! {
    remembered_metadata_is_limited_in_bytes,
    a_repeat_returns_the_complete_first_answer,
    a_repeat_of_any_kind_of_write_runs_once,
    another_request_with_a_used_key_is_refused,
    a_key_applies_to_one_thread_only,
    a_replay_precedes_preconditions_guards_and_limits,
    a_reused_key_is_refused_before_any_other_check,
    a_refused_write_is_not_remembered,
    remembered_answers_outlive_a_destroy,
    a_repeated_destroy_runs_once,
    a_late_repeat_of_a_destroy_does_not_end_a_new_life,
    destroying_an_absent_thread_is_remembered,
    a_key_of_a_write_cannot_be_reused_for_a_destroy,
    every_answer_is_remembered_for_a_minute,
    answers_outlive_their_thread_for_a_minute,
    the_newest_64_answers_are_remembered_longer,
    a_later_answer_does_not_shorten_the_retention_of_earlier_ones,
    a_new_life_keeps_the_remembered_answers,
    ;
    hurried:
    new_keys_past_the_limit_are_refused_for_a_minute,
}
