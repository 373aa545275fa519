use std::sync::Arc;
use std::time::Duration;

use threadkeep_domain::scope::{ScopePolicies, ScopeWrite};
use threadkeep_domain::{
    Access, Conditions, EventKind, Life, Owner, OwnerChange, Precondition, Refusal, Release,
    TakeTurn, ThreadId, ThreadPolicy, Tombstone, TurnToken, Write,
};
use threadkeep_store::{HistoryFrom, Reader, Rotate, Rotated, ThreadOrder};

use super::room::{Room, Subject, json, once, push, refused, set};
use super::scope_room;

const MINUTE: Duration = Duration::from_secs(60);

async fn rotate_by(
    room: &Room,
    thread: &Subject,
    conditions: Conditions,
) -> Result<Rotated, Refusal> {
    let rotate = Rotate {
        conditions,
        tombstone: thread.policy.tombstone,
    };
    refused(room.store.rotate(&thread.id, &rotate).await)
}

pub(super) async fn rotate(room: &Room, thread: &Subject) -> Subject {
    let rotated = rotate_by(room, thread, Conditions::default()).await;
    with_id(thread, rotated.unwrap().id)
}

fn with_id(thread: &Subject, id: ThreadId) -> Subject {
    Subject {
        id,
        ..thread.clone()
    }
}

async fn living(room: &Room) -> Subject {
    let thread = room.subject();
    thread.merge(&[set("k", "1"), push("list", "1")]).await;
    thread
}

