use std::time::{Duration, Instant};

use futures_util::future::{join, join_all};
use tokio::time::sleep;

use super::load::Load;
use super::{
    OwnThread, SLACK, Server, TIMEOUT, address, builder_within, servers_waiting, url, write,
};
use crate::support::client::Request;
use crate::support::proxy::{Mode, Proxy};
use crate::support::redis::{self, RedisServer};
use crate::support::replicated::Replicated;

fn requests(thread: &OwnThread) -> Vec<Request> {
    vec![
        thread.get(""),
        thread.get("state"),
        thread.get("state/k"),
        thread.get("state/k?tail=1"),
        thread.get("keys"),
        thread.put("state/k", "[1]"),
        thread.post("state/k/push", "1"),
        thread.post("state/n/increment", "{}"),
        thread.merge(r#"[{"op":"clear"}]"#),
        thread.merge_patch(r#"{"o":{"a":1}}"#),
        thread.patch("", r#"{"metadata":{"a":1}}"#),
        thread.delete(""),
    ]
}

async fn assert_unavailable_in_time(requests: Vec<Request>) {
    join_all(requests.into_iter().map(async |request| {
        let start = Instant::now();
        request.refused(503, "store_unavailable").await;
        let took = start.elapsed();
        assert!(took < TIMEOUT + SLACK, "{took:?}");
    }))
    .await;
}

async fn assert_recovers(thread: &OwnThread) {
    let start = Instant::now();
    write(thread, "[1]").await;
    assert!(start.elapsed() < SLACK);
    write(thread, "[2]").await;
}

#[tokio::test]
async fn no_request_waits_longer_than_its_timeout_for_a_stopped_redis() {
    let redis = RedisServer::start();
    let server = builder_within(TIMEOUT, &redis.url()).start();
    let client = server.client();
    write(&client.thread(), "[1]").await;

    redis.suspend();
    assert_unavailable_in_time(requests(&client.thread())).await;
    assert_unavailable_in_time(requests(&client.thread())).await;
    assert_eq!(client.get("/healthz").send().await.status, 200);
    assert_eq!(client.get("/readyz").send().await.status, 503);
    redis.resume();

    assert_recovers(&client.thread()).await;
}

#[tokio::test]
async fn no_request_waits_longer_than_its_timeout_on_a_dead_link() {
    let redis = redis::shared();
    let proxy = Proxy::start(address(&redis));
    let server = builder_within(TIMEOUT, &url(proxy.address())).start();
    let thread = server.client().thread();
    write(&thread, "[1]").await;

    proxy.set(Mode::Hanging);
    assert_unavailable_in_time(requests(&thread)).await;
    proxy.set(Mode::Refusing);
    proxy.cut();
    assert_unavailable_in_time(requests(&thread)).await;
    proxy.set(Mode::Open);

    assert_recovers(&thread).await;
}

/// Maximum number of connections that a server opens while Redis hangs for 5 s. Two workers and background work each
/// retry after a timeout of 2 s.
const CONNECTIONS: f64 = 12.0;

/// Maximum number of connections for writes that wait for replicas. Each of two workers opens 4 connections before
/// Redis recovers, and 16 connections afterwards.
const CONNECTIONS_OF_WRITES: f64 = 2.0 * (16.0 + 4.0);

#[tokio::test]
async fn a_hanging_redis_gets_few_new_connections() {
    let redis = RedisServer::start();

    let made = hang_under_load(&redis, 0).await;

    assert!(made <= 2.0 * CONNECTIONS, "{made}");
}

#[tokio::test]
async fn a_hanging_redis_gets_few_new_connections_from_confirmed_writes() {
    let servers = Replicated::start();

    let made = hang_under_load(&servers.master, 1).await;

    assert!(
        made <= 2.0 * (CONNECTIONS + CONNECTIONS_OF_WRITES),
        "{made}"
    );
}

/// Returns the number of connections that two servers open while Redis hangs for 5 s and recovers. If this takes longer
/// than ten seconds, returns the average number in ten seconds.
async fn hang_under_load(redis: &RedisServer, wait_replicas: u16) -> f64 {
    let servers = servers_waiting(&[redis.url(), redis.url()], wait_replicas);
    let addresses: Vec<_> = servers.iter().map(Server::address).collect();
    let load = Load::new(12, &addresses);
    let made = || {
        let stats = redis.call(&["INFO", "stats"]);
        let made = stats
            .lines()
            .find_map(|line| line.strip_prefix("total_connections_received:"));
        made.unwrap().parse::<u64>().unwrap()
    };

    let (made, ()) = join(
        async {
            load.await_more(20).await;
            let (before, begun) = (made(), Instant::now());
            redis.suspend();
            sleep(Duration::from_secs(5)).await;
            redis.resume();
            let start = Instant::now();
            load.await_more(20).await;
            assert!(start.elapsed() < SLACK);
            load.stop();
            // do not count the connection of this call
            let made = made() - before - 1;
            made as f64 / (begun.elapsed().as_secs_f64() / 10.0).max(1.0)
        },
        load.run(),
    )
    .await;

    let account = load.account().await;
    println!(
        "{made} connections were made by 2 servers, wait_replicas {wait_replicas}: {account:?}"
    );
    assert_eq!(account.lost, 0);
    assert!(made > 0.0);
    made
}
