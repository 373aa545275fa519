//! Tests that each end of a thread is reported once, with the final state, no matter which processes fail.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::future::{join, join_all};
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use threadkeep_domain::{EventKind, Position, ThreadId};
use threadkeep_store::{Archives, Clock, EventLog};
use threadkeep_store_redis::{RedisSettings, RedisStore};

use super::{TIMEOUT, builder_within};
use crate::support::client::{Client, new_id};
use crate::support::receiver::Receiver;
use crate::support::redis::{DURABLE, RedisServer};
use crate::support::server::{API_SECRET, Builder, Server};

const THREADS: usize = 5_000;
const WRITERS: usize = 20;
const REPLICAS: usize = 3;
const FAULT_DURATION: Duration = Duration::from_secs(20);
/// Minimum number of replicas to kill, even if a busy machine is slow to start new replicas.
const KILLS: usize = 10;
const TTL_SECONDS: u64 = 2;
/// Time limit for the webhook to report the last thread's end, long enough for a busy machine.
const WAIT_LIMIT: Duration = Duration::from_secs(600);
const PREFIX: &str = "ends";
const HOOK: &str = "/hook";

#[derive(Debug)]
struct Replicas {
    settings: Builder,
    running: Vec<Mutex<Option<Arc<Server>>>>,
}

impl Replicas {
    fn start(redis: &RedisServer) -> Arc<Self> {
        let settings = builder_within(TIMEOUT, &redis.url())
            .set("THREADKEEP_KEY_PREFIX", PREFIX)
            .set("THREADKEEP_THREAD_TTL_SECONDS", TTL_SECONDS)
            .set("THREADKEEP_WEBHOOK_ALLOW_PRIVATE", true)
            .set("THREADKEEP_WORKERS", 1);
        let server = || Mutex::new(Some(Arc::new(settings.clone().start())));
        let running = (0..REPLICAS).map(|_| server()).collect();
        Arc::new(Self { settings, running })
    }

    fn client(&self) -> Option<Client> {
        let first = rand::random_range(0..REPLICAS);
        let mut indexes = (0..REPLICAS).map(|n| (first + n) % REPLICAS);
        indexes.find_map(|index| {
            let running = self.running[index].lock().unwrap();
            running.as_ref().map(|server| server.client())
        })
    }

    fn replace(&self, index: usize) {
        let server = self.running[index].lock().unwrap().take();
        if let Some(server) = server {
            server.kill();
        }
        std::thread::sleep(Duration::from_millis(rand::random_range(0..500)));
        let server = self.settings.clone().start();
        *self.running[index].lock().unwrap() = Some(Arc::new(server));
    }
}

#[tokio::test]
async fn each_end_is_reported_once_while_replicas_are_killed() {
    let redis = RedisServer::start();

    assert_each_end_is_reported_once(&redis, async |replicas, deadline| {
        let mut kills = 0;
        while Instant::now() < deadline || kills < KILLS {
            let replicas = Arc::clone(&replicas);
            let index = rand::random_range(0..REPLICAS);
            spawn_blocking(move || replicas.replace(index))
                .await
                .unwrap();
            kills += 1;
        }
    })
    .await;
}

#[tokio::test]
async fn each_end_is_reported_once_while_redis_is_killed() {
    let redis = Arc::new(RedisServer::start_with(&DURABLE));

    assert_each_end_is_reported_once(&redis, async |_, deadline| {
        while Instant::now() < deadline {
            sleep(FAULT_DURATION / 5).await;
            redis.kill();
            let back = Arc::clone(&redis);
            spawn_blocking(move || back.restart()).await.unwrap();
        }
    })
    .await;
}