async fn a_rotation_moves_the_thread_and_leaves_nothing_under_the_old_id(room: Room) {
    let thread = living(&room).await;
    thread.set_metadata(r#"{"title":1.0}"#).await.unwrap();
    let before = thread.thread().await.unwrap();

    let rotated = rotate_by(&room, &thread, Conditions::default()).await;

    let rotated = rotated.unwrap();
    assert_ne!(rotated.id, thread.id);
    assert!(!rotated.replayed);
    assert_eq!(
        room.bucket(&with_id(&thread, rotated.id)),
        room.bucket(&thread)
    );
    let new = with_id(&thread, rotated.id);
    let mut after = new.thread().await.unwrap();
    let reported = rotated.thread.unwrap();
    // allow a minute, because Redis computes each expiry from two clock readings and may pause between them
    let expiries = [reported.expires_ms, after.expires_ms];
    assert!(
        expiries
            .iter()
            .all(|ms| ms.abs_diff(before.expires_ms) < 60_000)
    );
    after.expires_ms = before.expires_ms;
    assert_eq!(after, before);
    assert_eq!(
        (reported.stamp, reported.metadata),
        (before.stamp, before.metadata)
    );
    assert_eq!(new.state().await.unwrap(), r#"{"k":1,"list":[1]}"#);
    assert!(!thread.exists().await);
    assert_eq!(thread.state().await, None);
    assert_eq!(thread.stamp().await.version, 0);
    let next = new.merge(&[push("list", "2")]).await.stamp;
    assert_eq!((next.version, next.life), (3, before.stamp.life));
    assert!(room.archive(&thread).await.is_none());
}

async fn the_old_id_refuses_every_write_for_the_tombstone_time(room: Room) {
    let thread = living(&room).await;
    let life = thread.stamp().await.life;
    let new = rotate(&room, &thread).await;

    for tombstone in [
        Tombstone::Enforced,
        Tombstone::Ignored,
        Tombstone::EnforcedAfter(life),
        Tombstone::EnforcedAfter(Life(7)),
    ] {
        let late = thread
            .merge_with_tombstone_rule(tombstone, &[set("k", "2")])
            .await;
        assert_eq!(late, Err(Refusal::Destroyed), "{tombstone:?}");
    }
    let again = rotate_by(&room, &thread, Conditions::default()).await;
    assert_eq!(again, Err(Refusal::Destroyed));
    assert!(!thread.destroy().await.existed);
    assert!(!thread.exists().await);
    assert_eq!(new.value("k").await.unwrap(), "1");

    room.advance(thread.policy.tombstone);
    let begun = thread.merge(&[]).await.stamp;
    assert_eq!(begun.version, 1);
    assert_ne!(begun.life, life);
    assert_eq!(new.stamp().await.life, life);
}

async fn a_thread_that_does_not_exist_only_gets_a_new_id(room: Room) {
    let thread = room.subject();
    let by_key = Conditions {
        idempotency: Some(once("key", "request")),
        ..Conditions::default()
    };

    let rotated = rotate_by(&room, &thread, by_key).await.unwrap();

    assert_ne!(rotated.id, thread.id);
    assert_eq!(rotated.thread, None);
    let again = rotate_by(&room, &thread, by_key).await.unwrap();
    assert_eq!((again.id, again.replayed), (rotated.id, true));
    assert!(!with_id(&thread, rotated.id).exists().await);
    assert!(room.events(&thread).await.is_empty());
    thread.merge(&[]).await;
}

async fn an_expired_thread_does_not_move(room: Room) {
    let thread = living(&room).await;
    room.advance(thread.policy.ttl);

    let rotated = rotate_by(&room, &thread, Conditions::default()).await;

    assert_eq!(rotated.unwrap().thread, None);
    room.reap().await;
    assert!(room.archive(&thread).await.is_some());
}

async fn scope_history_and_checkpoints_move_with_the_thread(room: Room) {
    let thread = living(&room).await;
    let scope = room.scope_of(&thread);
    let policy = ScopePolicies::DEFAULT.of(&scope.id);
    let operations = [scope_room::set("name", "\"Ada\"")];
    let items = [scope_room::item("1", "\"first\"")];
    let write = ScopeWrite {
        operations: &operations,
        history: &items,
        conditions: Conditions {
            idempotency: Some(once("scope", "scope")),
            ..Conditions::default()
        },
        ..ScopeWrite::new(&policy)
    };
    let written = room.backend.write_scope(&scope.id, &write).await;
    let written = written.unwrap();
    let free = Conditions::default();
    for _ in 0..2 {
        let saved = room.backend.save_checkpoint(&thread.id, None, &free).await;
        saved.unwrap();
    }

    let new = rotate(&room, &thread).await;

    let moved = room.scope_of(&new);
    let again = room.backend.write_scope(&moved.id, &write).await.unwrap();
    assert!(again.replayed);
    assert_eq!(again.stamp, written.stamp);
    let history = room
        .backend
        .read_history(&moved.id, Reader::ALL, HistoryFrom::After(0), 10);
    assert_eq!(history.await.unwrap().unwrap().items.len(), 1);
    let listed = room.backend.list_checkpoints(&new.id, Access::All).await;
    assert_eq!(listed.unwrap().unwrap().content.len(), 2);
    new.merge(&[set("k", "2")]).await;
    let restored = room
        .backend
        .restore_checkpoint(&new.id, 1, &new.blank())
        .await;
    assert_eq!(restored.unwrap().stamp.version, 3);
    assert_eq!(new.value("k").await.unwrap(), "1");
    let saved = room.backend.save_checkpoint(&new.id, None, &free).await;
    assert_eq!(saved.unwrap().head.number, 3);
    room.advance(thread.policy.tombstone);
    thread.merge(&[]).await;
    let listed = room.backend.list_checkpoints(&thread.id, Access::All).await;
    assert!(listed.unwrap().unwrap().content.is_empty());
    let old = room
        .backend
        .read_history(&scope.id, Reader::ALL, HistoryFrom::After(0), 10)
        .await;
    assert!(old.unwrap().is_none());
}

async fn a_repeated_rotation_gets_the_first_answer_under_either_id(room: Room) {
    let thread = living(&room).await;
    let by_key = Conditions {
        idempotency: Some(once("key", "rotate")),
        ..Conditions::default()
    };

    let first = rotate_by(&room, &thread, by_key).await.unwrap();
    let new = with_id(&thread, first.id);
    new.merge(&[set("k", "2")]).await;

    for named in [&thread, &new] {
        let again = rotate_by(&room, named, by_key).await.unwrap();
        assert!(again.replayed);
        assert_eq!((again.id, &again.thread), (first.id, &first.thread));
    }
    room.advance(MINUTE - Duration::from_secs(1));
    let again = rotate_by(&room, &thread, by_key).await.unwrap();
    assert_eq!(again.id, first.id);
    let other = Conditions {
        idempotency: Some(once("key", "another request")),
        ..Conditions::default()
    };
    for named in [&thread, &new] {
        let reused = rotate_by(&room, named, other).await;
        assert_eq!(reused, Err(Refusal::IdempotencyKeyReused));
    }
    assert_eq!(new.stamp().await.version, 2);
}

async fn idempotency_keys_move_with_the_thread(room: Room) {
    let thread = living(&room).await;
    let key = once("push", "push");
    thread.merge_once(key, &[push("list", "2")]).await.unwrap();

    let new = rotate(&room, &thread).await;

    let again = new.merge_once(key, &[push("list", "2")]).await.unwrap();
    assert!(again.replayed);
    assert_eq!(new.value("list").await.unwrap(), "[1,2]");
    let at_old = thread.merge_once(key, &[push("list", "2")]).await;
    assert_eq!(at_old, Err(Refusal::Destroyed));
}

async fn conditions_and_turns_apply_to_a_rotation(room: Room) {
    let thread = living(&room).await;
    let stamp = thread.stamp().await;
    let version = |version| Conditions {
        precondition: Some(Precondition::Version(version)),
        ..Conditions::default()
    };
    let mismatch = Refusal::VersionMismatch { current: stamp };
    assert_eq!(rotate_by(&room, &thread, version(7)).await, Err(mismatch));
    let take = TakeTurn {
        token: TurnToken::random(),
        ttl: MINUTE,
        exclusive: true,
        waits: false,
        idempotency: None,
    };
    let granted = room.backend.take_turn(&thread.id, Access::All, &take).await;
    let token = granted.unwrap().token;
    let turn = Some(token);
    let taken = rotate_by(&room, &thread, Conditions::default()).await;
    assert!(matches!(taken, Err(Refusal::TurnTaken { .. })));
    let by = |turn| Conditions { turn, ..version(1) };
    let lost = rotate_by(&room, &thread, by(Some(TurnToken::random()))).await;
    assert_eq!(lost, Err(Refusal::TurnLost));
    assert_eq!(thread.stamp().await, stamp);

    let rotated = rotate_by(&room, &thread, by(turn)).await.unwrap();

    let new = with_id(&thread, rotated.id);
    let others = new.try_merge(&[]).await;
    assert!(matches!(others, Err(Refusal::TurnTaken { .. })));
    let write = Write {
        conditions: Conditions {
            turn,
            ..Conditions::default()
        },
        ..new.blank()
    };
    new.write(&write).await.unwrap();
    let renewed = room.backend.renew_turn(&new.id, Access::All, token, MINUTE);
    renewed.await.unwrap();
    let at_old = room
        .backend
        .renew_turn(&thread.id, Access::All, token, MINUTE);
    assert_eq!(refused(at_old.await), Err(Refusal::TurnLost));
    let ended = room
        .backend
        .end_turn(&new.id, Access::All, token, Release::Complete);
    ended.await.unwrap();
    new.merge(&[]).await;
}

async fn a_rotated_thread_keeps_its_position_in_owner_lists(room: Room) {
    let [ann, bob] = ["ann", "bob"].map(|name| Owner::new(name).unwrap());
    let mut threads = Vec::new();
    for _ in 0..3 {
        let thread = room.subject();
        let write = Write {
            owner: OwnerChange::Set(&ann),
            ..thread.blank()
        };
        thread.write(&write).await.unwrap();
        threads.push(thread);
        room.advance(Duration::from_millis(5));
    }
    let access = |access| Conditions {
        access,
        ..Conditions::default()
    };
    for (of, refusal) in [
        (Access::Of(bob.tag()), Refusal::NotTheOwner),
        (Access::Unowned, Refusal::OwnerRequired),
    ] {
        assert_eq!(
            rotate_by(&room, &threads[1], access(of)).await,
            Err(refusal)
        );
    }

    let own = access(Access::Of(ann.tag()));
    let rotated = rotate_by(&room, &threads[1], own).await.unwrap();

    assert_eq!(rotated.thread.unwrap().owner, Some(ann.clone()));
    let expected = [threads[2].id, rotated.id, threads[0].id];
    for order in [ThreadOrder::Updated, ThreadOrder::Created] {
        let page = room.backend.list_owned(ann.tag(), order, None, 10).await;
        let listed = page.unwrap().threads;
        assert!(listed.iter().map(|((_, id), _)| id).eq(&expected));
    }
    let all = room.backend.list_threads(None, 10).await.unwrap().threads;
    let mut ids: Vec<_> = all.iter().map(|(id, _)| *id).collect();
    ids.sort_unstable();
    let mut expected = expected.to_vec();
    expected.sort_unstable();
    assert_eq!(ids, expected);
    let owner = room.backend.owner_of(&threads[1].id).await.unwrap();
    assert_eq!(owner, None);
    let owned = room.backend.measure_owned(ann.tag()).await.unwrap();
    assert_eq!(owned.threads, 3);
}

async fn a_rotation_event_has_both_ids_and_event_numbers_continue(room: Room) {
    let thread = living(&room).await;
    room.watch(&thread, MINUTE).await;
    thread.merge(&[set("k", "2")]).await;

    let new = rotate(&room, &thread).await;
    let newest = rotate(&room, &new).await;
    newest.merge(&[set("k", "3")]).await;
    newest.destroy().await;

    let old_events = room.events(&thread).await;
    let last = old_events.last().unwrap();
    assert_eq!(last.kind, EventKind::Rotated { to: new.id });
    assert_eq!((last.sequence, last.version), (3, 2));
    assert_eq!(
        room.story(&thread).await,
        [
            r#"#1 v1 created ["k","list"]"#,
            r#"#2 v2 updated ["k"]"#,
            "#3 v2 rotated"
        ]
    );
    assert_eq!(room.story(&new).await, ["#4 v2 rotated"]);
    assert_eq!(
        room.story(&newest).await,
        [r#"#5 v3 updated ["k"]"#, "#6 v3 destroyed"]
    );
    let mut events = room.events(&thread).await;
    events.extend(room.events(&new).await);
    events.extend(room.events(&newest).await);
    assert!(events.is_sorted_by_key(|event| event.id.position));
    let archive = room.archive(&newest).await.unwrap();
    assert_eq!(archive.head.version, 3);
}

async fn a_watch_moves_to_the_new_id(room: Room) {
    let thread = living(&room).await;
    room.watch(&thread, MINUTE * 10).await;
    let new = rotate(&room, &thread).await;
    new.destroy().await;
    room.advance(thread.policy.tombstone);

    for named in [&new, &thread] {
        named.merge(&[]).await;
        named.merge(&[set("k", "1")]).await;
    }

    let story = room.story(&new).await;
    assert_eq!(story.last().unwrap(), r#"#5 v2 updated ["k"]"#);
    let story = room.story(&thread).await;
    assert_eq!(story.last().unwrap(), "#1 v1 created []");
}

async fn a_rotated_thread_expires_and_is_archived_under_its_new_id(room: Room) {
    let thread = living(&room).await;
    room.advance(thread.policy.ttl / 2);
    let new = rotate(&room, &thread).await;
    room.advance(thread.policy.ttl / 2);
    assert!(new.exists().await, "a rotation extends the lifetime");

    room.advance(thread.policy.ttl);

    assert!(!new.exists().await);
    let reaped = room.reap().await;
    // `ended` is 0 if an embedded store has already ended the thread
    assert!(reaped.ended <= 1 && reaped.lost == 0, "{reaped:?}");
    assert!(room.archive(&new).await.is_some());
    assert!(room.archive(&thread).await.is_none());
}

async fn archives_of_earlier_lives_stay_with_the_old_id(room: Room) {
    let thread = living(&room).await;
    thread.destroy().await;
    let first = room.archive(&thread).await.unwrap();
    room.advance(thread.policy.tombstone);
    thread.merge(&[set("second", "1")]).await;

    let new = rotate(&room, &thread).await;

    assert_eq!(room.archive(&thread).await.unwrap(), first);
    assert!(room.archive(&new).await.is_none());
    new.destroy().await;
    assert_eq!(room.archive(&new).await.unwrap().head.version, 1);
    let policy = ThreadPolicy::THREAD;
    let restored = room.backend.restore(&thread.id, None, &policy).await;
    assert!(restored.unwrap().is_some());
    assert_eq!(thread.value("k").await.unwrap(), "1");
}

async fn one_of_several_concurrent_rotations_succeeds(room: Room) {
    let thread = living(&room).await;
    let moves: Vec<_> = (0..16)
        .map(|_| {
            let (room, thread) = (Arc::clone(&room.store), thread.clone());
            super::room::in_parallel(async move {
                let rotate = Rotate {
                    conditions: Conditions::default(),
                    tombstone: thread.policy.tombstone,
                };
                refused(room.rotate(&thread.id, &rotate).await)
            })
        })
        .collect();

    let mut new = Vec::new();
    for moved in moves {
        match moved.await.unwrap() {
            Ok(rotated) => new.push(rotated.id),
            Err(refusal) => assert_eq!(refusal, Refusal::Destroyed),
        }
    }

    assert_eq!(new.len(), 1);
    assert!(with_id(&thread, new[0]).exists().await);
    assert!(!thread.exists().await);
}

async fn a_rotation_returns_the_exact_metadata(room: Room) {
    let thread = living(&room).await;
    thread.set_metadata(r#"{"n":1e400}"#).await.unwrap();

    let rotated = rotate_by(&room, &thread, Conditions::default()).await;

    let reported = rotated.unwrap().thread.unwrap();
    assert_eq!(reported.metadata, json(r#"{"n":1e400}"#));
}

super::over_every_store_and_confirmed!(
    a_rotation_moves_the_thread_and_leaves_nothing_under_the_old_id,
    the_old_id_refuses_every_write_for_the_tombstone_time,
    a_thread_that_does_not_exist_only_gets_a_new_id,
    an_expired_thread_does_not_move,
    scope_history_and_checkpoints_move_with_the_thread,
    a_repeated_rotation_gets_the_first_answer_under_either_id,
    idempotency_keys_move_with_the_thread,
    conditions_and_turns_apply_to_a_rotation,
    a_rotated_thread_keeps_its_position_in_owner_lists,
    a_rotation_event_has_both_ids_and_event_numbers_continue,
    a_watch_moves_to_the_new_id,
    a_rotated_thread_expires_and_is_archived_under_its_new_id,
    archives_of_earlier_lives_stay_with_the_old_id,
    one_of_several_concurrent_rotations_succeeds,
    a_rotation_returns_the_exact_metadata,
);
