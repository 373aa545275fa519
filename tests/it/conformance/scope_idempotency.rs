use std::time::Duration;

use threadkeep_domain::scope::{KvOperation, ScopeWrite, ScopeWritten};
use threadkeep_domain::{Access, Conditions, Fingerprint, IdempotencyKey, Precondition, Refusal};
use threadkeep_store::ScopeEnd;

use super::room::{Room, numbered_key, once};
use super::scope_room::{delete, fill, increment, item, set, set_if_absent};

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3_600);
const REUSED: Refusal = Refusal::IdempotencyKeyReused;

fn replay_of(written: &ScopeWritten) -> ScopeWritten {
    ScopeWritten {
        replayed: true,
        ..written.clone()
    }
}

async fn a_repeat_returns_the_first_answer_in_full(room: Room) {
    let session = room.session();
    session.run(&[set("n", "9223372036854775806")]).await;
    session.add(&[item("a", "1")]).await;
    let operations = [
        set("k", "1"),
        set_if_absent("k", "2"),
        increment("n", 1),
        increment("m", -7),
        delete("k"),
        delete("k"),
        KvOperation::Clear,
        set("l", "é"),
    ];
    let write = ScopeWrite {
        operations: &operations,
        history: &[item("a", "1"), item("b", "2")],
        conditions: Conditions {
            idempotency: Some(numbered_key(1)),
            ..Conditions::default()
        },
        ..session.blank()
    };

    let first = session.write(&write).await.unwrap();
    session.run(&[set("l", "2"), set("m", "2")]).await;
    let before = session.whole().await;
    room.advance(30 * SECOND);
    let second = session.write(&write).await.unwrap();

    assert!(!first.replayed);
    assert_eq!(first.stamp.version, 3);
    assert_eq!(second, replay_of(&first));
    assert_eq!(session.whole().await, before);
}

async fn a_repeated_append_is_replayed(room: Room) {
    let session = room.session();
    session.add(&[item("a", "1")]).await;
    let write = |history| ScopeWrite {
        history,
        conditions: Conditions {
            idempotency: Some(numbered_key(1)),
            ..Conditions::default()
        },
        ..session.blank()
    };
    let items = [item("a", "1")];

    let first = session.write(&write(&items)).await.unwrap();
    session.clear_history().await;
    let repeat = session.write(&write(&items)).await;

    assert!(!first.replayed);
    assert_eq!(repeat, Ok(replay_of(&first)));
    assert!(session.items().await.is_empty());
}

async fn another_request_with_a_used_key_is_refused_before_anything_else(room: Room) {
    let session = room.session();
    session.run_once(once("key", "one"), &[]).await.unwrap();
    let write = ScopeWrite {
        makes: true,
        operations: &[set("k", "text"), increment("k", 1)],
        conditions: Conditions {
            precondition: Some(Precondition::Version(9)),
            idempotency: Some(once("key", "two")),
            ..Conditions::default()
        },
        ..session.blank()
    };

    assert_eq!(session.write(&write).await, Err(REUSED));
    let other_key = session.run_once(once("other", "one"), &[]).await;
    assert_eq!(other_key.unwrap().stamp.version, 2);
    session.seal().await;
    assert_eq!(session.write(&write).await, Err(REUSED));
    session.end().await;

    assert_eq!(session.write(&write).await, Err(REUSED));
}

async fn each_scope_has_its_own_keys(room: Room) {
    for scope in [room.session(), room.session(), room.tool()] {
        let written = scope.run_once(numbered_key(1), &[]).await.unwrap();
        assert!(!written.replayed);
    }
}

async fn a_replay_precedes_every_refusal(room: Room) {
    let handle = room.handle();
    let operations = [set_if_absent("k", "1")];
    let write = ScopeWrite {
        makes: true,
        operations: &operations,
        conditions: Conditions {
            precondition: Some(Precondition::Version(0)),
            idempotency: Some(numbered_key(1)),
            ..Conditions::default()
        },
        ..handle.blank()
    };
    let first = handle.write(&write).await.unwrap();

    assert_eq!(handle.write(&write).await, Ok(replay_of(&first)));
    handle.seal().await;
    assert_eq!(handle.write(&write).await, Ok(replay_of(&first)));
    handle.end().await;
    assert_eq!(handle.write(&write).await, Ok(replay_of(&first)));
    assert!(!handle.exists().await);
}

async fn a_refused_write_is_not_remembered(room: Room) {
    let session = room.session();
    session.run(&[set("k", "text")]).await;

    let refused = session
        .run_once(once("key", "bad"), &[increment("k", 1)])
        .await;
    let done = session
        .run_once(once("key", "good"), &[increment("l", 1)])
        .await;

    assert!(refused.is_err());
    assert!(!done.unwrap().replayed);
}

