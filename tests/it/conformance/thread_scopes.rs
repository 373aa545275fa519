use std::time::Duration;

use threadkeep_domain::scope::ScopeWrite;
use threadkeep_domain::{Life, Precondition, Refusal, Stamp, ThreadPolicy};
use threadkeep_store::HistoryFrom::{self, After};

use super::room::{self, Room, Subject, numbered_once};
use super::scope_room::{Place, increment, item, numbered, set, set_for, words};

const SECOND: Duration = Duration::from_secs(1);

pub(crate) async fn living(room: &Room) -> (Subject, Place) {
    let thread = room.subject();
    thread.merge(&[room::set("k", "\"state\"")]).await;
    let scope = room.scope_of(&thread);
    (thread, scope)
}

/// Fills every part of a scope, which then has version 4.
pub(crate) async fn fill(scope: &Place) {
    scope.run(&[set("k", "1"), set("n", "7")]).await;
    scope.put_tasks(&["a", "b"], None).await.unwrap();
    scope.put_record("r", None).await.unwrap();
    scope.add(&[item("1", "1.0"), item("2", "[]")]).await;
}

pub(crate) async fn is_filled(scope: &Place) -> bool {
    let one_and_two = [
        (1, "1".to_owned(), "1.0".to_owned()),
        (2, "2".to_owned(), "[]".to_owned()),
    ];
    scope.value("k").await.as_deref() == Some("1")
        && scope.tasks().await == ["a", "b"]
        && scope.record().await.as_deref() == Some("r")
        && scope.items().await == one_and_two
}

pub(super) async fn last_words(
    room: &Room,
    thread: &Subject,
    life: Option<Life>,
    from: HistoryFrom,
    most: usize,
) -> Option<Vec<(u64, String, String)>> {
    let page = room
        .backend
        .read_final_history(&thread.id, life, from, most);
    page.await.unwrap().map(|page| words(&page))
}

pub(super) async fn the_end_of_it_is_told(
    room: &Room,
    thread: &Subject,
    life: Life,
) -> Option<usize> {
    let read = last_words(room, thread, Some(life), After(0), 100).await;
    read.map(|items| items.len())
}