async fn assert_each_end_is_reported_once(
    redis: &RedisServer,
    inject_faults: impl AsyncFn(Arc<Replicas>, Instant),
) {
    let receiver = Receiver::start().await;
    let replicas = Replicas::start(redis);
    let hook = format!(
        r#"{{"url":"{}","events":["thread.destroyed"]}}"#,
        receiver.url(HOOK)
    );
    let client = replicas.client().unwrap();
    let made = client.post("/v1/webhooks").bearer(API_SECRET).json(&hook);
    made.ok().await;

    let ids: Vec<_> = (0..THREADS).map(|_| new_id()).collect();
    let deadline = Instant::now() + FAULT_DURATION;
    let shares = ids.chunks(THREADS / WRITERS);
    let writing = join_all(shares.map(|share| write(&replicas, share)));
    join(writing, inject_faults(Arc::clone(&replicas), deadline)).await;

    let delivered = await_all_deliveries(&receiver).await;
    assert_eq!(delivered.len(), THREADS);
    let threads: HashSet<_> = ids.iter().cloned().collect();
    for (subject, state) in delivered.into_values() {
        assert!(threads.contains(&subject));
        assert_eq!(state, serde_json::json!({ "its": subject }));
    }
    assert_eq!(ends_in_the_log(redis).await, ids.into_iter().collect());
}

/// Creates each thread exactly once, with retries, over a period of about `FAULT_DURATION`.
async fn write(replicas: &Replicas, ids: &[String]) {
    let pause = FAULT_DURATION / ids.len() as u32;
    for id in ids {
        let body = format!(r#"{{"id":"{id}","state":{{"its":"{id}"}}}}"#);
        let start = Instant::now();
        loop {
            let Some(client) = replicas.client() else {
                sleep(Duration::from_millis(20)).await;
                continue;
            };
            let create = client.post("/v1/threads").bearer(API_SECRET).json(&body);
            match create.header("idempotency-key", id).try_send().await {
                Ok(answer) if answer.status == 201 => break,
                Ok(answer) => assert_eq!(answer.status, 503, "{}", answer.text()),
                Err(_) => {}
            }
            sleep(Duration::from_millis(20)).await;
        }
        sleep(pause.saturating_sub(start.elapsed())).await;
    }
}

/// Waits for all deliveries and returns them. May have to wait until the lease of a dead replica expires.
async fn await_all_deliveries(receiver: &Receiver) -> HashMap<String, (String, serde_json::Value)> {
    let start = Instant::now();
    loop {
        let delivered = distinct(receiver);
        if delivered.len() >= THREADS {
            return delivered;
        }
        assert!(
            start.elapsed() < WAIT_LIMIT,
            "only {} arrived",
            delivered.len()
        );
        // poll rarely, because polling also loads the machine
        sleep(Duration::from_millis(500)).await;
    }
}

fn distinct(receiver: &Receiver) -> HashMap<String, (String, serde_json::Value)> {
    let mut distinct = HashMap::new();
    for delivery in receiver.taken(HOOK) {
        let event = delivery.json();
        let subject = event["subject"].as_str().unwrap().to_owned();
        let end = (subject, event["data"]["state"].clone());
        let previous = distinct.insert(delivery.id().to_owned(), end.clone());
        assert!(previous.is_none_or(|previous| previous == end));
    }
    distinct
}

async fn ends_in_the_log(redis: &RedisServer) -> HashSet<String> {
    let settings = RedisSettings {
        key_prefix: PREFIX.into(),
        timeout: Duration::from_secs(30),
        ..RedisSettings::new(redis.url())
    };
    let store = RedisStore::connect(settings, Clock::system())
        .await
        .unwrap();
    let mut ended = HashSet::new();
    for bucket in 0..store.buckets() {
        let from = [(bucket, Position::default())];
        let log = store.read_log(&from, 100_000).await.unwrap().pop().unwrap();
        for event in log {
            let id: ThreadId = *event.thread().unwrap();
            if let EventKind::Destroyed { state_lost, .. } = event.kind {
                assert!(!state_lost);
                let last = store.get_final(&id, event.life).await.unwrap().unwrap();
                assert_eq!(last.state, format!(r#"{{"its":"{id}"}}"#));
                assert!(ended.insert(id.to_string()), "an end was logged twice");
            }
        }
    }
    ended
}