async fn a_concurrent_repeat_is_applied_once(room: Room) {
    let session = room.session();
    let write = || async {
        let counts = [increment("n", 1)];
        session.run_once(numbered_key(1), &counts).await.unwrap()
    };

    let answers = futures_util::future::join_all((0..8).map(|_| write())).await;

    assert_eq!(session.value("n").await.unwrap(), "1");
    let fresh = answers.iter().filter(|answer| !answer.replayed);
    assert_eq!(fresh.count(), 1);
}

async fn every_answer_is_remembered_for_a_minute(room: Room) {
    let session = room.session();
    let counts = [increment("n", 1)];
    let mut first = Vec::new();
    for number in 0..150 {
        let written = session.run_once(numbered_key(number), &counts).await;
        first.push(written.unwrap());
    }

    // advance by less than a minute, because on a slow machine the writes also take time
    room.advance(50 * SECOND);
    session.run_once(numbered_key(150), &[]).await.unwrap();

    for (number, first) in (0..).zip(&first) {
        let repeat = session.run_once(numbered_key(number), &counts).await;
        assert_eq!(repeat, Ok(replay_of(first)));
    }
}

async fn the_newest_64_are_remembered_for_longer(room: Room) {
    for scope in [room.session(), room.tool()] {
        let mut first = Vec::new();
        for number in 0..80 {
            let written = scope.run_once(numbered_key(number), &[]).await;
            first.push(written.unwrap());
        }

        room.advance(86_400 * SECOND - 60 * SECOND);

        for (number, first) in (0..).zip(&first).skip(16) {
            let repeat = scope.run_once(numbered_key(number), &[]).await;
            assert_eq!(repeat, Ok(replay_of(first)), "{number}");
        }
    }
}

async fn no_answer_is_remembered_for_longer_than_a_day(room: Room) {
    let tool = room.tool();
    tool.run_once(numbered_key(1), &[]).await.unwrap();

    room.advance(86_400 * SECOND);

    let repeat = tool.run_once(numbered_key(1), &[]).await.unwrap();
    assert!(!repeat.replayed);
    assert_eq!(repeat.stamp.version, 2);
}

async fn answers_are_remembered_past_the_end_of_the_scope(room: Room) {
    let session = room.session().idling(5 * SECOND);
    let first = session.run_once(numbered_key(1), &[set("k", "1")]).await;
    room.advance(50 * SECOND);

    let repeat = session.run_once(numbered_key(1), &[set("k", "1")]).await;

    assert_eq!(repeat, Ok(replay_of(&first.unwrap())));
    assert!(!session.exists().await);
    let reborn = session.run_once(numbered_key(2), &[]).await.unwrap();
    assert_eq!(reborn.stamp.version, 1);
    let repeat = session.run_once(numbered_key(1), &[set("k", "1")]).await;
    assert!(repeat.unwrap().replayed);
}

async fn an_end_is_not_undone_by_a_late_repeat(room: Room) {
    let session = room.session();
    let first = session.run_once(numbered_key(1), &[set("k", "1")]).await;
    session.end().await;

    let repeat = session.run_once(numbered_key(1), &[set("k", "1")]).await;

    assert_eq!(repeat, Ok(replay_of(&first.unwrap())));
    assert!(!session.exists().await);
}

async fn new_keys_over_the_limit_are_refused_for_a_minute(room: Room) {
    const KEYS_MAX: u64 = 65_536;
    room.advance(HOUR);
    let session = room.session();
    let first = session.run_once(keyed(0), &[]).await.unwrap();
    room.for_each_concurrently(1..KEYS_MAX, async |number| {
        session.run_once(keyed(number), &[]).await.unwrap();
    })
    .await;

    let refused = session.run_once(keyed(KEYS_MAX), &[]).await;
    let repeat = session.run_once(keyed(0), &[]).await;
    let without_key = session.try_run(&[]).await;
    room.advance(60 * SECOND);
    let after = session.run_once(keyed(KEYS_MAX), &[]).await;

    let Err(Refusal::TooManyIdempotencyKeys { retry_after_ms }) = refused else {
        panic!("{refused:?}");
    };
    assert!((1..=60_000).contains(&retry_after_ms), "{retry_after_ms}");
    assert_eq!(repeat, Ok(replay_of(&first)));
    assert_eq!(without_key.unwrap().stamp.version, KEYS_MAX + 1);
    assert!(!after.unwrap().replayed);
}

async fn remembered_answers_have_a_size_limit(room: Room) {
    // remembered answers may take 16 MiB, and each of these answers takes 8 KiB: 8 bytes for each of 1,024 operations
    const ANSWERS_MAX: u64 = 2_048;
    room.advance(HOUR);
    let session = room.session();
    let operations = vec![KvOperation::Clear; 1_024];
    session.run_once(keyed(0), &operations).await.unwrap();
    room.for_each_concurrently(1..ANSWERS_MAX, async |number| {
        session.run_once(keyed(number), &operations).await.unwrap();
    })
    .await;

    let refused = session.run_once(keyed(ANSWERS_MAX), &[]).await;
    let too_many = matches!(refused, Err(Refusal::TooManyIdempotencyKeys { .. }));
    assert!(too_many, "{refused:?}");
    let again = session.run_once(keyed(0), &operations).await;
    assert!(again.unwrap().replayed);
    room.advance(60 * SECOND);
    assert!(session.run_once(keyed(ANSWERS_MAX), &[]).await.is_ok());
}

