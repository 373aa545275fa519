//! Tests what clients observe, and what the store contains, when network links and processes fail. Servers and Redis
//! run as separate processes.

mod breaker;
mod confirmed_writes;
mod crowd;
mod cut_links;
mod ends;
mod failover;
mod hanging_redis;
mod killed_redis;
mod load;
mod lost_scripts;
mod many_writers;
mod model_responses;
mod overload;
mod partitions;
mod readiness;
mod refused_writes;
mod resharding;
mod rollback;
mod shutdown;

use std::collections::HashSet;
use std::net::SocketAddr;
use std::time::Duration;

use crate::support::client::{Client, OwnThread, new_id};
use crate::support::redis::RedisServer;
use crate::support::server::{Backend, Builder, Server};
use crate::support::until;

/// The documented time limit of a request.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Longest delay that a busy machine may add. A request that waits for Redis without a time limit takes longer.
const SLACK: Duration = Duration::from_secs(30);
/// Time limit for requests that must succeed even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn builder_within(timeout: Duration, url: &str) -> Builder {
    Server::builder(Backend::Memory)
        .redis(url)
        .set("THREADKEEP_STORE_TIMEOUT_MS", timeout.as_millis())
}

fn servers(urls: &[String]) -> Vec<Server> {
    servers_waiting(urls, 0)
}

fn servers_waiting(urls: &[String], replicas: u16) -> Vec<Server> {
    servers_within(TIMEOUT, urls, replicas)
}

fn servers_within(timeout: Duration, urls: &[String], replicas: u16) -> Vec<Server> {
    let first = builder_within(timeout, &urls[0])
        .set("THREADKEEP_WAIT_REPLICAS", replicas)
        .start();
    let settings = first.settings();
    let mut servers = vec![first];
    for url in &urls[1..] {
        let settings = settings.clone().set("THREADKEEP_REDIS_URL", url);
        servers.push(settings.start());
    }
    servers
}

/// Retries a write until it succeeds, because Redis may at first answer too late on a busy machine.
async fn write(thread: &OwnThread, json: &str) {
    until(async || thread.put("state/k", json).send().await.status == 200).await;
}

fn url(address: SocketAddr) -> String {
    format!("redis://{address}")
}

fn address(redis: &RedisServer) -> SocketAddr {
    ([127, 0, 0, 1], redis.port()).into()
}

fn threads(addresses: &[SocketAddr]) -> Vec<OwnThread> {
    threads_of(&new_id(), addresses)
}

fn threads_of(id: &str, addresses: &[SocketAddr]) -> Vec<OwnThread> {
    let clients = addresses.iter().map(|address| Client::new(*address));
    clients.map(|client| client.thread_of(id)).collect()
}

async fn distinct_numbers(thread: &OwnThread, key: &str) -> HashSet<u64> {
    let array = thread.get(&format!("state/{key}")).ok().await.json();
    let numbers = array.as_array().unwrap().iter();
    let distinct: HashSet<_> = numbers.map(|number| number.as_u64().unwrap()).collect();
    assert_eq!(distinct.len(), array.as_array().unwrap().len(), "twice");
    distinct
}
