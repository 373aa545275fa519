use std::collections::BTreeSet;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use threadkeep_domain::scope::{ScopeId, ScopeWrite};
use threadkeep_domain::{
    Access, Conditions, MetadataChange, Owner, OwnerChange, Refusal, Release, Slice, TakeTurn,
    ThreadId, ThreadPolicy, TurnToken, Write, Written,
};
use threadkeep_service::{ServiceError, WriteOptions};
use threadkeep_store::{
    Destroy, HistoryFrom, OwnedPosition, OwnerUsage, ReservationToken, ScopeEnd, ScopeParts,
    ThreadOrder, WriteError,
};

use super::room::{Room, Subject, increment, json, key, once, push, set};
use super::{effects, scope_room};

const SECOND: Duration = Duration::from_secs(1);
/// Tolerance for an expiry. Redis computes the expiry from two clock readings, with a possible pause in between. A use
/// would move the expiry by ten minutes.
const TOLERANCE_MS: u64 = 60_000;

pub(super) fn owner(text: &str) -> Owner {
    Owner::new(text).unwrap()
}

fn of(text: &str) -> Access {
    Access::Of(owner(text).tag())
}

fn refused<T>(answer: Result<T, WriteError>) -> Option<Refusal> {
    match answer {
        Ok(_) => None,
        Err(WriteError::Refused(refusal)) => Some(refusal),
        Err(WriteError::Store(error)) => panic!("{error}"),
    }
}

pub(super) async fn bind(thread: &Subject, text: &str) -> Result<Written, Refusal> {
    let owner = owner(text);
    let operations = [set("k", "1")];
    let write = Write {
        operations: &operations,
        owner: OwnerChange::Bind(&owner),
        describe: true,
        conditions: Conditions {
            access: Access::Of(owner.tag()),
            ..Conditions::default()
        },
        ..thread.blank()
    };
    thread.write(&write).await
}

async fn change(thread: &Subject, change: OwnerChange<'_>) -> Written {
    let write = Write {
        owner: change,
        ..thread.blank()
    };
    thread.write(&write).await.unwrap()
}

pub(super) async fn owned(room: &Room, text: &str) -> Subject {
    let thread = room.subject();
    bind(&thread, text).await.unwrap();
    thread
}

pub(super) async fn owner_of(thread: &Subject) -> Option<String> {
    let owner = thread.thread().await?.owner?;
    Some(owner.as_str().to_owned())
}

/// Lists all threads of an owner in pages of `limit`, and asserts that no page is larger.
pub(super) async fn list(
    room: &Room,
    text: &str,
    order: ThreadOrder,
    limit: usize,
) -> Vec<ThreadId> {
    let mut ids = Vec::new();
    let mut after: Option<OwnedPosition> = None;
    loop {
        let page = room
            .backend
            .list_owned(owner(text).tag(), order, after.as_ref(), limit);
        let page = page.await.unwrap();
        assert!(page.threads.len() <= limit, "{}", page.threads.len());
        ids.extend(page.threads.iter().map(|((_, id), _)| *id));
        after = page.next;
        if after.is_none() {
            return ids;
        }
    }
}

pub(super) async fn updated(room: &Room, text: &str) -> Vec<ThreadId> {
    list(room, text, ThreadOrder::Updated, 10).await
}

pub(super) async fn all_threads(room: &Room, limit: usize) -> Vec<ThreadId> {
    let mut ids = Vec::new();
    let mut after = None;
    loop {
        let page = room.backend.list_threads(after.as_ref(), limit);
        let page = page.await.unwrap();
        assert!(page.threads.len() <= limit, "{}", page.threads.len());
        ids.extend(page.threads.iter().map(|(id, _)| *id));
        after = page.next;
        if after.is_none() {
            return ids;
        }
    }
}

pub(super) async fn measure(room: &Room, text: &str) -> OwnerUsage {
    let owned = room.backend.measure_owned(owner(text).tag());
    owned.await.unwrap()
}

