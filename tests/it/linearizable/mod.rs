//! Replicas that answer reads from copies answer as one place would: a read shows no version below one that was
//! acknowledged before it began, and its state is that version's.

mod check;
mod clients;
mod history;

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join;
use threadkeep::store::{Backend, Clock, RedisSettings, RedisStore};

use crate::support::redis::{RedisServer, unique_prefix};
use crate::support::sentinel::Watched;
use crate::support::until;
use clients::Clients;
use history::{Event, Interval};

const REPLICAS: usize = 3;
const OPERATIONS: usize = 100_000;

/// Workers of replicas on the same data, each replica with its own copies.
async fn replicas(url: &str, wait_replicas: u16, clock: &Clock) -> Vec<Arc<dyn Backend>> {
    let key_prefix = unique_prefix();
    let mut replicas = Vec::new();
    for _ in 0..REPLICAS {
        let settings = RedisSettings {
            key_prefix: key_prefix.clone(),
            wait_replicas,
            ..RedisSettings::new(url)
        };
        let store = RedisStore::connect(settings, clock.clone()).await.unwrap();
        // two workers, which share the copies
        replicas.extend([store.for_worker(), store.for_worker()]);
    }
    replicas
}

/// Checks what was seen, and that enough was put to the test.
fn judge(clients: Clients) {
    let (hits, reads) = clients.hits();
    let checked = clients.check();
    println!("{checked:?}, {hits} hits of {reads} reads");
    assert!(hits > reads / 10, "{hits} of {reads}");
    assert!(checked.bounded > 0 && checked.compared > 0 && checked.derived > 0);
}

#[tokio::test]
async fn reads_are_of_what_was_acknowledged_while_threads_end_and_are_restored() {
    let redis = RedisServer::start();
    let clients = Clients::new(replicas(&redis.url(), 0, &Clock::system()).await, 30, false);

    clients.run(OPERATIONS).await;

    judge(clients);
}

/// Ends all threads a few times, while clients go on.
async fn end_all(clients: &Clients, end: impl Fn()) {
    let ends = async {
        for _ in 0..10 {
            clients.await_more(1_000).await;
            let (at, ()) = Interval::of(async { end() }).await;
            clients.note(at, Event::End);
        }
        clients.stop();
    };
    join(ends, clients.run_on()).await;
}

#[tokio::test]
async fn an_expired_thread_is_gone_for_every_replica() {
    let redis = RedisServer::start();
    let clock = Clock::system();
    let clients = Clients::new(replicas(&redis.url(), 0, &clock).await, 0, false);

    end_all(&clients, || clock.advance(Duration::from_secs(2 * 3_600))).await;

    judge(clients);
}

#[tokio::test]
async fn a_flushed_redis_leaves_no_copies_behind() {
    let redis = RedisServer::start();
    let clients = Clients::new(replicas(&redis.url(), 0, &Clock::system()).await, 0, true);

    end_all(&clients, || drop(redis.call(&["FLUSHALL"]))).await;

    judge(clients);
}

/// After the loss, Redis gives the same versions of the same lives to other writes.
#[tokio::test]
async fn a_redis_that_lost_its_last_writes_is_believed_and_no_copy_of_them() {
    let redis = RedisServer::start();
    let clients = Clients::new(replicas(&redis.url(), 0, &Clock::system()).await, 0, true);
    let losses = async {
        for _ in 0..5 {
            clients.await_more(1_000).await;
            let start = Instant::now();
            redis.call(&["SAVE"]);
            clients.await_more(1_000).await;
            redis.kill();
            redis.restart();
            let end = Instant::now();
            clients.note(Interval { start, end }, Event::Loss);
        }
        clients.await_more(1_000).await;
        clients.stop();
    };

    join(losses, clients.run_on()).await;

    judge(clients);
}

#[tokio::test]
async fn a_failover_loses_no_confirmed_write_and_leaves_no_copy_of_another() {
    let watched = Watched::start();
    let replicas = replicas(&watched.url(), 1, &Clock::system()).await;
    let clients = Clients::new(replicas, 0, true);
    let [master, replica] = &watched.servers;
    let failover = async {
        clients.await_more(2_000).await;
        let start = Instant::now();
        master.kill();
        until(async || {
            let told = replica.try_call(&["INFO", "replication"]);
            told.is_ok_and(|told| told.contains("role:master"))
        })
        .await;
        let end = Instant::now();
        clients.note(Interval { start, end }, Event::Failover);
        master.restart();
        let port = replica.port().to_string();
        master.call(&["REPLICAOF", "127.0.0.1", &port]);
        clients.await_more(3_000).await;
        clients.stop();
    };

    join(failover, clients.run_on()).await;

    judge(clients);
}
