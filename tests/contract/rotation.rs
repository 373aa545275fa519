//! Tests that a new signing key can be rolled out to two replicas, one at a time. Clients must not lose their
//! conversations, in whatever order the replicas receive the key.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use reqwest::Method;
use tokio::sync::RwLock;
use tokio::task::{JoinSet, spawn_blocking};

use crate::support::client::{Answer, new_id, signature};
use crate::support::server::{Backend, Builder, SIGNING_SECRET, Server};
use crate::support::until;

const NEW_SECRET: &str = "a-new-hmac-secret-of-the-tests-that-is-long-enough";

#[derive(Debug)]
struct TwoReplicas {
    base: Builder,
    /// A replica is `None` while it restarts.
    replicas: [RwLock<Option<Server>>; 2],
    next_replica: AtomicUsize,
}

#[derive(Debug, Clone, Copy)]
enum Credential {
    Cookie,
    Header,
}

struct Load {
    fleet: Arc<TwoReplicas>,
    is_over: Arc<AtomicBool>,
    request_count: Arc<AtomicUsize>,
    clients: JoinSet<()>,
}

fn old_key() -> String {
    format!("main:{SIGNING_SECRET}")
}

fn new_key() -> String {
    format!("new:{NEW_SECRET}")
}

impl TwoReplicas {
    /// Starts two replicas with the old key. For `wait_seconds` after its start, a replica with both keys still signs
    /// with the old key, because a replica that is offline may lack the new key.
    fn start(wait_seconds: u64) -> Arc<Self> {
        let base = Server::builder(Backend::Redis)
            .set("THREADKEEP_SIGNING_KEY_WAIT_SECONDS", wait_seconds)
            .set("THREADKEEP_WORKERS", 1);
        let start = || RwLock::new(Some(base.clone().start()));
        Arc::new(Self {
            replicas: [start(), start()],
            base,
            next_replica: AtomicUsize::new(0),
        })
    }

    async fn restart(&self, replica: usize, keys: &[String], signing_key: &str) {
        let mut replica = self.replicas[replica].write().await;
        let previous = replica.take();
        let builder = self
            .base
            .clone()
            .set("THREADKEEP_SIGNING_KEYS", keys.join(","))
            .set("THREADKEEP_SIGNING_KEY", signing_key);
        let restarted = spawn_blocking(move || {
            assert!(previous.unwrap().stop().success());
            builder.start()
        });
        *replica = Some(restarted.await.unwrap());
    }

    /// Sends a request to the next replica in turn, or to the other replica if the next one is restarting.
    async fn send(&self, method: Method, path: &str, header: Option<(&str, &str)>) -> Answer {
        let first = self.next_replica.fetch_add(1, Ordering::Relaxed);
        for index in first.. {
            let Ok(replica) = self.replicas[index % 2].try_read() else {
                tokio::task::yield_now().await;
                continue;
            };
            let client = replica.as_ref().unwrap().client();
            let mut request = client
                .request(method, &format!("/v1/threads/current/{path}"))
                .json("1");
            if let Some((name, value)) = header {
                request = request.header(name, value);
            }
            return request.ok().await;
        }
        unreachable!()
    }

    async fn signs_with(&self, replica: usize, secret: &str) -> bool {
        let replica = self.replicas[replica].read().await;
        let client = replica.as_ref().unwrap().client();
        let answer = client.get("/v1/threads/current").ok().await;
        let (id, signed) = signed_id(&answer);
        signed == signature(secret, id)
    }

    async fn await_signing_with(&self, secret: &str) {
        until(async || self.signs_with(0, secret).await && self.signs_with(1, secret).await).await;
    }

    async fn metric(&self, replica: usize, name: &str) -> u64 {
        let replica = self.replicas[replica].read().await;
        replica.as_ref().unwrap().metric(name).await
    }
}

fn signed_id(answer: &Answer) -> (&str, &str) {
    let signed = answer.header("x-thread-id").unwrap();
    signed.split_once(';').unwrap()
}

