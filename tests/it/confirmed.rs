//! Tests confirmed writes: no write is answered before the replicas have all data that the answer reports, including
//! data stored by an earlier write or through a different connection.

use std::sync::Arc;
use std::time::{Duration, Instant};
use threadkeep_domain::{Access, Conditions};

use futures_util::future::join_all;
use threadkeep_store::{Clock, Listing, ScopeEnd};

use crate::conformance::room::{
    Room, Subject, confirmed_on, confirmed_within, once, redis_on, set,
};
use crate::support::proxy::Mode;
use crate::support::redis::RedisServer;
use crate::support::replicated::Replicated;
use crate::support::until;

/// Runs writes that change nothing, such as replays. Calls `check` before the first write and after each write.
async fn run_ineffective_writes(room: &Room, thread: &Subject, check: impl Fn(&str)) {
    let written = once("a", "request");
    let end = threadkeep_store::Destroy {
        conditions: Conditions {
            idempotency: Some(once("b", "request")),
            ..Conditions::default()
        },
        ..thread.end()
    };
    let ended = Subject {
        id: room.subject().id,
        ..thread.clone()
    };
    let (space, absent) = (room.space("space"), room.space("nothing"));
    let scope = room.tool();
    let listing = Listing {
        name: "made",
        owner: None,
    };
    let members = ["a".to_owned()];
    thread.merge_once(written, &[set("k", "1")]).await.unwrap();
    ended.merge(&[set("k", "1")]).await;
    ended.destroy_by(&end).await.unwrap();
    space.set_default(None).await;
    room.backend.list_remove("made", &members).await.unwrap();
    room.backend.list_page(&listing, 0, 1).await.unwrap();

    check("no write yet");
    let replay = thread.merge_once(written, &[set("k", "1")]).await.unwrap();
    assert!(replay.replayed);
    check("a replayed write");
    assert!(ended.destroy_by(&end).await.unwrap().replayed);
    check("a replayed destroy");
    assert!(!room.subject().destroy().await.existed);
    check("the destroy of a missing thread");
    let ended = room
        .backend
        .end_scope(&scope.id, &ScopeEnd::new(Access::All))
        .await;
    assert!(!ended.unwrap().answer);
    check("the end of a missing scope");
    assert!(!space.delete("no such key").await);
    check("the deletion of a missing entry");
    let opened = room.backend.open_namespace(&space.namespace).await;
    opened.unwrap();
    check("the opening of an existing namespace");
    assert_eq!(absent.destroy().await, 0);
    check("the deletion of a missing namespace");
    room.backend.list_remove("made", &members).await.unwrap();
    check("a removal from a missing list");
    assert!(!room.backend.delete_record("kind", "a").await.unwrap());
    check("the deletion of a missing record");
}

