use std::time::{Duration, Instant};

use threadkeep_domain::scope::ScopeWrite;
use threadkeep_domain::{Precondition, Refusal, Stamp};
use threadkeep_store::{HistoryFrom, ScopeParts};

use super::room::{Room, numbered_key};
use super::scope_room::{Scope, delete, increment, item, key, set};

const SECOND: Duration = Duration::from_secs(1);

/// Returns a scope that expires after 100 s without use.
pub(super) fn idle(room: &Room) -> Scope {
    room.session().idling(100 * SECOND)
}

/// Asserts that `attempt` returns true within `MOMENT`. Repeats attempts that take longer, because machines may stall.
pub(super) async fn holds_within_a_moment(attempt: impl AsyncFn(Duration) -> bool) {
    const MOMENT: Duration = Duration::from_millis(50);
    for _ in 0..100 {
        let start = Instant::now();
        let holds = attempt(MOMENT).await;
        if start.elapsed() < MOMENT {
            assert!(holds);
            return;
        }
    }
    panic!("no write and read take less than {MOMENT:?}");
}

async fn an_expired_scope_reads_as_never_written(room: Room) {
    let session = idle(&room);
    session.run(&[set("k", "1")]).await;
    session.add(&[item("1", "1")]).await;

    room.advance(100 * SECOND);

    assert_eq!(session.page(HistoryFrom::After(0), 10).await, None);
    assert_eq!(session.view().await, None);
    assert_eq!(session.view().await, None);
    assert!(!session.end().await);
}

async fn a_scope_exists_until_just_before_its_expiry(room: Room) {
    holds_within_a_moment(async |moment| {
        let session = idle(&room);
        session.run(&[set("k", "1")]).await;
        room.advance(100 * SECOND - moment);
        session.exists().await
    })
    .await;
}

async fn every_use_extends_the_lifetime(room: Room) {
    let session = idle(&room);
    session.run(&[set("k", "1")]).await;
    let life = session.stamp().await.life;
    let later = || room.advance(90 * SECOND);

    later();
    assert!(
        session
            .read(&ScopeParts::default())
            .await
            .unwrap()
            .is_some()
    );
    later();
    let values = [key("absent")];
    let parts = ScopeParts {
        values: &values,
        ..ScopeParts::default()
    };
    assert!(session.read(&parts).await.unwrap().is_some());
    later();
    assert!(
        session
            .page(HistoryFrom::Before(u64::MAX), 0)
            .await
            .is_some()
    );
    later();
    session.run(&[]).await;
    later();
    session.run(&[delete("absent")]).await;
    later();
    session.put_tasks(&["t"], None).await.unwrap();
    later();
    session.put_record("r", None).await.unwrap();
    later();
    session.add(&[item("1", "1")]).await;
    later();
    assert_eq!(session.add(&[item("1", "1")]).await, [(1, true)]);
    later();
    session.clear_history().await;
    later();

    assert_eq!(session.stamp().await.life, life);
    assert_eq!(session.value("k").await.unwrap(), "1");
}

async fn refused_and_replayed_writes_do_not_extend_the_lifetime(room: Room) {
    let session = idle(&room);
    let once = session.run_once(numbered_key(1), &[set("k", "text")]).await;
    once.unwrap();
    room.advance(90 * SECOND);

    assert!(session.try_run(&[increment("k", 1)]).await.is_err());
    let unmet = session.run_if(Precondition::Version(9), &[]).await;
    assert!(unmet.is_err());
    let replay = session.run_once(numbered_key(1), &[set("k", "text")]).await;
    assert!(replay.unwrap().replayed);
    room.advance(10 * SECOND);

    assert!(!session.exists().await);
}

async fn the_reported_expiry_matches_the_last_use(room: Room) {
    let session = idle(&room);
    session.run(&[]).await;
    let first = session.view().await.unwrap();
    room.advance(60 * SECOND);
    let second = session.view().await.unwrap();

    let slack_ms = first.expires_ms.unwrap() - first.updated_ms - 100_000;
    assert!(slack_ms < 5_000, "{slack_ms}");
    let moved_ms = second.expires_ms.unwrap() - first.expires_ms.unwrap();
    assert!((60_000..65_000).contains(&moved_ms), "{moved_ms}");
    let tool = room.tool();
    tool.run(&[]).await;
    assert_eq!(tool.view().await.unwrap().expires_ms, None);
}