impl Credential {
    fn next(self, answer: &Answer) -> Option<(&'static str, String)> {
        match self {
            Self::Header => Some(("x-thread-id", answer.header("x-thread-id")?.into())),
            Self::Cookie => {
                let cookie = answer.header("set-cookie")?;
                Some(("cookie", cookie.split(';').next()?.into()))
            }
        }
    }
}

impl Load {
    fn start(fleet: &Arc<TwoReplicas>) -> Self {
        let mut load = Self {
            fleet: Arc::clone(fleet),
            is_over: Arc::default(),
            request_count: Arc::default(),
            clients: JoinSet::new(),
        };
        for credential in [Credential::Cookie, Credential::Header] {
            for _ in 0..2 {
                let (fleet, is_over) = (Arc::clone(fleet), Arc::clone(&load.is_over));
                let request_count = Arc::clone(&load.request_count);
                load.clients.spawn(async move {
                    converse(&fleet, credential, &is_over, &request_count).await;
                });
            }
        }
        load
    }

    async fn await_progress(&self) {
        let target = self.request_count.load(Ordering::Relaxed) + 40;
        until(async || self.request_count.load(Ordering::Relaxed) >= target).await;
    }

    async fn finish(mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        while let Some(client) = self.clients.join_next().await {
            client.unwrap();
        }
        for replica in 0..2 {
            let lost = self.fleet.metric(
                replica,
                r#"threadkeep_cookies_rejected_total{reason="unverified"}"#,
            );
            assert_eq!(lost.await, 0);
        }
    }
}

