use std::time::Duration;

use threadkeep_domain::scope::ScopeWrite;
use threadkeep_domain::{Life, Precondition, Refusal, Stamp, ThreadPolicy};
use threadkeep_store::HistoryFrom::{self, After};

use super::room::{self, Room, Subject, numbered_key};
use super::scope_room::{Scope, increment, item, numbered, set, set_for, words};

const SECOND: Duration = Duration::from_secs(1);

pub(crate) async fn living(room: &Room) -> (Subject, Scope) {
    let thread = room.subject();
    thread.merge(&[room::set("k", "\"state\"")]).await;
    let scope = room.scope_of(&thread);
    (thread, scope)
}

/// Fills every part of a scope, which then has version 4.
pub(crate) async fn fill(scope: &Scope) {
    scope.run(&[set("k", "1"), set("n", "7")]).await;
    scope.put_tasks(&["a", "b"], None).await.unwrap();
    scope.put_record("r", None).await.unwrap();
    scope.add(&[item("1", "1.0"), item("2", "[]")]).await;
}

pub(crate) async fn is_filled(scope: &Scope) -> bool {
    let one_and_two = [
        (1, "1".to_owned(), "1.0".to_owned()),
        (2, "2".to_owned(), "[]".to_owned()),
    ];
    scope.value("k").await.as_deref() == Some("1")
        && scope.tasks().await == ["a", "b"]
        && scope.record().await.as_deref() == Some("r")
        && scope.items().await == one_and_two
}

pub(super) async fn final_items(
    room: &Room,
    thread: &Subject,
    life: Option<Life>,
    from: HistoryFrom,
    limit: usize,
) -> Option<Vec<(u64, String, String)>> {
    let page = room
        .backend
        .read_final_history(&thread.id, life, from, limit);
    page.await.unwrap().map(|page| words(&page))
}

pub(super) async fn final_item_count(room: &Room, thread: &Subject, life: Life) -> Option<usize> {
    let read = final_items(room, thread, Some(life), After(0), 100).await;
    read.map(|items| items.len())
}

