use std::time::Duration;

use threadkeep_domain::{IdempotencyKey, Precondition, Refusal, Stamp};
use threadkeep_store::{Answered, EntryTerms, NamespaceChange, Put};

use super::room::{Room, in_parallel, numbered_key, once};
use super::space::{Space, seconds, text};

const SECOND: Duration = Duration::from_secs(1);
const REUSED: Refusal = Refusal::IdempotencyKeyReused;

fn with_key(key: IdempotencyKey) -> EntryTerms {
    EntryTerms {
        idempotency: Some(key),
        ..EntryTerms::default()
    }
}

async fn put(space: &Space, key: IdempotencyKey, body: &str) -> Result<Answered<Put>, Refusal> {
    space
        .put_by("k", &text(body.to_owned()), with_key(key))
        .await
}

async fn a_repeated_put_returns_the_first_answer_and_stores_nothing(room: Room) {
    let space = room.space("n");
    let first = put(&space, numbered_key(1), "1").await.unwrap();
    let second = space.put_for("k", "2", seconds(1_000)).await;
    room.advance(30 * SECOND);

    let repeat = put(&space, numbered_key(1), "1").await.unwrap();

    assert!(!first.replayed && repeat.replayed);
    assert_eq!(repeat.answer, first.answer);
    let entry = space.get("k").await.unwrap();
    assert_eq!(
        (entry.head.stamp, &entry.body[..]),
        (second.stamp, &b"2"[..])
    );
    assert_eq!(space.counts().await, (1, 1));
}

async fn a_repeated_put_restores_no_deleted_entry(room: Room) {
    let space = room.space("n");
    let first = put(&space, numbered_key(1), "1").await.unwrap();
    assert!(space.delete("k").await);
    let repeat = put(&space, numbered_key(1), "1").await.unwrap();
    assert_eq!((repeat.answer, repeat.replayed), (first.answer, true));
    assert_eq!(space.get("k").await, None);

    space.destroy().await;

    assert!(put(&space, numbered_key(1), "1").await.unwrap().replayed);
    assert_eq!(space.record().await, None);
    assert!(space.keys("", 10).await.is_empty());
}

async fn a_repeated_deletion_keeps_later_entries(room: Room) {
    let space = room.space("n");
    space.put("k", "1").await;
    let first = space
        .delete_by("k", with_key(numbered_key(1)))
        .await
        .unwrap();
    space.put("k", "2").await;

    let repeat = space
        .delete_by("k", with_key(numbered_key(1)))
        .await
        .unwrap();

    assert_eq!((first.answer, first.replayed), (true, false));
    assert_eq!((repeat.answer, repeat.replayed), (true, true));
    assert_eq!(space.body("k").await.unwrap(), "2");
    let none = space
        .delete_by("none", with_key(numbered_key(1)))
        .await
        .unwrap();
    assert_eq!((none.answer, none.replayed), (false, false));
    space.put("none", "3").await;
    let repeat = space
        .delete_by("none", with_key(numbered_key(1)))
        .await
        .unwrap();
    assert_eq!((repeat.answer, repeat.replayed), (false, true));
}

async fn a_reused_key_is_refused_before_any_other_check(room: Room) {
    let space = room.space("n");
    put(&space, once("key", "one"), "1").await.unwrap();
    let unmet = EntryTerms {
        precondition: Some(Precondition::Version(9)),
        ..with_key(once("key", "two"))
    };

    assert_eq!(space.put_by("k", &text("x"), unmet).await, Err(REUSED));
    assert_eq!(space.delete_by("k", unmet).await, Err(REUSED));
    let deletion = space.delete_by("k", with_key(once("key", "one"))).await;
    assert_eq!(deletion, Err(REUSED));
    assert_eq!(space.body("k").await.unwrap(), "1");
    // an idempotency key applies to one entry only
    let terms = with_key(once("key", "two"));
    let other = space.put_by("other", &text("x"), terms).await;
    assert!(!other.unwrap().replayed);
}

async fn replays_precede_conditions_and_refusals_are_not_remembered(room: Room) {
    let space = room.space("n");
    let new = |number| EntryTerms {
        precondition: Some(Precondition::Version(0)),
        ..with_key(numbered_key(number))
    };
    let first = space.put_by("k", &text("1"), new(1)).await.unwrap();

    let repeat = space.put_by("k", &text("1"), new(1)).await.unwrap();
    assert_eq!((repeat.answer, repeat.replayed), (first.answer, true));
    let refused = space.put_by("k", &text("2"), new(2)).await;
    let current = first.answer.stamp;
    assert_eq!(refused, Err(Refusal::VersionMismatch { current }));
    space.delete("k").await;
    let again = space.put_by("k", &text("2"), new(2)).await.unwrap();
    assert!(!again.replayed);
}

async fn an_unmet_condition_is_remembered_on_request(room: Room) {
    let space = room.space("n");
    let current = space.put("k", "1").await.stamp;
    let terms = EntryTerms {
        precondition: Some(Precondition::Version(0)),
        remembers_mismatch: true,
        ..with_key(numbered_key(1))
    };
    let put = async || space.put_by("k", &text("2"), terms).await;
    let refused = Err(Refusal::VersionMismatch { current });

    assert_eq!(put().await, refused);
    space.delete("k").await;
    assert_eq!(put().await, refused);
    assert_eq!(space.get("k").await, None);
    room.advance(61 * SECOND);
    assert_eq!(put().await.unwrap().answer.stamp.version, 1);
    assert_ne!(current, Stamp::default());
}