async fn a_refused_large_write_can_be_retried_smaller(room: Room) {
    let session = room.session();
    let large: Vec<_> = ["a", "b", "c", "d", "e"]
        .map(|key| fill(key, 32_768))
        .into();

    let refused = session.run_once(once("key", "large"), &large).await;
    let smaller = session.run_once(once("key", "small"), &large[..4]).await;

    assert!(matches!(refused, Err(Refusal::KvTooLarge { .. })));
    assert!(smaller.is_ok());
}

/// Like [`numbered_key`], but without computing a digest.
fn keyed(number: u64) -> IdempotencyKey {
    let fingerprint = Fingerprint(u128::from(number).to_be_bytes());
    IdempotencyKey {
        digest: fingerprint,
        request: fingerprint,
    }
}

async fn an_end_does_not_revive_an_expired_answer(room: Room) {
    let thread = room.subject();
    thread.merge(&[]).await;
    let scope = room.scope_of(&thread);
    let first = scope.run_once(once("a", "r"), &[]).await.unwrap();
    room.advance(thread.policy.ttl / 2);
    scope.run(&[set("k", "1")]).await;
    // without the second write, the thread and the remembered answer would expire here
    room.advance(thread.policy.ttl / 2);
    assert!(scope.end().await);

    let again = scope.run_once(once("a", "r"), &[]).await.unwrap();

    assert!(!again.replayed);
    assert_eq!(again.stamp, first.stamp);
    assert!(scope.exists().await);
}

fn end_once(key: IdempotencyKey) -> ScopeEnd {
    ScopeEnd {
        idempotency: Some(key),
        ..ScopeEnd::new(Access::All)
    }
}

async fn a_repeated_end_does_not_end_a_later_scope(room: Room) {
    let thread = room.subject();
    thread.merge(&[]).await;
    for scope in [room.session(), room.tool(), room.scope_of(&thread)] {
        scope.run(&[set("k", "1")]).await;
        let end = end_once(once("key", "end"));
        let first = scope.end_by(&end).await.unwrap();
        scope.run(&[set("k", "2")]).await;
        room.advance(30 * SECOND);

        let repeat = scope.end_by(&end).await.unwrap();

        assert_eq!((first.answer, first.replayed), (true, false));
        assert_eq!((repeat.answer, repeat.replayed), (true, true));
        assert!(scope.exists().await);
        let of_version = ScopeEnd {
            expected: Some(9),
            ..end
        };
        assert!(scope.end_by(&of_version).await.unwrap().replayed);
        let other = scope.end_by(&end_once(once("key", "other"))).await;
        assert_eq!(other, Err(REUSED));
        let write = scope.run_once(once("key", "end"), &[]).await;
        assert_eq!(write, Err(REUSED));
        room.advance(31 * SECOND);
        scope.run(&[]).await;
        assert!(!scope.end_by(&end).await.unwrap().replayed);
    }
}

async fn an_end_of_nothing_is_remembered_too(room: Room) {
    let session = room.session();
    let end = end_once(numbered_key(1));
    assert!(!session.end_by(&end).await.unwrap().answer);
    session.run(&[set("k", "1")]).await;

    let repeat = session.end_by(&end).await.unwrap();

    assert_eq!((repeat.answer, repeat.replayed), (false, true));
    assert!(session.exists().await);
    let written = session.run_once(numbered_key(2), &[]).await.unwrap();
    let reused = session.end_by(&end_once(numbered_key(2))).await;
    assert_eq!((reused, written.replayed), (Err(REUSED), false));
}

super::over_every_store_and_confirmed! {
    a_repeated_end_does_not_end_a_later_scope,
    an_end_of_nothing_is_remembered_too,
    an_end_does_not_revive_an_expired_answer,
    a_repeat_returns_the_first_answer_in_full,
    a_repeated_append_is_replayed,
    another_request_with_a_used_key_is_refused_before_anything_else,
    each_scope_has_its_own_keys,
    a_replay_precedes_every_refusal,
    a_refused_write_is_not_remembered,
    a_concurrent_repeat_is_applied_once,
    every_answer_is_remembered_for_a_minute,
    the_newest_64_are_remembered_for_longer,
    no_answer_is_remembered_for_longer_than_a_day,
    answers_are_remembered_past_the_end_of_the_scope,
    an_end_is_not_undone_by_a_late_repeat,
    remembered_answers_have_a_size_limit,
    a_refused_large_write_can_be_retried_smaller,
    ;
    hurried:
    new_keys_over_the_limit_are_refused_for_a_minute,
}
