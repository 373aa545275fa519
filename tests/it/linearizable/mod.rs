//! Tests that reads from the cache are linearizable: a read shows exactly one version, which is not older than any
//! version acknowledged before the read began. Conditional writes apply only to a version that meets their condition.

mod check;
mod clients;
mod contents;
mod history;
mod lifetimes;
mod reads;
mod shown;
mod writes;

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join;
use threadkeep_domain::ThreadPolicy;
use threadkeep_store::{Backend, Clock};
use threadkeep_store_redis::{RedisSettings, RedisStore};

use crate::support::redis::{RedisServer, unique_prefix};
use crate::support::sentinel::Watched;
use crate::support::until;
use clients::{Clients, Setup};
use history::{Event, Interval};
use lifetimes::Times;
use shown::Shown;

const OPERATIONS: usize = 100_000;

async fn clients(url: &str, wait_replicas: u16, clock: &Clock, setup: Setup) -> Arc<Clients> {
    let key_prefix = unique_prefix();
    let mut workers: Vec<Arc<dyn Backend>> = Vec::new();
    for _ in 0..setup.replicas {
        let defaults = RedisSettings::new(url);
        let settings = RedisSettings {
            key_prefix: key_prefix.clone(),
            wait_replicas,
            timeout: match setup.may_fail {
                true => defaults.timeout,
                // a busy machine must not fail calls
                false => Duration::from_secs(60),
            },
            ..defaults
        };
        let store = RedisStore::connect(settings, clock.clone()).await.unwrap();
        workers.extend((0..setup.workers).map(|_| store.for_worker()));
    }
    Clients::new(workers, clock, setup)
}

/// Checks the recorded reads and writes, and asserts that the checks compared enough of them.
fn judge(clients: &Clients) {
    let (hits, reads) = clients.hits();
    let checked = clients.check();
    println!("{checked:?}, {hits} hits of {reads} reads");
    // require a fixed number of hits, not a share of `reads`, because `reads` includes failed reads during an outage
    assert!(hits > 100, "{hits} of {reads}");
    assert!(checked.bounded > 0 && checked.derived > 0 && checked.conditional > 0);
    for kind in Shown::KINDS {
        assert!(checked.compared.contains_key(kind), "{kind}");
    }
}

#[tokio::test]
async fn reads_are_linearizable_while_threads_end_and_are_restored() {
    let redis = RedisServer::start();
    let setup = Setup {
        ends: 30,
        ..Setup::STEADY
    };
    let clients = clients(&redis.url(), 0, &Clock::system(), setup).await;

    clients.run(OPERATIONS).await;

    judge(&clients);
}

/// All workers belong to one replica, so they share its cache, and no other replica makes a cached thread stale.
#[tokio::test]
async fn workers_of_one_replica_do_not_mix_cached_versions() {
    let redis = RedisServer::start();
    let setup = Setup {
        replicas: 1,
        workers: 4,
        threads: 3,
        ends: 10,
        ..Setup::STEADY
    };
    let clients = clients(&redis.url(), 0, &Clock::system(), setup).await;

    clients.run(OPERATIONS / 5).await;

    judge(&clients);
}

async fn end_all(clients: &Arc<Clients>, end: impl AsyncFn()) {
    let ends = async {
        for _ in 0..10 {
            clients.await_more(1_000).await;
            let (at, ()) = Interval::of(end()).await;
            clients.note(at, Event::End);
        }
    };
    clients.run_during(ends).await;
}

#[tokio::test]
async fn an_expired_thread_is_gone_for_every_replica() {
    let redis = RedisServer::start();
    let clock = Clock::system();
    let clients = clients(&redis.url(), 0, &clock, Setup::STEADY).await;

    let advance = || clock.advance(Duration::from_secs(2 * 3_600));
    end_all(&clients, async || clients.between_calls(advance).await).await;

    judge(&clients);
}

/// For a second after a read, the replica serves its cached copy without running the script that detects an expiry.
#[tokio::test]
async fn a_thread_past_its_maximum_age_is_gone_for_every_replica() {
    let redis = RedisServer::start();
    let clock = Clock::system();
    let max_age = Duration::from_secs(61);
    let setup = Setup {
        // few threads and few writes, so that each thread is read many times per second between two writes
        threads: 20,
        writes: 500,
        policy: ThreadPolicy {
            max_age: Some(max_age),
            ..ThreadPolicy::THREAD
        },
        pause: Duration::from_millis(10),
        ..Setup::STEADY
    };
    let clients = clients(&redis.url(), 0, &clock, setup).await;
    let mut times = Times::new(redis.connection(), &clock);
    times.read_clock();

    let ends = async {
        times.read_clock_for(Duration::from_secs(1)).await;
        for _ in 0..3 {
            // advance the clock so far that the current lives (incarnations of threads) soon end, one after another
            let until_then = max_age - Duration::from_millis(1_500);
            clients.between_calls(|| times.advance(until_then)).await;
            // wait until enough calls have been made for new lives to begin, even on a busy machine
            join(
                times.read_clock_for(Duration::from_millis(1_800)),
                clients.await_more(2_000),
            )
            .await;
        }
    };
    clients.run_during(ends).await;

    let ended = times.note_ends(&clients, max_age);
    let (scripts, operations) = (scripts(&redis), clients.done());
    println!("{ended} lives, {scripts} scripts for {operations} operations");
    assert!(ended > 10, "{ended}");
    assert!(scripts < operations, "{scripts} for {operations}");
    judge(&clients);
}

fn scripts(redis: &RedisServer) -> usize {
    let stats = redis.call(&["INFO", "commandstats"]);
    let (_, scripts) = stats.split_once("cmdstat_evalsha:calls=").unwrap();
    let (calls, _) = scripts.split_once(',').unwrap();
    calls.parse().unwrap()
}

#[tokio::test]
async fn no_cached_copy_survives_a_flush_of_redis() {
    let redis = RedisServer::start();
    let clients = clients(&redis.url(), 0, &Clock::system(), Setup::PATIENT).await;

    end_all(&clients, async || drop(redis.call(&["FLUSHALL"]))).await;

    judge(&clients);
}

/// After Redis has lost writes, it assigns the version numbers of these writes to later writes.
#[tokio::test]
async fn no_cached_copy_of_a_lost_write_is_read() {
    let redis = RedisServer::start();
    let clients = clients(&redis.url(), 0, &Clock::system(), Setup::PATIENT).await;
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
    };

    clients.run_during(losses).await;

    judge(&clients);
}

#[tokio::test]
async fn a_failover_loses_no_confirmed_write_and_leaves_no_cached_copy_of_others() {
    let watched = Watched::start();
    // prevent a second failover on a busy machine
    watched.set_down_after(Duration::from_secs(600));
    let clients = clients(&watched.url(), 1, &Clock::system(), Setup::PATIENT).await;
    let [master, replica] = &watched.servers;
    let failover = async {
        clients.await_more(2_000).await;
        let start = Instant::now();
        master.kill();
        watched.set_down_after(Duration::from_secs(1));
        until(async || {
            let role = replica.try_call(&["INFO", "replication"]);
            role.is_ok_and(|role| role.contains("role:master"))
        })
        .await;
        watched.set_down_after(Duration::from_secs(600));
        let end = Instant::now();
        clients.note(Interval { start, end }, Event::Failover);
        master.restart();
        let port = replica.port().to_string();
        master.call(&["REPLICAOF", "127.0.0.1", &port]);
        clients.await_more(3_000).await;
    };

    clients.run_during(failover).await;

    judge(&clients);
}
