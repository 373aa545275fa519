use std::time::Instant;

use super::servers;
use crate::support::cluster::RedisCluster;
use crate::support::redis::RedisServer;
use crate::support::server::Server;
use crate::support::until;

/// Asserts that a server is not ready after the command `break_writes`, and ready again after `restore_writes`.
async fn assert_readiness_follows(break_writes: &[&str], restore_writes: &[&str]) {
    let redis = RedisServer::start();
    let servers = servers(&[redis.url()]);
    let server = &servers[0];
    let answers = async |status| server.client().get("/readyz").send().await.status == status;
    until(async || answers(200).await).await;

    redis.call(break_writes);
    until(async || answers(503).await).await;
    let answer = server.client().get("/readyz").send().await;
    let problem = answer.json();

    assert_eq!(answer.status, 503);
    assert!(problem["code"].is_string(), "{problem}");
    assert!(answer.header("retry-after").is_some());
    server.client().get("/healthz").ok().await;
    assert_eq!(write(server).await, 503);
    redis.call(restore_writes);
    until(async || answers(200).await).await;
    until(async || write(server).await == 200).await;
}

async fn write(server: &Server) -> u16 {
    let thread = server.client().thread();
    thread.put("state/k", "1").send().await.status
}

#[tokio::test]
async fn a_full_redis_is_not_ready() {
    let bytes = |bytes: &'static str| ["CONFIG", "SET", "maxmemory", bytes];
    assert_readiness_follows(&bytes("1"), &bytes("0")).await;
}

#[tokio::test]
async fn a_replica_is_not_ready() {
    // nothing listens on port 1
    assert_readiness_follows(
        &["REPLICAOF", "127.0.0.1", "1"],
        &["REPLICAOF", "NO", "ONE"],
    )
    .await;
}

#[tokio::test]
async fn a_server_with_a_read_only_user_is_not_ready() {
    let rights = |rights: &'static str| ["ACL", "SETUSER", "default", rights];
    assert_readiness_follows(&rights("-@write"), &rights("+@write")).await;
}

#[tokio::test]
async fn a_server_whose_redis_may_evict_threads_is_not_ready_but_serves() {
    let redis = RedisServer::start();
    let servers = servers(&[redis.url()]);
    let server = &servers[0];
    let answers = async |status| server.client().get("/readyz").send().await.status == status;
    for policy in ["volatile-lru", "allkeys-random"] {
        redis.call(&["CONFIG", "SET", "maxmemory-policy", policy]);
        until(async || answers(503).await).await;
        assert_eq!(write(server).await, 200);
        server.await_log(|line| line.contains("ERROR") && line.contains(policy));
        redis.call(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
        until(async || answers(200).await).await;
    }
}

#[tokio::test]
async fn a_server_that_is_not_probed_logs_that_redis_may_evict_threads() {
    let redis = RedisServer::start();
    let servers = servers(&[redis.url()]);

    redis.call(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);

    servers[0].await_log(|line| line.contains("ERROR") && line.contains("allkeys-lru"));
}

#[tokio::test]
async fn health_checks_cause_at_most_one_write_a_second() {
    let redis = RedisServer::start();
    let servers = servers(&[redis.url()]);
    let client = servers[0].client();
    let writes = || {
        let stats = redis.call(&["INFO", "commandstats"]);
        let line = stats.lines().find(|line| line.starts_with("cmdstat_set:"));
        let calls = line.and_then(|line| line.split(['=', ',']).nth(1));
        calls.map_or(0, |calls| calls.parse::<u64>().unwrap())
    };
    let start = Instant::now();
    let before = writes();

    for _ in 0..100 {
        client.get("/readyz").send().await;
    }

    let made = writes() - before;
    assert!(made >= 1);
    // the server also checks its store in the background
    assert!(made <= start.elapsed().as_secs() + 2, "{made}");
}

#[tokio::test]
async fn a_cluster_is_ready_while_any_master_takes_writes() {
    let cluster = RedisCluster::start();
    let servers = servers(&[cluster.url()]);
    let status = async || servers[0].client().get("/readyz").send().await.status;
    let [first, middle, last] = [0, 8_000, 16_383].map(|slot| cluster.first_master(slot));
    let fill = |master: &RedisServer, bytes| master.call(&["CONFIG", "SET", "maxmemory", bytes]);

    fill(first, "1");
    fill(middle, "1");
    until(async || status().await == 200).await;

    fill(last, "1");
    until(async || status().await == 503).await;
    fill(middle, "0");
    until(async || status().await == 200).await;
}