async fn refusals(room: &Room, thread: &Subject, access: Access) -> Vec<Option<Refusal>> {
    let (id, store) = (&thread.id, &thread.store);
    let mut answers = vec![
        refused(store.get_state(id, access.into()).await),
        refused(store.get_keys(id, access.into()).await),
        refused(store.get_stamp(id, access.into()).await),
        refused(store.find_key(id, access.into(), &key("k")).await),
        refused(store.get_value(id, access.into(), &key("k"), None).await),
        refused(
            store
                .get_values(id, access.into(), &[key("k"), key("list")])
                .await,
        ),
        refused(store.get_thread(id, access.into()).await),
        refused(room.backend.get_turn(id, access).await),
    ];
    let slice = Slice::Tail(1);
    let part = store
        .get_value(id, access.into(), &key("list"), Some(slice))
        .await;
    answers.push(refused(part));

    let metadata = MetadataChange {
        new: json("{}"),
        old: None,
    };
    let ann = owner("ann");
    let owner_change = match access {
        Access::Of(_) => OwnerChange::Bind(&ann),
        _ => OwnerChange::None,
    };
    let blank = || Write {
        conditions: Conditions {
            access,
            ..Conditions::default()
        },
        ..thread.blank()
    };
    for operations in [
        &[set("k", "2")][..],
        &[push("list", "1")],
        &[increment("k", 1)],
        &[set("k", "2"), push("list", "1")],
        &[],
    ] {
        for idempotency in [None, Some(once("a", "b"))] {
            let write = Write {
                operations,
                conditions: Conditions {
                    access,
                    idempotency,
                    ..Conditions::default()
                },
                ..blank()
            };
            answers.push(thread.write(&write).await.err());
        }
    }
    for write in [
        Write {
            metadata: Some(&metadata),
            ttl: Some(SECOND),
            ..blank()
        },
        Write {
            owner: owner_change,
            ..blank()
        },
    ] {
        answers.push(thread.write(&write).await.err());
    }
    let destroy = Destroy {
        conditions: Conditions {
            access,
            ..Conditions::default()
        },
        ..thread.end()
    };
    answers.push(thread.destroy_by(&destroy).await.err());

    let token = TurnToken::random();
    let take = TakeTurn {
        token,
        ttl: SECOND,
        exclusive: true,
        waits: false,
        idempotency: None,
    };
    answers.push(refused(room.backend.take_turn(id, access, &take).await));
    let renewed = room.backend.renew_turn(id, access, token, SECOND).await;
    answers.push(refused(renewed));
    answers.push(refused(
        room.backend
            .end_turn(id, access, token, Release::Complete)
            .await,
    ));

    let scope = room.scope_of(thread);
    let operations = [scope_room::set("k", "1")];
    let items = [scope_room::item("1", "1")];
    for idempotency in [None, Some(once("a", "b"))] {
        let write = ScopeWrite {
            operations: &operations,
            history: &items,
            conditions: Conditions {
                access,
                idempotency,
                ..Conditions::default()
            },
            ..scope.blank()
        };
        answers.push(refused(scope.scopes.write_scope(&scope.id, &write).await));
    }
    answers.push(refused(read_scope(&scope, access, true).await));
    answers.push(refused(read_scope(&scope, access, false).await));
    let history = scope
        .scopes
        .read_history(&scope.id, access.into(), HistoryFrom::After(0), 10);
    answers.push(refused(history.await));
    let end = ScopeEnd::new(access);
    let ended = scope.scopes.end_scope(&scope.id, &end).await;
    answers.push(refused(ended));
    answers.extend(effects::refusals(room, thread, access).await);
    answers
}

async fn read_scope(
    scope: &scope_room::Scope,
    access: Access,
    is_use: bool,
) -> Result<Option<threadkeep_store::ScopeView>, WriteError> {
    let parts = ScopeParts {
        access,
        touch: is_use,
        ..ScopeParts::default()
    };
    scope.scopes.read_scope(&scope.id, &parts).await
}