#[tokio::test]
async fn an_ineffective_write_replicates_a_command_that_confirms_it() {
    let servers = Arc::new(Replicated::start());
    let room = confirmed_on(Arc::clone(&servers)).await;
    let thread = room.subject();
    let before = std::cell::Cell::new(0);

    run_ineffective_writes(&room, &thread, |step| {
        let replicated = servers.told();
        assert!(replicated > before.replace(replicated), "{step}");
    })
    .await;

    assert_eq!(thread.state().await.unwrap(), r#"{"k":1}"#);
}

#[tokio::test]
async fn an_ineffective_write_changes_nothing_if_confirmation_is_off() {
    let redis = Arc::new(RedisServer::start());
    let room = redis_on(Arc::clone(&redis), Clock::system()).await;
    let thread = room.subject();
    // count changes instead of comparing replication offsets, because Redis 6.2 sends its replicas an empty transaction
    // even for a script that changes nothing
    let changes = || {
        let info = redis.call(&["INFO", "persistence"]);
        let line = info
            .lines()
            .find(|line| line.starts_with("rdb_changes_since_last_save"));
        line.unwrap().to_owned()
    };
    let before = std::cell::RefCell::new(String::new());

    run_ineffective_writes(&room, &thread, |step| {
        let changes = changes();
        let before = before.replace(changes.clone());
        assert!(step == "no write yet" || before == changes, "{step}");
    })
    .await;
}

#[tokio::test]
async fn confirming_an_ineffective_write_leaves_no_keys() {
    let servers = Arc::new(Replicated::start());
    let room = confirmed_on(Arc::clone(&servers)).await;
    let space = room.space("space");
    let keys = || {
        let mut connection = servers.master.connection();
        let mut keys = servers.master.keys();
        keys.sort_unstable();
        let ttls = keys.iter().map(|key| {
            let ttl = redis::cmd("TTL").arg(key).query::<i64>(&mut connection);
            // cap the lifetimes, which shrink while the test runs
            ttl.unwrap().clamp(-2, 100)
        });
        let ttls: Vec<_> = ttls.collect();
        (keys, ttls)
    };
    space.set_default(None).await;
    let thread = room.subject();
    let written = once("a", "request");
    thread.merge_once(written, &[set("k", "1")]).await.unwrap();
    let before = keys();

    room.backend.open_namespace(&space.namespace).await.unwrap();
    thread.merge_once(written, &[set("k", "1")]).await.unwrap();
    assert!(!room.subject().destroy().await.existed);
    assert!(!room.backend.delete_record("kind", "a").await.unwrap());

    assert_eq!(keys(), before);
    assert!(before.1.contains(&-1) && before.1.contains(&100));
}

/// Number of writes that wait for a replica at the same time: as many as a store allows.
const BLOCKED_WRITES: usize = 15;
/// Time limit for calls. Redis ends their `WAIT`s after 210 s.
const CALL_TIMEOUT: Duration = Duration::from_secs(240);
/// Time limit for closing the connections of the abandoned calls and for one more write, even on a busy machine.
const TIME_LIMIT: Duration = Duration::from_secs(60);

#[tokio::test]
async fn abandoned_calls_do_not_delay_others() {
    let servers = Arc::new(Replicated::start());
    let room = confirmed_within(CALL_TIMEOUT, Arc::clone(&servers)).await;
    let threads: Vec<_> = (0..BLOCKED_WRITES).map(|_| room.subject()).collect();
    let last = room.subject();
    let sets = [set("k", "1")];
    let is_blocked = async |count: usize| {
        let clients = servers.master.call(&["INFO", "clients"]);
        clients.contains(&format!("blocked_clients:{count}\r\n"))
    };
    let pattern = format!("*{}*", last.id);
    let is_written = async || servers.master.call(&["KEYS", &pattern]) != "[]";
    servers.between.set(Mode::Losing);

    tokio::select! {
        _ = join_all(threads.iter().map(|thread| thread.merge(&sets))) => unreachable!(),
        () = until(|| is_blocked(BLOCKED_WRITES)) => {}
    }
    let abandoned = Instant::now();
    tokio::select! {
        _ = last.merge(&sets) => unreachable!(),
        () = async { until(is_written).await; until(|| is_blocked(1)).await } => {}
    }

    // the `WAIT`s of the abandoned calls would have lasted 210 s
    assert!(
        abandoned.elapsed() < TIME_LIMIT,
        "{:?}",
        abandoned.elapsed()
    );
}

#[tokio::test]
async fn connections_that_redis_has_closed_are_not_used_again() {
    let servers = Arc::new(Replicated::start());
    let room = confirmed_on(Arc::clone(&servers)).await;
    let thread = room.subject();
    thread.merge(&[set("k", "1")]).await;

    servers
        .master
        .call(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
    // by the time this read has opened a connection, the store has noticed that its other connections are closed
    assert_eq!(thread.value("k").await.as_deref(), Some("1"));
    let written = thread.try_merge(&[set("k", "2")]).await;

    assert!(written.is_ok(), "{written:?}");
}

#[tokio::test]
async fn a_full_redis_still_ends_threads_and_confirms_it() {
    let servers = Arc::new(Replicated::start());
    let room = confirmed_on(Arc::clone(&servers)).await;
    let thread = room.subject();
    thread.merge(&[set("k", "1")]).await;

    servers.master.call(&["CONFIG", "SET", "maxmemory", "1"]);

    assert!(room.store.write(&thread.id, &thread.blank()).await.is_err());
    assert!(thread.destroy().await.existed);
    assert!(!room.subject().destroy().await.existed);
    assert!(thread.state().await.is_none());
}