async fn a_scope_is_separate_from_the_state(room: Room) {
    let (thread, scope) = living(&room).await;
    let before = thread.thread().await.unwrap();

    fill(&scope).await;

    let after = thread.thread().await.unwrap();
    assert_eq!(after.stamp, before.stamp);
    assert_eq!((after.size_bytes, after.keys), (before.size_bytes, 1));
    assert_eq!(after.updated_ms, before.updated_ms);
    assert_eq!(thread.state().await.unwrap(), r#"{"k":"state"}"#);
    assert!(is_filled(&scope).await);
    thread.merge(&[threadkeep_domain::Operation::Clear]).await;
    assert!(is_filled(&scope).await);
    assert_eq!(scope.version().await, 4);
}

async fn a_scope_has_its_own_version_and_the_life_of_the_thread(room: Room) {
    let (thread, scope) = living(&room).await;
    thread.merge(&[]).await;

    let written = scope.run(&[set("k", "1")]).await;

    let life = thread.stamp().await.life;
    assert_eq!(written.stamp, Stamp { version: 1, life });
    let view = scope.view().await.unwrap();
    assert_eq!(view.stamp, written.stamp);
    assert_eq!(view.expires_ms, None);
    let second = scope.run_if(Precondition::Stamp(written.stamp), &[]).await;
    assert_eq!(second.unwrap().stamp.version, 2);
}

async fn a_thread_without_a_scope_reads_as_none(room: Room) {
    let (_, scope) = living(&room).await;

    assert_eq!(scope.view().await, None);
    assert_eq!(scope.page(After(0), 10).await, None);
    assert!(!scope.end().await);
    let first = scope.run_if(Precondition::Version(0), &[]).await;
    assert_eq!(first.unwrap().stamp.version, 1);
}

async fn a_scope_write_without_a_thread_is_refused(room: Room) {
    let thread = room.subject();
    let scope = room.scope_of(&thread);

    assert_eq!(
        scope.try_run(&[set("k", "1")]).await,
        Err(Refusal::NoThread)
    );
    assert_eq!(
        scope.try_add(&[item("1", "1")]).await,
        Err(Refusal::NoThread)
    );
    assert_eq!(scope.view().await, None);
    assert_eq!(scope.page(After(0), 10).await, None);
    assert!(!scope.end().await);
    assert!(!thread.exists().await);
    assert!(room.story(&thread).await.is_empty());
}

async fn other_refusals_precede_that_of_a_missing_thread(room: Room) {
    let thread = room.subject();
    let scope = room.scope_of(&thread).keeping(100, false);
    let unmet = scope.run_if(Precondition::Exists, &[]).await;
    let counted = scope.try_run(&[set("n", "text"), increment("n", 1)]).await;
    let large: Vec<_> = (0..257).map(|n| set(&format!("k{n}"), "")).collect();
    let too_many = scope.try_run(&large).await;
    let stamp = Stamp {
        version: 1,
        life: Life(7),
    };
    let tasks = scope.put_tasks(&["t"], Some(stamp)).await;
    let record = scope.put_record("r", Some("old")).await;
    let too_large = scope.try_add(&numbered(1..3)).await;
    let reused = scope.try_add(&[item("a", "1"), item("a", "2")]).await;

    let current = Stamp::default();
    assert_eq!(unmet, Err(Refusal::VersionMismatch { current }));
    let operation = 1;
    assert_eq!(counted, Err(Refusal::NotAnInteger { operation }));
    let limit_keys = 256;
    assert_eq!(too_many, Err(Refusal::TooManyKeys { limit_keys }));
    assert_eq!(tasks, Err(Refusal::Changed));
    assert_eq!(record, Err(Refusal::Changed));
    assert!(matches!(too_large, Err(Refusal::HistoryTooLarge { .. })));
    assert_eq!(reused, Err(Refusal::ItemIdReused { item: 1 }));
    assert!(!thread.exists().await);
    let none = scope.put_tasks(&["t"], Some(Stamp::default())).await;
    assert_eq!(none, Err(Refusal::NoThread));
}

async fn the_service_creates_the_thread_of_a_valid_write(room: Room) {
    let (threads, scopes) = room.services();
    let thread = room.subject();
    let scope = room.scope_of(&thread);
    let options = threadkeep_service::WriteOptions::default();

    let refused = [set("n", "text"), increment("n", 1)];
    let refused = scopes.write(&scope.id, &refused, options).await;
    assert!(refused.is_err());
    assert!(!thread.exists().await);
    let written = scopes.write(&scope.id, &[set("k", "1")], options).await;

    let stamp = thread.stamp().await;
    assert_eq!((stamp.version, written.unwrap().stamp), (1, stamp));
    threads.destroy(&thread.id, options).await.unwrap();
    let destroyed = scopes.write(&scope.id, &[set("k", "1")], options).await;
    assert!(destroyed.is_err());
    assert!(!thread.exists().await);
}

async fn using_the_scope_extends_the_thread(room: Room) {
    let (thread, scope) = living(&room).await;
    scope.run(&[set("t", "text")]).await;
    let life = thread.stamp().await.life;
    let later = || room.advance(ThreadPolicy::THREAD.ttl - 10 * SECOND);

    later();
    assert!(scope.exists().await);
    later();
    assert!(scope.page(After(0), 0).await.is_some());
    later();
    scope.run(&[]).await;
    later();
    scope.add(&[item("1", "1")]).await;
    later();
    scope.add(&[item("1", "1")]).await;
    later();
    assert!(scope.end().await);
    later();
    assert!(!scope.exists().await);
    later();
    assert_eq!(thread.stamp().await.life, life);

    later();
    assert!(scope.run_if(Precondition::Exists, &[]).await.is_err());
    room.advance(10 * SECOND);

    assert!(!thread.exists().await);
}

async fn a_scope_lives_as_long_as_its_thread_is_used(room: Room) {
    let (thread, scope) = living(&room).await;
    fill(&scope).await;
    for _ in 0..3 {
        room.advance(ThreadPolicy::THREAD.ttl - 10 * SECOND);
        thread.merge(&[]).await;
    }

    assert!(is_filled(&scope).await);
}

async fn a_ttl_does_not_apply_to_the_scope_of_a_thread(room: Room) {
    let (thread, scope) = living(&room).await;
    let write = ScopeWrite {
        ttl: Some(SECOND),
        ..scope.blank()
    };
    scope.write(&write).await.unwrap();

    room.advance(10 * SECOND);

    assert!(scope.exists().await);
    assert!(thread.exists().await);
}

async fn keys_of_a_thread_scope_have_their_own_ttls(room: Room) {
    let (_, scope) = living(&room).await;
    scope.run(&[set_for("k", "1", SECOND), set("l", "2")]).await;

    room.advance(SECOND);

    assert_eq!(scope.keys().await, ["l"]);
    assert_eq!(scope.run(&[]).await.kv_bytes, 1);
}

async fn destroying_a_thread_ends_its_scope(room: Room) {
    let (thread, scope) = living(&room).await;
    fill(&scope).await;
    let life = thread.stamp().await.life;

    thread.destroy().await;

    assert_eq!(scope.view().await, None);
    assert_eq!(scope.page(After(0), 10).await, None);
    assert_eq!(scope.try_run(&[]).await, Err(Refusal::NoThread));
    assert!(!scope.end().await);
    assert_eq!(final_item_count(&room, &thread, life).await, Some(2));
}

async fn an_expired_thread_ends_its_scope(room: Room) {
    let (thread, scope) = living(&room).await;
    fill(&scope).await;
    let life = thread.stamp().await.life;

    room.advance(ThreadPolicy::THREAD.ttl);
    assert_eq!(scope.view().await, None);
    assert_eq!(scope.page(After(0), 10).await, None);
    room.reap().await;
    assert_eq!(scope.view().await, None);
    assert_eq!(scope.try_run(&[]).await, Err(Refusal::NoThread));

    assert_eq!(final_item_count(&room, &thread, life).await, Some(2));
}

async fn ending_an_expired_scope_leaves_the_archive_intact(room: Room) {
    let (thread, scope) = living(&room).await;
    fill(&scope).await;
    let life = thread.stamp().await.life;
    room.advance(ThreadPolicy::THREAD.ttl);

    assert!(!scope.end().await);
    assert_eq!(scope.try_run(&[]).await, Err(Refusal::NoThread));
    room.reap().await;

    assert_eq!(final_item_count(&room, &thread, life).await, Some(2));
    let restored = room.backend.restore(&thread.id, None, &thread.policy);
    restored.await.unwrap().unwrap();
    assert!(is_filled(&scope).await);
}

async fn a_new_life_begins_without_a_scope(room: Room) {
    for is_destroyed in [true, false] {
        let (thread, scope) = living(&room).await;
        fill(&scope).await;
        let earlier = scope.stamp().await;
        if is_destroyed {
            thread.destroy().await;
            room.advance(ThreadPolicy::THREAD.tombstone);
        } else {
            room.advance(ThreadPolicy::THREAD.ttl);
        }
        thread.merge(&[]).await;

        assert_eq!(scope.view().await, None);
        let stale = scope.put_tasks(&["c"], Some(earlier)).await;
        assert_eq!(stale, Err(Refusal::Changed));
        let written = scope.run(&[set("new", "1")]).await;
        assert_eq!((written.stamp.version, written.keys), (1, 1));
        assert_eq!(written.stamp.life, thread.stamp().await.life);
        assert_eq!(scope.add(&[item("1", "77")]).await, [(1, false)]);
        assert_eq!(scope.keys().await, ["new"]);
        assert!(scope.tasks().await.is_empty());
        assert_eq!(scope.record().await, None);
    }
}

async fn ending_the_scope_keeps_the_thread(room: Room) {
    let (thread, scope) = living(&room).await;
    fill(&scope).await;
    let before = thread.stamp().await;

    let another = scope.end_if(Some(9)).await;
    assert!(matches!(another, Err(Refusal::VersionMismatch { .. })));
    assert!(is_filled(&scope).await);
    assert_eq!(scope.end_if(Some(4)).await, Ok(true));

    assert_eq!(scope.view().await, None);
    assert!(!scope.end().await);
    assert_eq!(thread.stamp().await, before);
    assert_eq!(scope.run(&[set("k", "1")]).await.stamp.version, 1);
    assert_eq!(scope.add(&[item("1", "77")]).await, [(1, false)]);
    assert!(scope.tasks().await.is_empty());
}

async fn threads_share_no_scope(room: Room) {
    let (one, scope) = living(&room).await;
    let (other, other_scope) = living(&room).await;
    fill(&scope).await;
    fill(&other_scope).await;

    one.destroy().await;

    assert!(!scope.exists().await);
    assert!(is_filled(&other_scope).await);
    assert!(other.exists().await);
}

async fn a_scope_and_its_thread_have_separate_idempotency_keys(room: Room) {
    let (thread, scope) = living(&room).await;
    thread.merge_once(numbered_key(1), &[]).await.unwrap();

    let first = scope.run_once(numbered_key(1), &[increment("n", 1)]).await;
    let again = scope.run_once(numbered_key(1), &[increment("n", 1)]).await;

    assert!(!first.unwrap().replayed);
    assert!(again.unwrap().replayed);
    assert_eq!(scope.value("n").await.unwrap(), "1");
}

async fn a_repeat_is_answered_after_the_end_of_the_thread(room: Room) {
    let (thread, scope) = living(&room).await;
    let first = scope.run_once(numbered_key(1), &[set("k", "1")]).await;
    thread.destroy().await;

    let repeat = scope.run_once(numbered_key(1), &[set("k", "1")]).await;
    let new = scope.run_once(numbered_key(2), &[set("k", "1")]).await;

    let repeat = repeat.unwrap();
    assert!(repeat.replayed);
    assert_eq!(repeat.stamp, first.unwrap().stamp);
    assert_eq!(new, Err(Refusal::NoThread));
    assert!(!scope.exists().await);
}

super::over_every_store! {
    a_scope_is_separate_from_the_state,
    a_scope_has_its_own_version_and_the_life_of_the_thread,
    a_thread_without_a_scope_reads_as_none,
    a_scope_write_without_a_thread_is_refused,
    other_refusals_precede_that_of_a_missing_thread,
    the_service_creates_the_thread_of_a_valid_write,
    using_the_scope_extends_the_thread,
    a_scope_lives_as_long_as_its_thread_is_used,
    a_ttl_does_not_apply_to_the_scope_of_a_thread,
    keys_of_a_thread_scope_have_their_own_ttls,
    destroying_a_thread_ends_its_scope,
    an_expired_thread_ends_its_scope,
    ending_an_expired_scope_leaves_the_archive_intact,
    a_new_life_begins_without_a_scope,
    ending_the_scope_keeps_the_thread,
    threads_share_no_scope,
    a_scope_and_its_thread_have_separate_idempotency_keys,
    a_repeat_is_answered_after_the_end_of_the_thread,
}