async fn the_first_write_of_an_owner_binds_a_thread(room: Room) {
    let thread = room.subject();
    let written = bind(&thread, "ann").await.unwrap();
    let described = written.thread.unwrap().owner;
    assert_eq!(described, Some(owner("ann")));
    assert_eq!(owner_of(&thread).await.as_deref(), Some("ann"));

    let older = room.subject();
    older.merge(&[set("list", "[]")]).await;
    assert_eq!(owner_of(&older).await, None);
    bind(&older, "ann").await.unwrap();
    assert_eq!(owner_of(&older).await.as_deref(), Some("ann"));
    assert_eq!(older.state().await.as_deref(), Some(r#"{"k":1,"list":[]}"#));
    bind(&older, "ann").await.unwrap();
    assert_eq!(bind(&older, "bob").await, Err(Refusal::NotTheOwner));
    assert_eq!(owner_of(&older).await.as_deref(), Some("ann"));
}

async fn one_of_several_concurrent_owners_gets_the_thread(room: Room) {
    for _ in 0..20 {
        let thread = room.subject();
        let writes = ["ann", "bob", "cid"].map(|text| {
            let thread = thread.clone();
            super::room::in_parallel(async move { bind(&thread, text).await.is_ok() })
        });
        let mut winners = 0;
        for write in writes {
            winners += u32::from(write.await.unwrap());
        }
        assert_eq!(winners, 1);
        let winner = owner_of(&thread).await.unwrap();
        for text in ["ann", "bob", "cid"] {
            let listed = updated(&room, text).await.contains(&thread.id);
            assert_eq!(listed, winner == text, "{text}");
        }
    }
}

async fn every_call_refuses_other_owners_and_changes_nothing(room: Room) {
    let thread = owned(&room, "ann").await;
    thread.merge(&[set("list", "[1,2]")]).await;
    let scope = room.scope_of(&thread);
    scope.run(&[scope_room::set("k", "7")]).await;
    let view_before = read_scope(&scope, Access::All, false)
        .await
        .unwrap()
        .unwrap();
    room.advance(600 * SECOND);
    let before = room.backend.list_threads(None, 10).await.unwrap().threads;
    for (access, refusal) in [
        (of("bob"), Refusal::NotTheOwner),
        (Access::Unowned, Refusal::OwnerRequired),
    ] {
        for (call, answer) in refusals(&room, &thread, access)
            .await
            .into_iter()
            .enumerate()
        {
            assert_eq!(answer, Some(refusal), "call {call}");
        }
    }
    let after = room.backend.list_threads(None, 10).await.unwrap().threads;
    let [(_, before), (_, after)] = [&before[0], &after[0]];
    assert_eq!((before.stamp, &before.owner), (after.stamp, &after.owner));
    // rejected calls do not extend the lifetime
    assert!(
        after.expires_ms <= before.expires_ms + TOLERANCE_MS,
        "{after:?} {before:?}"
    );
    assert_eq!(
        thread.state().await.as_deref(),
        Some(r#"{"k":1,"list":[1,2]}"#)
    );
    let view_after = read_scope(&scope, Access::All, false)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (view_before.stamp, view_before.kv_bytes),
        (view_after.stamp, view_after.kv_bytes)
    );
}

async fn a_peek_does_not_extend_a_lifetime(room: Room) {
    let thread = owned(&room, "ann").await;
    let before = thread.thread().await.unwrap();
    let peek = async || room.backend.peek_thread(&thread.id).await.unwrap();
    room.advance(600 * SECOND);

    let peeked = peek().await.unwrap();
    assert_eq!((peeked.stamp, &peeked.owner), (before.stamp, &before.owner));
    assert!(
        peeked.expires_ms <= before.expires_ms + TOLERANCE_MS,
        "{peeked:?} {before:?}"
    );
    room.advance(ThreadPolicy::THREAD.ttl - 600 * SECOND);
    assert_eq!(peek().await, None);
    let none = room.backend.peek_thread(&room.subject().id).await;
    assert_eq!(none.unwrap(), None);
}

async fn threads_are_counted_with_and_without_owners(room: Room) {
    let count = async || room.backend.count_threads().await.unwrap();
    assert_eq!(count().await, 0);
    let mut threads = Vec::new();
    for number in 0..20 {
        let thread = match number % 2 {
            0 => room.subject(),
            _ => owned(&room, "ann").await,
        };
        thread.merge(&[set("k", "1")]).await;
        threads.push(thread);
    }
    assert_eq!(count().await, 20);

    for thread in &threads[..5] {
        thread.destroy().await;
    }
    assert_eq!(count().await, 15);
    // reads, rejected writes and writes to a tombstone create no thread
    room.subject().state().await;
    assert_eq!(count().await, 15);
    room.advance(2 * ThreadPolicy::THREAD.ttl);
    while room.reap().await.ended > 0 {}
    assert_eq!(count().await, 0);
}

async fn the_owner_and_a_back_end_are_accepted(room: Room) {
    for access in [Access::All, of("ann")] {
        let thread = owned(&room, "ann").await;
        thread.merge(&[set("list", "[1,2]")]).await;
        for (call, answer) in refusals(&room, &thread, access)
            .await
            .into_iter()
            .enumerate()
        {
            let is_accepted =
                !matches!(answer, Some(Refusal::NotTheOwner | Refusal::OwnerRequired));
            assert!(is_accepted, "call {call}: {answer:?}");
        }
        assert!(
            !thread.exists().await,
            "the thread still exists after the end"
        );
    }
}

async fn threads_without_an_owner_accept_every_caller(room: Room) {
    for access in [Access::All, Access::Unowned] {
        let thread = room.subject();
        thread.merge(&[set("k", "1"), set("list", "[1]")]).await;
        for (call, answer) in refusals(&room, &thread, access)
            .await
            .into_iter()
            .enumerate()
        {
            let is_accepted =
                !matches!(answer, Some(Refusal::NotTheOwner | Refusal::OwnerRequired));
            assert!(is_accepted, "call {call}: {answer:?}");
        }
    }
}

async fn a_turn_or_a_scope_binds_no_thread(room: Room) {
    let thread = room.subject();
    thread.merge(&[set("k", "1")]).await;
    let take = TakeTurn {
        token: TurnToken::random(),
        ttl: SECOND,
        exclusive: false,
        waits: false,
        idempotency: None,
    };
    let taken = room.backend.take_turn(&thread.id, of("ann"), &take).await;
    assert_eq!(refused(taken), Some(Refusal::NoThread));
    let scope = room.scope_of(&thread);
    let operations = [scope_room::set("k", "1")];
    let write = ScopeWrite {
        operations: &operations,
        conditions: Conditions {
            access: of("ann"),
            ..Conditions::default()
        },
        ..scope.blank()
    };
    let written = scope.scopes.write_scope(&scope.id, &write).await;
    assert_eq!(refused(written), Some(Refusal::NoThread));
    bind(&thread, "ann").await.unwrap();
    assert!(
        room.backend
            .take_turn(&thread.id, of("ann"), &take)
            .await
            .is_ok()
    );
    assert!(scope.scopes.write_scope(&scope.id, &write).await.is_ok());
    assert_eq!(owner_of(&thread).await.as_deref(), Some("ann"));
}

async fn a_replay_is_refused_to_another_owner(room: Room) {
    let thread = room.subject();
    let ann = owner("ann");
    let operations = [set("k", "1")];
    let write = Write {
        operations: &operations,
        owner: OwnerChange::Bind(&ann),
        conditions: Conditions {
            access: Access::Of(ann.tag()),
            idempotency: Some(once("a", "b")),
            ..Conditions::default()
        },
        ..thread.blank()
    };
    assert!(!thread.write(&write).await.unwrap().replayed);
    assert!(thread.write(&write).await.unwrap().replayed);
    let bob = owner("bob");
    let write = Write {
        owner: OwnerChange::Bind(&bob),
        conditions: Conditions {
            access: Access::Of(bob.tag()),
            ..write.conditions
        },
        ..write
    };
    assert_eq!(thread.write(&write).await, Err(Refusal::NotTheOwner));
}

async fn a_new_owner_gets_the_thread_and_the_old_one_loses_it(room: Room) {
    let thread = owned(&room, "ann").await;
    let (ann, bob) = (owner("ann"), owner("bob"));
    let version = thread.stamp().await.version;
    let written = change(&thread, OwnerChange::Set(&bob)).await;
    assert_eq!(written.stamp.version, version + 1);
    assert_eq!(updated(&room, "ann").await, []);
    assert_eq!(updated(&room, "bob").await, [thread.id]);
    assert_eq!(bind(&thread, "ann").await, Err(Refusal::NotTheOwner));
    bind(&thread, "bob").await.unwrap();

    change(&thread, OwnerChange::Clear).await;
    assert_eq!(owner_of(&thread).await, None);
    assert_eq!(updated(&room, "bob").await, []);
    for order in [ThreadOrder::Updated, ThreadOrder::Created] {
        change(&thread, OwnerChange::Set(&ann)).await;
        assert_eq!(list(&room, "ann", order, 1).await, [thread.id]);
        assert_eq!(list(&room, "bob", order, 1).await, []);
    }
    let all = all_threads(&room, 10).await;
    assert_eq!(all, [thread.id]);
}

async fn an_exclusive_turn_and_an_owner_are_both_enforced(room: Room) {
    let thread = owned(&room, "ann").await;
    let token = TurnToken::random();
    let take = TakeTurn {
        token,
        ttl: 30 * SECOND,
        exclusive: true,
        waits: false,
        idempotency: None,
    };
    let taken = room.backend.take_turn(&thread.id, of("ann"), &take).await;
    taken.unwrap();
    assert!(matches!(
        bind(&thread, "ann").await,
        Err(Refusal::TurnTaken { .. })
    ));
    assert_eq!(bind(&thread, "bob").await, Err(Refusal::NotTheOwner));
    let bob = owner("bob");
    let write = Write {
        owner: OwnerChange::Set(&bob),
        conditions: Conditions {
            turn: Some(token),
            ..Conditions::default()
        },
        ..thread.blank()
    };
    thread.write(&write).await.unwrap();
    assert!(matches!(
        bind(&thread, "bob").await,
        Err(Refusal::TurnTaken { .. })
    ));
    let ended = room
        .backend
        .end_turn(&thread.id, of("bob"), token, Release::Complete)
        .await;
    ended.unwrap();
    bind(&thread, "bob").await.unwrap();
    assert_eq!(bind(&thread, "ann").await, Err(Refusal::NotTheOwner));
}

async fn a_restored_thread_keeps_its_owner(room: Room) {
    let thread = owned(&room, "ann").await;
    thread.destroy().await;
    let restored = room.backend.restore(&thread.id, None, &thread.policy);
    assert_eq!(restored.await.unwrap().unwrap().owner, Some(owner("ann")));
    assert_eq!(updated(&room, "ann").await, [thread.id]);
    assert_eq!(
        refused(thread.store.get_state(&thread.id, of("bob").into()).await),
        Some(Refusal::NotTheOwner)
    );
}

async fn a_new_life_begins_without_an_owner(room: Room) {
    let thread = owned(&room, "ann").await;
    room.advance(3_700 * SECOND);
    thread.merge(&[set("k", "2")]).await;
    assert_eq!(owner_of(&thread).await, None);
    assert_eq!(updated(&room, "ann").await, []);
    room.advance(3_700 * SECOND);
    bind(&thread, "bob").await.unwrap();
    assert_eq!(updated(&room, "bob").await, [thread.id]);
    assert_eq!(updated(&room, "ann").await, []);
}

async fn a_write_without_a_reservation_gives_no_thread_to_an_owner(room: Room) {
    let ann = owner("ann");
    let operations = [set("k", "2")];
    for change in [OwnerChange::Bind(&ann), OwnerChange::Set(&ann)] {
        let thread = room.subject();
        let without_reservation = Write {
            operations: &operations,
            owner: change,
            has_reservation: false,
            ..thread.blank()
        };
        assert_eq!(
            thread.write(&without_reservation).await,
            Err(Refusal::NoReservation)
        );
        assert!(!thread.exists().await);
        thread.merge(&[set("k", "1")]).await;
        assert_eq!(
            thread.write(&without_reservation).await,
            Err(Refusal::NoReservation)
        );
        assert_eq!(thread.state().await.unwrap(), r#"{"k":1}"#);

        let with_reservation = Write {
            has_reservation: true,
            ..without_reservation
        };
        thread.write(&with_reservation).await.unwrap();
        thread.write(&without_reservation).await.unwrap();

        assert_eq!(thread.state().await.unwrap(), r#"{"k":2}"#);
    }
    let of_bob = owned(&room, "bob").await;
    let bound = Write {
        owner: OwnerChange::Bind(&ann),
        has_reservation: false,
        ..of_bob.blank()
    };
    of_bob.write(&bound).await.unwrap();
    assert_eq!(owner_of(&of_bob).await.as_deref(), Some("bob"));
}

async fn reservations_count_until_released_or_expired(room: Room) {
    let (ann, bob) = (owner("ann").tag(), owner("bob").tag());
    let reserve = async |owner, token: u8| {
        let reservation = ReservationToken([token; 16]);
        let reserved = room.backend.reserve_thread(owner, reservation, 60 * SECOND);
        reserved.await.unwrap()
    };
    assert_eq!(reserve(ann, 1).await, 0);
    assert_eq!(reserve(bob, 2).await, 0);
    assert_eq!(reserve(ann, 3).await, 1);
    room.advance(30 * SECOND);
    assert_eq!(reserve(ann, 4).await, 2);
    let release = room
        .backend
        .release_reservation(ann, ReservationToken([1; 16]));
    release.await.unwrap();
    assert_eq!(reserve(ann, 5).await, 2);
    room.advance(31 * SECOND);
    assert_eq!(reserve(ann, 6).await, 2);
    room.advance(61 * SECOND);
    assert_eq!(reserve(ann, 7).await, 0);
}

async fn concurrent_writers_cannot_exceed_the_limit_of_an_owner(room: Room) {
    const LIMIT: u64 = 5;
    let (threads, scopes) = room.services();
    let threads = threads
        .limit_owners(Arc::clone(&room.backend) as _, NonZeroU64::new(LIMIT))
        .on_behalf_of(Some(owner("ann")));
    let scopes = scopes.with_threads(threads.clone());
    let write = async |number: u64| {
        let id = ThreadId::random();
        let options = WriteOptions::default();
        let written = match number % 2 {
            0 => threads
                .merge(&id, &[set("k", "1")], options)
                .await
                .map(drop),
            _ => {
                let set = scope_room::set("k", "1");
                let scope = ScopeId::Thread(id);
                scopes.write(&scope, &[set], options).await.map(drop)
            }
        };
        match written {
            Ok(()) => Some(id),
            Err(ServiceError::Refused(Refusal::TooManyThreads {
                limit_threads: LIMIT,
            })) => None,
            Err(error) => panic!("{error:?}"),
        }
    };

    let made: Vec<_> = join_all((0..40).map(write)).await;
    let made: BTreeSet<_> = made.into_iter().flatten().collect();

    assert_eq!(made.len() as u64, LIMIT);
    assert_eq!(
        updated(&room, "ann")
            .await
            .into_iter()
            .collect::<BTreeSet<_>>(),
        made
    );
    let (first, options) = (made.first().unwrap(), WriteOptions::default());
    threads
        .merge(first, &[set("k", "2")], options)
        .await
        .unwrap();
    assert_eq!(write(0).await, None);
    threads.destroy(first, options).await.unwrap();
    assert!(write(0).await.is_some());
    assert_eq!(write(1).await, None);
    // an expired thread does not count, even before a background task ends it
    room.advance(3_601 * SECOND);
    assert!(write(1).await.is_some());
}

super::over_every_store! {
    a_write_without_a_reservation_gives_no_thread_to_an_owner,
    reservations_count_until_released_or_expired,
    concurrent_writers_cannot_exceed_the_limit_of_an_owner,
    the_first_write_of_an_owner_binds_a_thread,
    one_of_several_concurrent_owners_gets_the_thread,
    every_call_refuses_other_owners_and_changes_nothing,
    a_peek_does_not_extend_a_lifetime,
    threads_are_counted_with_and_without_owners,
    the_owner_and_a_back_end_are_accepted,
    threads_without_an_owner_accept_every_caller,
    a_turn_or_a_scope_binds_no_thread,
    a_replay_is_refused_to_another_owner,
    a_new_owner_gets_the_thread_and_the_old_one_loses_it,
    an_exclusive_turn_and_an_owner_are_both_enforced,
    a_restored_thread_keeps_its_owner,
    a_new_life_begins_without_an_owner,
}
