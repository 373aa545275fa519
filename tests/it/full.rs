//! Tests that operations that free memory still work when the memory of Redis is full.

use std::sync::Arc;
use std::time::Duration;

use redis::Connection;
use reqwest::Method;
use threadkeep_domain::{Fingerprint, Position, RateName, Retention};
use threadkeep_store::{Clock, Counted, EntryTerms, Holding, LedgerChange, Reading};

use crate::conformance::room::{redis_on, set};
use crate::conformance::scope_room::{self, set_for};
use crate::conformance::space::{key as key_of, seconds, text};
use crate::support::client::{OwnThread, new_id};
use crate::support::redis::RedisServer;
use crate::support::server::{API_SECRET, Backend, RELAY_SECRET, Server};

const SECOND: Duration = Duration::from_secs(1);
const CONSUMER: &str = "app.slow";

fn fill(connection: &mut Connection) {
    let mut full = redis::cmd("CONFIG");
    full.arg("SET").arg("maxmemory").arg(1);
    full.exec(connection).unwrap();
}

#[tokio::test]
async fn expired_threads_are_ended_and_expired_data_is_deleted() {
    let redis = Arc::new(RedisServer::start());
    let room = redis_on(Arc::clone(&redis), Clock::system()).await;
    let room = room
        .keeping(Retention {
            archive: Duration::ZERO,
            log: 10_000 * SECOND,
            ..Retention::DEFAULT
        })
        .await;
    let expired = room.subject();
    let used = room.subject();
    for thread in [&expired, &used] {
        thread.merge(&[set("k", "1")]).await;
    }
    let start = vec![Position::default(); usize::from(room.backend.buckets())];
    room.backend.open_ledger(CONSUMER, &start).await.unwrap();
    room.advance(used.policy.ttl - 60 * SECOND);
    assert!(used.exists().await);
    room.advance(70 * SECOND);
    fill(&mut redis.connection());
    let refused = room.store.write(&used.id, &used.blank()).await;
    assert!(refused.is_err());

    let held = room.backend.hold(CONSUMER, 1, "me", 100_000 * SECOND).await;
    assert_eq!(held.unwrap(), [0]);
    let reaped = room.reap().await;

    assert_eq!((reaped.ended, reaped.moved), (1, 1));
    let end = room.events(&expired).await.pop().unwrap();
    let holding = Holding {
        consumer: CONSUMER,
        slot: 0,
        holder: "me",
        erasures: 0,
    };
    let change = LedgerChange {
        cursors: vec![(room.bucket(&expired), end.id.position)],
        ..LedgerChange::default()
    };
    assert!(room.backend.commit(&holding, &change).await.unwrap());
    room.advance(10_000 * SECOND);
    room.tidy().await;
    assert!(room.events(&expired).await.is_empty());
    let last = room.backend.get_final(&expired.id, end.life).await;
    assert_eq!(last.unwrap(), None);
}

#[tokio::test]
async fn entries_can_be_read_and_deleted_but_not_put() {
    let redis = Arc::new(RedisServer::start());
    let room = redis_on(Arc::clone(&redis), Clock::system()).await;
    let space = room.space("n");
    for key in ["kept", "deleted", "ended"] {
        let lifetime = seconds(if key == "ended" { 10 } else { 100 });
        space.put_for(key, "x", lifetime).await;
    }
    room.advance(60 * SECOND);
    fill(&mut redis.connection());

    for key in ["new", "kept"] {
        let (key, entry) = (key_of(key), text("y"));
        let terms = EntryTerms::default();
        let put = room
            .backend
            .put_entry(&space.namespace, &key, &entry, terms);
        assert!(put.await.is_err());
    }
    let used = space.read("kept", Reading::Use).await.unwrap();
    assert_eq!((used.uses, &used.body[..]), (1, &b"x"[..]));
    assert!(space.delete("deleted").await);
    assert_eq!(space.keys("", 10).await, ["kept"]);
    assert_eq!(space.counts().await, (1, 1));
    assert_eq!(space.destroy().await, 1);
}

#[tokio::test]
async fn a_scope_with_a_changed_key_lifetime_can_be_read_and_ended() {
    let redis = Arc::new(RedisServer::start());
    let room = redis_on(Arc::clone(&redis), Clock::system()).await;
    let scope = room.tool();
    scope.run(&[set_for("k", "1", 10 * SECOND)]).await;
    scope.run(&[scope_room::set("k", "2")]).await;
    room.advance(20 * SECOND);
    fill(&mut redis.connection());

    assert_eq!(scope.value("k").await.unwrap(), "2");
    assert!(scope.end().await);
}

/// Rate limits must work while Redis is full: destroying a thread counts towards a limit, and must succeed.
#[tokio::test]
async fn rate_limits_still_count() {
    let redis = Arc::new(RedisServer::start());
    let room = redis_on(Arc::clone(&redis), Clock::system()).await;
    fill(&mut redis.connection());
    let digest = Fingerprint([1; 16]);
    let (address, rates) = (
        Counted::Address(&digest),
        [(RateName::Writes, "2/1d".parse().unwrap())],
    );

    for _ in 0..2 {
        let taken = room.backend.take_rates(address, &rates).await;
        assert_eq!(taken.unwrap(), None);
    }

    let refused = room.backend.take_rates(address, &rates).await;
    assert!(refused.unwrap().is_some());
    room.backend.give_back_rates(address, &rates).await.unwrap();
}