async fn a_key_is_remembered_for_a_minute(room: Room) {
    let space = room.space("n");
    put(&space, numbered_key(1), "1").await.unwrap();
    room.advance(55 * SECOND);
    assert!(put(&space, numbered_key(1), "1").await.unwrap().replayed);
    put(&space, numbered_key(2), "2").await.unwrap();
    room.advance(55 * SECOND);
    assert!(put(&space, numbered_key(2), "2").await.unwrap().replayed);
    room.advance(6 * SECOND);

    let late = put(&space, numbered_key(2), "2").await.unwrap();

    assert!(!late.replayed);
    assert_eq!(late.answer.stamp.version, 3);
}

async fn concurrent_repeats_run_once(room: Room) {
    let space = room.space("n");
    let puts = (0..20).map(|_| {
        let space = space.clone();
        in_parallel(async move { put(&space, numbered_key(1), "1").await.unwrap() })
    });
    let mut fresh = 0;
    for put in puts.collect::<Vec<_>>() {
        let put = put.await.unwrap();
        assert_eq!(put.answer.stamp.version, 1);
        fresh += usize::from(!put.replayed);
    }

    assert_eq!(fresh, 1);
    assert_eq!(space.get("k").await.unwrap().head.stamp.version, 1);
}

async fn a_repeated_change_of_a_namespace_changes_nothing(room: Room) {
    let space = room.space("n");
    space.put("k", "123").await;
    let change = |lifetime| NamespaceChange {
        default_lifetime: Some(seconds(lifetime)),
        idle_ttl: Some(Some(100 * SECOND)),
    };
    let key = once("key", "one");
    let first = space.set_by(change(60), Some(key)).await.unwrap();
    space.put("l", "4").await;
    let later = space.set_by(change(90), None).await.unwrap();

    let repeat = space.set_by(change(60), Some(key)).await.unwrap();

    assert_eq!(
        (repeat.answer, repeat.replayed),
        (first.answer.clone(), true)
    );
    assert_eq!((first.answer.1.entries, first.answer.1.bytes), (1, 3));
    assert_eq!(space.record().await.unwrap(), later.answer.0);
    let other = space.set_by(change(60), Some(once("key", "two"))).await;
    assert_eq!(other, Err(REUSED));
    assert_eq!(space.destroy_by(Some(key)).await, Err(REUSED));
    assert_eq!(space.counts().await, (2, 4));
}

async fn a_repeated_namespace_deletion_keeps_later_entries(room: Room) {
    let space = room.space("n");
    for number in 0..100 {
        space.put(&format!("{number}"), "x").await;
    }
    let key = numbered_key(1);
    let first = space.destroy_by(Some(key)).await.unwrap();
    space.put("new", "y").await;

    let repeat = space.destroy_by(Some(key)).await.unwrap();

    assert_eq!((first.answer, first.replayed), (100, false));
    assert_eq!((repeat.answer, repeat.replayed), (100, true));
    assert_eq!(space.keys("", 10).await, ["new"]);
    assert!(space.record().await.is_some());
    room.advance(61 * SECOND);
    let late = space.destroy_by(Some(key)).await.unwrap();
    assert_eq!((late.answer, late.replayed), (1, false));
}

async fn the_start_of_a_batch_is_recorded(room: Room) {
    let space = room.space("n");
    let begin = async |key| {
        let begun = room.backend.begin_writes(&space.namespace, key);
        begun.await.is_ok_and(|begun| begun)
    };

    assert!(!begin(once("key", "one")).await);
    assert!(begin(once("key", "one")).await);
    let other = room
        .backend
        .begin_writes(&space.namespace, once("key", "two"));
    assert!(other.await.is_err());
    let change = NamespaceChange::default();
    let set = space.set_by(change, Some(once("key", "one"))).await;
    assert_eq!(set, Err(REUSED));
    assert_eq!(space.record().await, None);
}

async fn a_new_key_past_the_limit_is_refused_for_a_minute(room: Room) {
    let space = room.space("n");
    room.advance(3_600 * SECOND);
    room.for_each_concurrently(0..65_536, async |number| {
        let terms = with_key(numbered_key(number));
        space.delete_by("k", terms).await.unwrap();
    })
    .await;

    let refused = put(&space, numbered_key(65_536), "1").await;

    let too_many = matches!(refused, Err(Refusal::TooManyIdempotencyKeys { .. }));
    assert!(too_many, "{refused:?}");
    assert_eq!(space.get("k").await, None);
    // replays, writes to other entries, and writes without an idempotency key are still accepted
    assert!(
        space
            .delete_by("k", with_key(numbered_key(7)))
            .await
            .unwrap()
            .replayed
    );
    let terms = with_key(numbered_key(65_536));
    let other = space.put_by("other", &text("x"), terms).await;
    assert!(other.is_ok());
    space.put("k", "1").await;
    room.advance(61 * SECOND);
    assert!(put(&space, numbered_key(65_536), "2").await.is_ok());
}

super::over_every_store_and_confirmed! {
    a_repeated_put_returns_the_first_answer_and_stores_nothing,
    a_repeated_put_restores_no_deleted_entry,
    a_repeated_deletion_keeps_later_entries,
    a_reused_key_is_refused_before_any_other_check,
    replays_precede_conditions_and_refusals_are_not_remembered,
    an_unmet_condition_is_remembered_on_request,
    a_key_is_remembered_for_a_minute,
    concurrent_repeats_run_once,
    a_repeated_change_of_a_namespace_changes_nothing,
    a_repeated_namespace_deletion_keeps_later_entries,
    the_start_of_a_batch_is_recorded;
    hurried: a_new_key_past_the_limit_is_refused_for_a_minute,
}