async fn a_write_after_the_end_begins_a_new_life(room: Room) {
    let session = idle(&room);
    let before = session.run(&[set("old", "1")]).await.stamp;
    session.put_tasks(&["t"], None).await.unwrap();
    session.put_record("r", None).await.unwrap();
    session.add(&[item("1", "1"), item("2", "2")]).await;
    session.seal().await;
    room.advance(100 * SECOND);

    let after = session.run(&[set("new", "12")]).await;

    assert_eq!((after.keys, after.kv_bytes), (1, 2));
    assert_eq!(after.stamp.version, 1);
    assert_ne!(after.stamp.life, before.life);
    assert_eq!(session.keys().await, ["new"]);
    let view = session.view().await.unwrap();
    assert!(view.tasks.is_empty() && view.record.is_none() && !view.is_sealed);
    assert_eq!(view.tasks_stamp.version, 0);
    assert_eq!(session.add(&[item("1", "77")]).await, [(1, false)]);
    room.advance(90 * SECOND);
    assert_eq!(session.items().await.len(), 1);
}

async fn an_expired_scope_is_absent_to_conditions_and_ends(room: Room) {
    let session = idle(&room);
    let stamp = session.run(&[]).await.stamp;
    room.advance(100 * SECOND);

    let exists = session.run_if(Precondition::Exists, &[]).await;
    let old_stamp = session.run_if(Precondition::Stamp(stamp), &[]).await;
    let tasks = session.put_tasks(&["t"], Some(stamp)).await;
    let end = session.end_if(Some(1)).await;
    let none = session.run_if(Precondition::Version(0), &[]).await;

    let current = Stamp::default();
    let unmet = Refusal::VersionMismatch { current };
    assert_eq!((exists, old_stamp), (Err(unmet), Err(unmet)));
    assert!(tasks.is_err());
    assert_eq!(end, Err(unmet));
    assert_eq!(none.unwrap().stamp.version, 1);
}

async fn an_expired_scope_must_be_created_again(room: Room) {
    let run = room.scope("run:6c8b7f2e-3f4a-4a65-9c1e-0f9f3c7c2d11");
    let run = run.idling(100 * SECOND);
    run.make().await;
    room.advance(100 * SECOND);

    let refused = run.try_run(&[]).await;

    let not_found = Refusal::ScopeNotFound;
    assert_eq!(refused, Err(not_found));
    assert_eq!(run.make().await.stamp.version, 1);
}

async fn the_last_write_sets_the_idle_time(room: Room) {
    let session = idle(&room);
    session.run(&[]).await;
    let longer = session.clone().idling(1_000 * SECOND);

    longer.run(&[]).await;
    room.advance(900 * SECOND);
    assert!(session.exists().await);
    room.advance(900 * SECOND);
    assert!(session.exists().await);
    session.run(&[]).await;
    room.advance(100 * SECOND);

    assert!(!session.exists().await);
}

async fn a_scope_with_a_ttl_ends_on_time_however_it_is_used(room: Room) {
    let handle = room.handle();
    let write = ScopeWrite {
        makes: true,
        ttl: Some(100 * SECOND),
        ..handle.blank()
    };
    handle.write(&write).await.unwrap();
    let expires_ms = handle.view().await.unwrap().expires_ms;

    room.advance(60 * SECOND);
    handle.run(&[set("k", "1")]).await;
    handle.add(&[item("1", "1")]).await;
    room.advance(30 * SECOND);
    let view = handle.view().await.unwrap();
    // the expiry is a clock reading plus the remaining time that Redis reports; a pause between these steps shifts it
    assert!(view.expires_ms.unwrap().abs_diff(expires_ms.unwrap()) <= 10_000);
    room.advance(10 * SECOND);

    assert!(!handle.exists().await);
    assert_eq!(handle.page(HistoryFrom::After(0), 10).await, None);
}

async fn a_scope_without_a_ttl_stays(room: Room) {
    let handle = room.handle();
    handle.make().await;
    let tool = room.tool();
    tool.run(&[set("k", "1")]).await;

    room.advance(31_536_000 * SECOND);

    assert!(handle.exists().await);
    assert_eq!(tool.value("k").await.unwrap(), "1");
}

async fn a_ttl_can_be_extended_and_shortened(room: Room) {
    let handle = room.handle();
    handle.make().await;
    handle.run(&[set("k", "1")]).await;
    handle.add(&[item("1", "1")]).await;

    handle.set_ttl(100 * SECOND).await;
    room.advance(90 * SECOND);
    handle.set_ttl(1_000 * SECOND).await;
    room.advance(990 * SECOND);
    assert_eq!(handle.items().await.len(), 1);
    handle.set_ttl(31_536_000 * SECOND).await;
    handle.set_ttl(5 * SECOND).await;
    room.advance(5 * SECOND);

    assert!(!handle.exists().await);
}