async fn assert_full_in_every_protocol(server: &Server, living: &OwnThread) {
    for request in [
        living.put("state/k", "1"),
        living.post("state/k/push", "1"),
        living.merge(r#"[{"op":"set","key":"k","value":1}]"#),
        living.merge(r#"[{"op":"append","value":1}]"#),
        living.patch("", r#"{"metadata":{"a":1}}"#),
        living.post("history", r#"{"id":"a","value":1}"#),
        living.post_with_thread_id(
            "/v1/scopes/keys/increment",
            r#"{"scope":"thread:current","key":"a"}"#,
        ),
    ] {
        let answer = request.send().await;
        let problem = answer.problem(503, "store_full");
        assert_eq!(answer.header("retry-after"), Some("1"), "{problem}");
    }
    let client = server.client();
    let entry = client.request(Method::PUT, "/v1/kv/n/k").bearer(API_SECRET);
    entry.json("1").refused(503, "store_full").await;
    let relay = client.post("/api/v1/sessions");
    let relay = relay.header("x-modelrelay-api-key", RELAY_SECRET);
    let answer = relay.json("{}").send().await;
    assert_eq!(answer.status, 503);
    assert_eq!(answer.header("retry-after"), Some("1"));
    assert_eq!(answer.json()["message"], "the store is full");
    let entry = client.request(Method::PUT, "/kv/n/k").bearer(API_SECRET);
    let answer = entry.json("1").send().await;
    assert_eq!(answer.status, 503);
    assert_eq!(answer.json()["error"], "the store is full");
    let call = client.post("/mcp").bearer(API_SECRET);
    let call = call
        .header("x-session-id", new_id())
        .header("accept", "application/json, text/event-stream");
    let message = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"kv_write","arguments":{"key":"k","value":"v"}}}"#;
    let error = call.json(message).ok().await.json()["error"].take();
    assert_eq!(error["data"]["code"], "store_full", "{error}");
    assert_eq!(error["message"], "the store is full");
}

async fn assert_items_are_removed(thread: &OwnThread) {
    let taken = thread.post("history/take", "{}").ok().await.json();
    assert_eq!(taken["items"][0]["id"], "z");
    let removed = thread.delete("history/x").ok().await.json();
    assert_eq!(removed["deleted"], true);
    let cleared = thread.delete("history").ok().await.json();
    assert_eq!(cleared["deleted"], true);
    let page = thread.get("history").ok().await.json();
    assert_eq!(
        (&page["first_seq"], &page["size_bytes"]),
        (&4.into(), &0.into())
    );
}

const THREE_ITEMS: &str =
    r#"{"items":[{"id":"x","value":1},{"id":"y","value":2},{"id":"z","value":3}]}"#;

#[tokio::test]
async fn every_protocol_reports_a_full_redis() {
    let redis = RedisServer::start();
    let server = Server::builder(Backend::Memory).redis(&redis.url()).start();
    let thread = server.client().thread();
    thread.put("state/k", "[1]").ok().await;
    thread.post("history", THREE_ITEMS).ok().await;
    fill(&mut redis.connection());

    assert_full_in_every_protocol(&server, &thread).await;
    assert_items_are_removed(&thread).await;

    assert_eq!(thread.state().await, r#"{"k":[1]}"#);
    thread.delete("").ok().await;
}

#[tokio::test]
async fn every_protocol_reports_a_full_embedded_store() {
    let server = Server::builder(Backend::Memory)
        .set("THREADKEEP_EMBEDDED_STORE_MAX_BYTES", 500_000)
        .start();
    let thread = server.client().thread();
    thread.post("history", THREE_ITEMS).ok().await;
    let large = format!(r#"["{}"]"#, "x".repeat(900_000));
    thread.put("state/k", &large).ok().await;

    assert_full_in_every_protocol(&server, &thread).await;
    assert_items_are_removed(&thread).await;

    assert_eq!(thread.get("state/k").ok().await.text(), large);
    thread.delete("").ok().await;
}

/// A store drops old items before it writes a large item. If Redis rejects the large item, the old items must remain.
#[tokio::test]
async fn a_rejected_append_drops_no_items() {
    let redis = RedisServer::start();
    let server = Server::builder(Backend::Memory)
        .redis(&redis.url())
        .set("THREADKEEP_HISTORY_DROP_OLDEST", true)
        .set("THREADKEEP_HISTORY_MAX_BYTES", 200_000)
        .start();
    let thread = server.client().thread();
    for part in 0..3 {
        let items = (0..800).map(|item| format!(r#"{{"id":"{part}-{item}","value":1}}"#));
        let items = items.collect::<Vec<_>>().join(",");
        let body = format!(r#"{{"items":[{items}]}}"#);
        thread.post("history", &body).ok().await;
    }
    let before = thread.get("history").ok().await.text();
    redis.call(&["CONFIG", "SET", "maxmemory", "1"]);

    let large = format!(r#"{{"id":"large","value":"{}"}}"#, "x".repeat(190_000));
    let refused = thread.post("history", &large).send().await;

    refused.problem(503, "store_full");
    let append = format!(r#"[{{"op":"append","value":"{}"}}]"#, "x".repeat(190_000));
    let refused = thread.merge(&append).send().await;
    refused.problem(503, "store_full");
    assert_eq!(thread.get("history").ok().await.text(), before);
}
