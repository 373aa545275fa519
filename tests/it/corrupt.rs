//! Tests that a corrupt value in Redis makes only its own data unavailable, in every protocol.

use std::sync::Arc;

use redis::Connection;
use reqwest::Method;
use threadkeep_domain::Position;
use threadkeep_store::Clock;

use crate::conformance::room::{redis_on, set};
use crate::support::client::Request;
use crate::support::redis::RedisServer;
use crate::support::server::{API_SECRET, Backend, RELAY_SECRET, Server};

struct Deployment {
    server: Server,
    redis: RedisServer,
}

impl Deployment {
    fn start() -> Self {
        let redis = RedisServer::start();
        let server = Server::builder(Backend::Memory).redis(&redis.url()).start();
        Self { server, redis }
    }

    fn request(&self, method: Method, path: &str) -> Request {
        let request = self.server.client().request(method, path);
        request.bearer(API_SECRET)
    }

    async fn list(&self, path: &str) -> String {
        self.request(Method::GET, path).ok().await.text()
    }

    async fn put_entry(&self, path: &str) {
        let put = self.request(Method::PUT, path).json("1").send().await;
        assert!(put.status < 300, "{}", put.text());
    }

    fn keys(&self, pattern: &str) -> Vec<String> {
        let mut keys = redis::cmd("KEYS");
        let mut connection = self.redis.connection();
        keys.arg(pattern).query(&mut connection).unwrap()
    }

    fn key(&self, pattern: &str) -> String {
        let keys = self.keys(pattern);
        assert_eq!(keys.len(), 1, "{keys:?}");
        keys[0].clone()
    }

    fn set_field(&self, key: &str, field: &[u8], value: &[u8]) {
        let mut connection = self.redis.connection();
        let mut set = redis::cmd("HSET");
        set.arg(key).arg(field).arg(value);
        set.exec(&mut connection).unwrap();
    }
}

#[tokio::test]
async fn an_unreadable_entry_is_unavailable_in_both_protocols() {
    let deployment = Deployment::start();
    deployment.put_entry("/v1/kv/n/k").await;
    let key = deployment.key("*:k:*");

    deployment.redis.call(&["SET", &key, "x", "KEEPTTL"]);

    for path in ["/v1/kv/n/k", "/kv/2025-03-17/n/k"] {
        let answer = deployment.request(Method::GET, path).send().await;
        assert_eq!(answer.status, 503, "{path}: {}", answer.text());
        assert!(answer.header("retry-after").is_some(), "{path}");
    }
}