async fn a_ttl_does_not_apply_to_a_scope_with_an_idle_time(room: Room) {
    let session = idle(&room);
    session.set_ttl(10_000 * SECOND).await;
    room.advance(100 * SECOND);
    assert!(!session.exists().await);
    session.set_ttl(SECOND).await;
    room.advance(90 * SECOND);
    assert!(session.exists().await);
}

async fn a_history_ends_with_its_scope(room: Room) {
    let session = idle(&room);
    session.run(&[]).await;
    room.advance(50 * SECOND);
    session.add(&[item("1", "1")]).await;
    room.advance(90 * SECOND);
    session.clear_history().await;
    session.add(&[item("1", "2")]).await;
    room.advance(90 * SECOND);
    assert_eq!(session.items().await, [(2, "1".into(), "2".into())]);
    room.advance(100 * SECOND);

    assert_eq!(session.add(&[item("1", "3")]).await, [(1, false)]);
}

async fn a_read_without_touch_does_not_extend_the_lifetime(room: Room) {
    let parts = ScopeParts {
        touch: false,
        ..ScopeParts::default()
    };
    let thread = room.subject();
    thread.merge(&[]).await;
    for scope in [idle(&room), room.scope_of(&thread)] {
        scope.run(&[set("k", "1")]).await;
        let first = scope.read(&parts).await.unwrap().unwrap();
        room.advance(90 * SECOND);

        let again = scope.read(&parts).await.unwrap().unwrap();

        assert_eq!(again.stamp, first.stamp);
        assert!(
            first.expires_ms.is_none()
                || again.expires_ms <= first.expires_ms.map(|ms| ms + 10_000)
        );
    }
    room.advance(thread.policy.ttl - 90 * SECOND);
    for scope in [idle(&room), room.scope_of(&thread)] {
        assert_eq!(scope.read(&parts).await.unwrap(), None);
    }
    assert!(!thread.exists().await);
}

async fn a_refused_end_does_not_extend_the_lifetime(room: Room) {
    let session = idle(&room);
    session.run(&[set("k", "1")]).await;
    let thread = room.subject();
    thread.merge(&[]).await;
    let thread_scope = room.scope_of(&thread);
    thread_scope.run(&[set("k", "1")]).await;

    room.advance(90 * SECOND);
    let refused = session.end_if(Some(9)).await;
    assert!(matches!(refused, Err(Refusal::VersionMismatch { .. })));
    room.advance(10 * SECOND);
    assert!(!session.exists().await);

    room.advance(thread.policy.ttl - 110 * SECOND);
    let refused = thread_scope.end_if(Some(9)).await;
    assert!(matches!(refused, Err(Refusal::VersionMismatch { .. })));
    room.advance(10 * SECOND);
    assert!(!thread.exists().await);
}

async fn ending_its_scope_extends_the_thread(room: Room) {
    let thread = room.subject();
    thread.merge(&[]).await;
    let scope = room.scope_of(&thread);
    scope.run(&[set("k", "1")]).await;

    room.advance(thread.policy.ttl - 10 * SECOND);
    assert!(scope.end().await);
    room.advance(10 * SECOND);

    assert!(thread.exists().await);
}

super::over_every_store! {
    a_refused_end_does_not_extend_the_lifetime,
    ending_its_scope_extends_the_thread,
    a_read_without_touch_does_not_extend_the_lifetime,
    an_expired_scope_reads_as_never_written,
    a_scope_exists_until_just_before_its_expiry,
    every_use_extends_the_lifetime,
    refused_and_replayed_writes_do_not_extend_the_lifetime,
    the_reported_expiry_matches_the_last_use,
    a_write_after_the_end_begins_a_new_life,
    an_expired_scope_is_absent_to_conditions_and_ends,
    an_expired_scope_must_be_created_again,
    the_last_write_sets_the_idle_time,
    a_scope_with_a_ttl_ends_on_time_however_it_is_used,
    a_scope_without_a_ttl_stays,
    a_ttl_can_be_extended_and_shortened,
    a_ttl_does_not_apply_to_a_scope_with_an_idle_time,
    a_history_ends_with_its_scope,
}
