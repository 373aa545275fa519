use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio::time::sleep;

use super::{
    OwnThread, PATIENCE, SLACK, TIMEOUT, address, builder_within, servers_waiting, servers_within,
    url, write,
};
use crate::support::client::{Client, Request};
use crate::support::metrics::sample;
use crate::support::proxy::{Mode, Proxy};
use crate::support::redis::RedisServer;
use crate::support::replicated::Replicated;
use crate::support::server::{API_SECRET, Server};
use crate::support::{unless_paused, until};

const UNCONFIRMED: [&str; 1] = ["threadkeep_store_unconfirmed_writes_total"];

fn waiting(redis: &RedisServer) -> Server {
    servers_waiting(&[redis.url()], 1).remove(0)
}

/// Starts a server with a time limit that is long enough to confirm writes on a busy machine.
fn patient(redis: &RedisServer) -> Server {
    servers_within(PATIENCE, &[redis.url()], 1).remove(0)
}

fn push(thread: &OwnThread, number: u64) -> Request {
    let push = thread.post("state/messages/push", &number.to_string());
    push.header("idempotency-key", format!("message-{number}"))
}

/// Returns one request for each kind of write, including writes that change nothing.
fn writes(thread: &OwnThread, client: &Client) -> Vec<Request> {
    let of_a_scope = |path: &str, rest: &str| {
        let body = format!(r#"{{"scope":"thread:current"{rest}}}"#);
        thread.post_with_thread_id(&format!("/v1/scopes/{path}"), &body)
    };
    let entry = |path: &str| format!("/v1/kv/space{path}");
    let by_key = |request: Request| request.bearer(API_SECRET);
    vec![
        thread.put("state/k", "[1]"),
        thread.post("state/k/push", "1"),
        thread.merge(r#"[{"op":"set","key":"a","value":1},{"op":"delete","key":"b"}]"#),
        thread.patch("", r#"{"metadata":{"a":1}}"#),
        of_a_scope("keys/set", r#","key":"a","value":"1""#),
        thread.post("history", r#"{"id":"a","value":1}"#),
        by_key(client.request(reqwest::Method::PUT, &entry("/k")).json("1")),
        by_key(client.post("/v1/threads").json("{}")),
        client.thread().delete(""),
        by_key(client.request(reqwest::Method::PUT, &entry(""))),
        by_key(client.request(reqwest::Method::DELETE, &entry(""))),
    ]
}

async fn assert_unconfirmed_in_time(requests: Vec<Request>) {
    join_all(requests.into_iter().map(async |request| {
        let start = Instant::now();
        let answer = request.send().await;
        let took = start.elapsed();
        let problem = answer.problem(503, "store_unavailable");
        assert!(took < TIMEOUT + SLACK, "{took:?}: {problem}");
        assert!(answer.header("retry-after").is_some());
    }))
    .await;
}

#[tokio::test]
async fn an_acknowledged_write_is_on_the_replica() {
    let redis = Replicated::start();
    let server = patient(&redis.master);
    let client = server.client();

    for number in 0..100 {
        let thread = client.thread();
        push(&thread, number).ok().await;
        // the replica must already have the write
        let pattern = format!("*{}*", thread.id);
        assert_ne!(redis.replica.call(&["KEYS", &pattern]), "[]");
    }
    let thread = client.thread();
    for request in writes(&thread, &client) {
        request.ok().await;
    }
    assert_eq!(sample(&client, &UNCONFIRMED).await, 0.0);
}

#[tokio::test]
async fn an_unconfirmed_write_is_confirmed_by_a_retry() {
    let redis = Replicated::start();
    let server = waiting(&redis.master);
    let client = server.client();
    let thread = client.thread();
    for number in 0..10 {
        until(async || push(&thread, number).send().await.status == 200).await;
    }

    redis.between.set(Mode::Losing);
    // retry until Redis replies before the deadline, because only then does the error mention the confirmation
    until(async || {
        let start = Instant::now();
        let problem = push(&thread, 10).refused(503, "store_unavailable").await;
        assert!(start.elapsed() < TIMEOUT + SLACK, "{:?}", start.elapsed());
        problem["detail"].as_str().unwrap().contains("confirmed")
    })
    .await;
    // the write took effect, but retries over other connections do not confirm it
    assert_unconfirmed_in_time((0..4).map(|_| push(&thread, 10)).collect()).await;
    // a retry through a different server does not confirm the write either
    let other = server.settings().start();
    let elsewhere = other.client().thread_of(&thread.id);
    assert_unconfirmed_in_time(vec![push(&elsewhere, 10)]).await;
    assert_unconfirmed_in_time(writes(&thread, &client)).await;
    until(async || {
        push(&thread, 10).refused(503, "store_unavailable").await;
        sample(&client, &UNCONFIRMED).await >= 6.0
    })
    .await;
    // a read does not wait for a replica, so it is slow only if the machine pauses
    until(async || {
        let start = Instant::now();
        let answer = thread.get("state").send().await;
        answer.status == 200 && start.elapsed() < TIMEOUT / 2
    })
    .await;
    redis.between.set(Mode::Open);
    redis.between.cut();

    redis.await_attached();
    until(async || {
        let answer = push(&elsewhere, 10).send().await;
        assert!(answer.status == 503 || answer.header("idempotency-replayed") == Some("true"));
        answer.status == 200
    })
    .await;
    let found = super::distinct_numbers(&thread, "messages").await;
    assert_eq!(found, (0..=10).collect());
    for index in 0..writes(&thread, &client).len() {
        until(async || {
            let status = writes(&thread, &client).remove(index).send().await.status;
            assert!([200, 201, 204, 503].contains(&status), "{status}");
            status != 503
        })
        .await;
    }
}

#[tokio::test]
async fn a_missing_replica_is_reported_at_startup_and_by_each_write() {
    // an eighth of this time limit is reserved for a late reply from Redis
    const TIMEOUT: Duration = Duration::from_secs(4);
    unless_paused(Duration::from_millis(200), async || {
        let redis = RedisServer::start();
        let server = builder_within(TIMEOUT, &redis.url())
            .set("THREADKEEP_WAIT_REPLICAS", 1)
            .start();
        server.await_log(|line| line.contains("wait_replicas"));
        let client = server.client();
        let thread = client.thread();

        for _ in 0..3 {
            let start = Instant::now();
            let refused = thread.put("state/k", "1");
            refused.refused(503, "store_unavailable").await;
            let took = start.elapsed();
            assert!(took < TIMEOUT + SLACK, "{took:?}");
        }
        assert_eq!(sample(&client, &UNCONFIRMED).await, 3.0);
        // all of these writes used one connection
        assert_eq!(write_connections(&redis), 1);

        let port = redis.port().to_string();
        let _replica = RedisServer::start_with(&["--replicaof", "127.0.0.1", &port]);
        until(async || thread.put("state/k", "2").send().await.status == 200).await;
        assert_eq!(thread.state().await, r#"{"k":2}"#);
    })
    .await;
}

#[tokio::test]
async fn connections_for_writes_are_bounded_and_closed_when_idle() {
    let redis = Replicated::start();
    let server = patient(&redis.master);
    let client = server.client();
    let write = async |_| client.thread().put("state/k", "1").ok().await;

    join_all((0..200).map(write)).await;
    let made = write_connections(&redis.master);
    // each of two workers opens up to 16 connections
    assert!((1..=2 * 16).contains(&made), "{made}");

    until(async || write_connections(&redis.master) == 0).await;
    client.thread().put("state/k", "1").ok().await;
}

/// Number of concurrent writers, which exceeds the permits of two workers.
const WRITERS: usize = 64;
/// Maximum number of connections that the server opens in four seconds.
const CONNECTIONS: u64 = 20;

#[tokio::test]
async fn confirmed_writes_open_few_connections_while_redis_hangs() {
    let redis = Replicated::start();
    let link = Proxy::start(address(&redis.master));
    let server = &servers_waiting(&[url(link.address())], 1)[0];
    let client = server.client();
    let threads: Vec<_> = (0..WRITERS).map(|_| client.thread()).collect();
    let write_for = async |time: Duration| {
        let start = Instant::now();
        join_all(threads.iter().map(async |thread| {
            while start.elapsed() < time {
                thread.put("state/k", "1").send().await;
                sleep(Duration::from_millis(20)).await;
            }
        }))
        .await;
    };
    write_for(Duration::from_millis(500)).await;
    assert!(write_connections(&redis.master) > 0);

    for mode in [Mode::Hanging, Mode::Losing] {
        let (before, start) = (link.accepted(), Instant::now());
        link.set(mode);
        write_for(2 * TIMEOUT).await;
        let opened = link.accepted() - before;
        link.set(Mode::Open);

        // on a busy machine, the writes may take longer than four seconds and open more connections
        let opened_max = CONNECTIONS.max(start.elapsed().as_secs() * CONNECTIONS / 4);
        assert!(
            (1..=opened_max).contains(&opened),
            "{mode:?}: {opened} of {opened_max}"
        );
        until(async || threads[0].put("state/k", "2").send().await.status == 200).await;
        write_for(Duration::from_millis(500)).await;
        println!(
            "{mode:?}: {opened} connections, {} after it",
            link.accepted() - before
        );
    }
    for thread in &threads {
        write(thread, "3").await;
    }
}

fn write_connections(redis: &RedisServer) -> usize {
    let list = redis.call(&["CLIENT", "LIST"]);
    list.lines()
        .filter(|line| line.contains("cmd=wait"))
        .count()
}