async fn converse(
    fleet: &TwoReplicas,
    credential: Credential,
    is_over: &AtomicBool,
    request_count: &AtomicUsize,
) {
    let push = "state/messages/push";
    let first = fleet.send(Method::POST, push, None).await;
    let id = signed_id(&first).0.to_owned();
    let mut current = credential.next(&first).unwrap();
    let mut messages = 1;
    while !is_over.load(Ordering::Relaxed) {
        let header = Some((current.0, current.1.as_str()));
        let answer = fleet.send(Method::POST, push, header).await;
        messages += 1;
        assert_eq!(
            signed_id(&answer).0,
            id,
            "{credential:?} after {messages} messages"
        );
        assert_eq!(answer.json()["length"], messages);
        current = credential.next(&answer).unwrap_or(current);
        request_count.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_documented_rollout_loses_no_conversation() {
    let fleet = TwoReplicas::start(5);
    let load = Load::start(&fleet);
    load.await_progress().await;

    for replica in [0, 1] {
        fleet.restart(replica, &[old_key(), new_key()], "").await;
        load.await_progress().await;
        assert!(fleet.signs_with(replica, SIGNING_SECRET).await);
    }
    for replica in [0, 1] {
        fleet.restart(replica, &[old_key(), new_key()], "new").await;
        load.await_progress().await;
    }
    fleet.await_signing_with(NEW_SECRET).await;
    load.await_progress().await;
    // by now, the thread ids of all clients are signed with the new key
    for replica in [0, 1] {
        fleet.restart(replica, &[new_key()], "new").await;
        load.await_progress().await;
    }

    load.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signing_key_that_one_replica_lacks_loses_no_conversation() {
    let fleet = TwoReplicas::start(5);
    let load = Load::start(&fleet);
    load.await_progress().await;

    fleet.restart(0, &[new_key(), old_key()], "").await;
    load.await_progress().await;
    assert!(fleet.signs_with(0, SIGNING_SECRET).await);
    assert_eq!(fleet.metric(0, "threadkeep_signing_key_withheld").await, 1);
    assert_eq!(
        fleet
            .metric(0, "threadkeep_replicas_without_signing_key")
            .await,
        1
    );
    fleet.restart(1, &[new_key(), old_key()], "").await;
    load.await_progress().await;

    fleet.await_signing_with(NEW_SECRET).await;
    load.await_progress().await;
    assert_eq!(fleet.metric(0, "threadkeep_signing_key_withheld").await, 0);
    load.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_temporarily_absent_replica_still_counts() {
    let fleet = TwoReplicas::start(600);
    let load = Load::start(&fleet);
    fleet.restart(0, &[new_key(), old_key()], "").await;

    // while replica 1 restarts, replica 0 cannot ask it for its keys, but must not sign with the new key yet
    fleet.restart(1, &[old_key()], "").await;

    load.await_progress().await;
    for replica in [0, 1] {
        assert!(fleet.signs_with(replica, SIGNING_SECRET).await);
    }
    load.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restarted_fleet_signs_with_the_previous_key() {
    let fleet = TwoReplicas::start(600);
    for replica in &fleet.replicas {
        let server = replica.write().await.take().unwrap();
        spawn_blocking(move || server.stop()).await.unwrap();
    }
    let both = [new_key(), old_key()].join(",");

    let first = fleet.base.clone().set("THREADKEEP_SIGNING_KEYS", both);
    *fleet.replicas[0].write().await = Some(first.start());

    assert!(fleet.signs_with(0, SIGNING_SECRET).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_reports_no_keys_delays_a_new_key() {
    let fleet = TwoReplicas::start(5);
    let replica = fleet.replicas[0].read().await;
    let settings = replica.as_ref().unwrap().settings();
    drop(replica);
    let redis = crate::support::redis::shared();
    // simulate a replica of an older version, which holds a lease but does not announce its signing keys
    let pool = format!(
        "{}:{{reaper}}:leases",
        settings.value("THREADKEEP_KEY_PREFIX")
    );
    redis.call(&["HSET", &pool, "mof-a-former-version", "99999999999999"]);

    for replica in [0, 1] {
        fleet.restart(replica, &[new_key(), old_key()], "").await;
    }
    let is_held_back = async || {
        let without = fleet
            .metric(0, "threadkeep_replicas_without_signing_key")
            .await;
        assert!(fleet.signs_with(0, SIGNING_SECRET).await);
        without == 1
    };
    until(is_held_back).await;

    redis.call(&["HDEL", &pool, "mof-a-former-version"]);
    fleet.await_signing_with(NEW_SECRET).await;
}

#[tokio::test]
async fn two_keys_with_the_same_name_are_distinguished() {
    let first = Server::start(Backend::Redis);
    let keys = format!("main:{NEW_SECRET},old:{SIGNING_SECRET}");
    let second = first
        .settings()
        .set("THREADKEEP_SIGNING_KEYS", keys)
        .start();

    let answer = second.client().get("/v1/threads/current").ok().await;

    let (id, signed) = signed_id(&answer);
    assert_eq!(signed, signature(SIGNING_SECRET, id));
    let line = second.await_log(|line| line.contains("signing key"));
    assert!(line.contains("WARN") && line.contains("main"), "{line}");
    let page = second.client().get("/metrics").ok().await.text();
    let signs = r#"threadkeep_signing_key{key="old"} 1"#;
    assert!(page.contains(signs), "{page}");
}

#[tokio::test]
async fn the_announcement_does_not_contain_the_key() {
    let server = Server::start(Backend::Redis);
    let settings = server.settings();
    let prefix = settings.value("THREADKEEP_KEY_PREFIX");
    let redis = crate::support::redis::shared();

    let pool = redis.call(&["HGETALL", &format!("{prefix}:{{reaper}}:leases")]);

    assert!(pool.contains("main"), "{pool}");
    assert!(!pool.contains(SIGNING_SECRET), "{pool}");
}

#[tokio::test]
async fn an_unverified_cookie_is_counted() {
    let server = Server::start(Backend::Memory);
    let client = server.client();
    let id = new_id();
    let ask = |cookie: String| client.get("/v1/threads/current").header("cookie", cookie);
    let foreign = signature(NEW_SECRET, &id);
    let cookie = |signature: &str| format!("atid={id}.{}", signature.replace('+', "%2B"));

    for ignored in ["atid=of another application".to_owned(), cookie("")] {
        ask(ignored).ok().await;
    }
    ask(cookie(&signature(SIGNING_SECRET, &id))).ok().await;
    assert_eq!(
        server
            .metric(r#"threadkeep_cookies_rejected_total{reason="unverified"}"#)
            .await,
        0
    );

    ask(cookie(&foreign)).ok().await;
    assert_eq!(
        server
            .metric(r#"threadkeep_cookies_rejected_total{reason="unverified"}"#)
            .await,
        1
    );
}