#[tokio::test]
async fn an_unreadable_session_is_unavailable_and_omitted_from_lists() {
    let deployment = Deployment::start();
    let client = deployment.server.client();
    let make = async || {
        let made = client.post("/api/v1/sessions").bearer(RELAY_SECRET);
        let made = made.json(r#"{"metadata":{}}"#).send().await;
        assert!(made.status < 300, "{}", made.text());
        made.json()["id"].as_str().unwrap().to_owned()
    };
    let get = |path: &str| client.get(path).bearer(RELAY_SECRET);
    let bad = make().await;
    let key = deployment.key("*:k:*");
    let good = make().await;

    deployment.set_field(&key, b"R", b"x");

    let answer = get(&format!("/api/v1/sessions/{bad}")).send().await;
    assert_eq!(answer.status, 503, "{}", answer.text());
    assert_eq!(answer.json()["code"], "SERVICE_UNAVAILABLE");
    for _ in 0..2 {
        let list = get("/api/v1/sessions").ok().await.text();
        assert!(list.contains(&good) && !list.contains(&bad), "{list}");
    }
}

#[tokio::test]
async fn a_thread_with_an_excessive_stored_size_is_unavailable() {
    let deployment = Deployment::start();
    let thread = deployment.server.client().thread();
    thread.put("state/k", "1").ok().await;
    let key = deployment.key(&format!("*:t:{}", thread.id));
    let mut connection = deployment.redis.connection();
    let mut get = redis::cmd("HGET");
    let mut meta: Vec<u8> = get.arg(&key).arg("M").query(&mut connection).unwrap();
    // overwrite the total size of all members
    meta[15..19].fill(0xff);
    let before = deployment.server.peak_bytes();

    deployment.set_field(&key, b"M", &meta);

    for _ in 0..3 {
        let answer = thread.get("state").send().await;
        answer.problem(503, "store_unavailable");
    }
    let grown = deployment.server.peak_bytes() - before;
    assert!(grown < 64 << 20, "{grown}");
}

#[tokio::test]
async fn lists_omit_unreadable_records() {
    let deployment = Deployment::start();
    let ended = ["a", "b"].map(|_| deployment.server.client().thread());
    for thread in &ended {
        thread.put("state/k", "1").ok().await;
        assert_eq!(thread.delete("").send().await.status, 204);
    }
    for path in ["/v1/kv/good/a", "/v1/kv/good/b", "/v1/kv/bad/a"] {
        deployment.put_entry(path).await;
    }
    let entry_indexes = deployment.keys("*:kh");
    let mut connection = deployment.redis.connection();
    let members = |key: &String, connection: &mut Connection| -> Vec<Vec<u8>> {
        redis::cmd("HKEYS").arg(key).query(connection).unwrap()
    };

    let [bad, good] = &ended;
    let archive = deployment.key(&format!("*:a:{}", bad.id));
    deployment.set_field(&archive, b"E", b"x");
    let index = deployment.key("*{namespaces}:names");
    deployment.set_field(&index, b"bad", b"x");
    for key in &entry_indexes {
        for member in members(key, &mut connection) {
            if member.ends_with(b"b") {
                deployment.set_field(key, &member, b"x");
            }
        }
    }

    let archives = deployment.list("/v1/archives").await;
    assert!(archives.contains(&good.id) && !archives.contains(&bad.id));
    let namespaces = deployment.list("/v1/kv").await;
    assert!(namespaces.contains("good") && !namespaces.contains("bad"));
    let entries = deployment.list("/v1/kv/good").await;
    assert!(entries.contains(r#""a""#) && !entries.contains(r#""b""#));
    deployment
        .server
        .await_log(|line| line.contains("unreadable record skipped"));
    let skipped = "threadkeep_unreadable_records_total";
    // each list skipped one record: an archive, a namespace and an entry
    assert_eq!(deployment.server.metric(skipped).await, 3);
}

#[tokio::test]
async fn all_readers_skip_unreadable_events() {
    let redis = Arc::new(RedisServer::start());
    let room = redis_on(Arc::clone(&redis), Clock::system()).await;
    let thread = room.subject();
    let bucket = room.bucket(&thread);
    let mut connection = redis.connection();
    let junk = |connection: &mut Connection| {
        let mut keys = redis::cmd("KEYS");
        let logs: Vec<String> = keys.arg("*:e").query(connection).unwrap();
        for _ in 0..3 {
            let mut add = redis::cmd("XADD");
            add.arg(&logs[0])
                .arg("*")
                .arg("e")
                .arg("x")
                .arg("k")
                .arg("y");
            add.exec(connection).unwrap();
        }
    };
    thread.merge(&[set("k", "1")]).await;
    junk(&mut connection);
    thread.destroy().await;
    junk(&mut connection);

    for limit in [1, 2, 3, 100] {
        let mut from = Position::default();
        let mut read = Vec::new();
        loop {
            let log = room.backend.read_log(&[(bucket, from)], limit).await;
            let events = log.unwrap().pop().unwrap();
            from = events.last().map_or(from, |event| event.id.position);
            let is_last_page = events.len() < limit;
            read.extend(events);
            if is_last_page {
                break;
            }
        }
        assert_eq!(read.len(), 2, "{limit}: {read:?}");
    }
    // each unreadable event is counted once, no matter how often it is read
    assert_eq!(room.backend.unreadable(), 6);
}
