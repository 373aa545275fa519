use std::time::Instant;

use super::servers;
use crate::support::cluster::RedisCluster;
use crate::support::redis::RedisServer;
use crate::support::server::Server;
use crate::support::until;

/// Tests that a server is not ready after the command `refuse`, and ready again after the command `take`.
async fn follows(refuse: &[&str], take: &[&str]) {
    let redis = RedisServer::start();
    let servers = servers(&[redis.url()]);
    let server = &servers[0];
    let answers = async |status| server.client().get("/readyz").send().await.status == status;
    until(async || answers(200).await).await;

    redis.call(refuse);
    until(async || answers(503).await).await;
    let answer = server.client().get("/readyz").send().await;
    let problem = answer.json();

    assert_eq!(answer.status, 503);
    assert!(problem["code"].is_string(), "{problem}");
    assert!(answer.header("retry-after").is_some());
    server.client().get("/healthz").ok().await;
    assert_eq!(write(server).await, 503);
    redis.call(take);
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
    follows(&bytes("1"), &bytes("0")).await;
}

#[tokio::test]
async fn a_replica_is_not_ready() {
    // nothing listens on port 1
    follows(
        &["REPLICAOF", "127.0.0.1", "1"],
        &["REPLICAOF", "NO", "ONE"],
    )
    .await;
}

#[tokio::test]
async fn a_user_who_may_only_read_is_not_ready() {
    let rights = |rights: &'static str| ["ACL", "SETUSER", "default", rights];
    follows(&rights("-@write"), &rights("+@write")).await;
}

#[tokio::test]
async fn a_redis_that_was_set_to_evict_threads_is_not_ready_and_serves() {
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
async fn a_server_that_nobody_probes_logs_that_redis_was_set_to_evict_threads() {
    let redis = RedisServer::start();
    let servers = servers(&[redis.url()]);

    redis.call(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);

    servers[0].await_log(|line| line.contains("ERROR") && line.contains("allkeys-lru"));
}

#[tokio::test]
async fn health_checks_cost_redis_one_write_a_second_at_most() {
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