async fn a_scope_is_apart_from_the_state(room: Room) {
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

async fn it_has_versions_of_its_own_and_the_life_of_the_thread(room: Room) {
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

async fn a_thread_that_has_none_reads_as_without(room: Room) {
    let (_, scope) = living(&room).await;

    assert_eq!(scope.view().await, None);
    assert_eq!(scope.page(After(0), 10).await, None);
    assert!(!scope.end().await);
    let first = scope.run_if(Precondition::Version(0), &[]).await;
    assert_eq!(first.unwrap().stamp.version, 1);
}

async fn without_a_thread_there_is_none_and_a_write_makes_none(room: Room) {
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

async fn what_can_refuse_does_so_before_the_thread_is_missed(room: Room) {
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

async fn the_service_makes_the_thread_of_a_write_that_can_be_done(room: Room) {
    let (threads, scopes) = room.services();
    let thread = room.subject();
    let scope = room.scope_of(&thread);
    let options = threadkeep_service::WriteOptions::default();

    let refused = [set("n", "text"), increment("n", 1)];
    let refused = scopes.write(&scope.scope, &refused, options).await;
    assert!(refused.is_err());
    assert!(!thread.exists().await);
    let written = scopes.write(&scope.scope, &[set("k", "1")], options).await;

    let stamp = thread.stamp().await;
    assert_eq!((stamp.version, written.unwrap().stamp), (1, stamp));
    threads.destroy(&thread.id, options).await.unwrap();
    let destroyed = scopes.write(&scope.scope, &[set("k", "1")], options).await;
    assert!(destroyed.is_err());
    assert!(!thread.exists().await);
}

async fn using_it_is_a_use_of_the_thread(room: Room) {
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

async fn it_lives_as_long_as_the_thread_is_used(room: Room) {
    let (thread, scope) = living(&room).await;
    fill(&scope).await;
    for _ in 0..3 {
        room.advance(ThreadPolicy::THREAD.ttl - 10 * SECOND);
        thread.merge(&[]).await;
    }

    assert!(is_filled(&scope).await);
}

async fn its_policy_has_no_say_in_how_long_it_lives(room: Room) {
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

async fn keys_of_it_have_times_of_their_own(room: Room) {
    let (_, scope) = living(&room).await;
    scope.run(&[set_for("k", "1", SECOND), set("l", "2")]).await;

    room.advance(SECOND);

    assert_eq!(scope.keys().await, ["l"]);
    assert_eq!(scope.run(&[]).await.kv_bytes, 1);
}

async fn a_destroyed_thread_takes_it_along_at_once(room: Room) {
    let (thread, scope) = living(&room).await;
    fill(&scope).await;
    let life = thread.stamp().await.life;

    thread.destroy().await;

    assert_eq!(scope.view().await, None);
    assert_eq!(scope.page(After(0), 10).await, None);
    assert_eq!(scope.try_run(&[]).await, Err(Refusal::NoThread));
    assert!(!scope.end().await);
    assert_eq!(the_end_of_it_is_told(&room, &thread, life).await, Some(2));
}

async fn an_expired_thread_takes_it_along(room: Room) {
    let (thread, scope) = living(&room).await;
    fill(&scope).await;
    let life = thread.stamp().await.life;

    room.advance(ThreadPolicy::THREAD.ttl);
    assert_eq!(scope.view().await, None);
    assert_eq!(scope.page(After(0), 10).await, None);
    room.reap().await;
    assert_eq!(scope.view().await, None);
    assert_eq!(scope.try_run(&[]).await, Err(Refusal::NoThread));

    assert_eq!(the_end_of_it_is_told(&room, &thread, life).await, Some(2));
}

async fn who_ends_it_too_late_takes_nothing_from_what_is_left(room: Room) {
    let (thread, scope) = living(&room).await;
    fill(&scope).await;
    let life = thread.stamp().await.life;
    room.advance(ThreadPolicy::THREAD.ttl);

    assert!(!scope.end().await);
    assert_eq!(scope.try_run(&[]).await, Err(Refusal::NoThread));
    room.reap().await;

    assert_eq!(the_end_of_it_is_told(&room, &thread, life).await, Some(2));
    let restored = room.backend.restore(&thread.id, None, &thread.policy);
    restored.await.unwrap().unwrap();
    assert!(is_filled(&scope).await);
}

async fn a_new_life_begins_without_one(room: Room) {
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

async fn an_end_of_it_leaves_the_thread(room: Room) {
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

async fn threads_share_nothing(room: Room) {
    let (one, its) = living(&room).await;
    let (other, others) = living(&room).await;
    fill(&its).await;
    fill(&others).await;

    one.destroy().await;

    assert!(!its.exists().await);
    assert!(is_filled(&others).await);
    assert!(other.exists().await);
}

async fn a_write_is_done_once_and_not_taken_for_one_of_the_thread(room: Room) {
    let (thread, scope) = living(&room).await;
    thread.merge_once(numbered_once(1), &[]).await.unwrap();

    let first = scope.run_once(numbered_once(1), &[increment("n", 1)]).await;
    let again = scope.run_once(numbered_once(1), &[increment("n", 1)]).await;

    assert!(!first.unwrap().replayed);
    assert!(again.unwrap().replayed);
    assert_eq!(scope.value("n").await.unwrap(), "1");
}

async fn a_repeat_is_answered_after_the_end_of_the_thread(room: Room) {
    let (thread, scope) = living(&room).await;
    let first = scope.run_once(numbered_once(1), &[set("k", "1")]).await;
    thread.destroy().await;

    let repeat = scope.run_once(numbered_once(1), &[set("k", "1")]).await;
    let new = scope.run_once(numbered_once(2), &[set("k", "1")]).await;

    let repeat = repeat.unwrap();
    assert!(repeat.replayed);
    assert_eq!(repeat.stamp, first.unwrap().stamp);
    assert_eq!(new, Err(Refusal::NoThread));
    assert!(!scope.exists().await);
}

super::over_every_store! {
    a_scope_is_apart_from_the_state,
    it_has_versions_of_its_own_and_the_life_of_the_thread,
    a_thread_that_has_none_reads_as_without,
    without_a_thread_there_is_none_and_a_write_makes_none,
    what_can_refuse_does_so_before_the_thread_is_missed,
    the_service_makes_the_thread_of_a_write_that_can_be_done,
    using_it_is_a_use_of_the_thread,
    it_lives_as_long_as_the_thread_is_used,
    its_policy_has_no_say_in_how_long_it_lives,
    keys_of_it_have_times_of_their_own,
    a_destroyed_thread_takes_it_along_at_once,
    an_expired_thread_takes_it_along,
    who_ends_it_too_late_takes_nothing_from_what_is_left,
    a_new_life_begins_without_one,
    an_end_of_it_leaves_the_thread,
    threads_share_nothing,
    a_write_is_done_once_and_not_taken_for_one_of_the_thread,
    a_repeat_is_answered_after_the_end_of_the_thread,
}
