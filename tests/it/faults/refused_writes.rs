//! Tests a Redis server that rejects writes but answers reads: its disk failed, replicas are missing, or it is full.

use reqwest::Method;
use serde_json::json;

use crate::support::client::{OwnThread, Request};
use crate::support::redis::RedisServer;
use crate::support::server::{API_SECRET, Backend, Server};
use crate::support::until;

#[derive(Debug, Clone, Copy)]
enum Cause {
    Disk,
    Replicas,
    Memory,
}

impl Cause {
    fn begin(self, redis: &RedisServer) {
        let set = |name, value| redis.call(&["CONFIG", "SET", name, value]);
        match self {
            Self::Disk => {
                set("save", "3600 100000");
                std::fs::remove_dir_all(redis.dir()).unwrap();
                redis.call(&["BGSAVE"]);
                let is_failed = || {
                    redis
                        .call(&["INFO", "persistence"])
                        .contains("rdb_last_bgsave_status:err")
                };
                while !is_failed() {
                    std::thread::yield_now();
                }
            }
            Self::Replicas => drop(set("min-replicas-to-write", "1")),
            Self::Memory => drop(set("maxmemory", "1")),
        }
    }

    fn end(self, redis: &RedisServer) {
        let set = |name, value| redis.call(&["CONFIG", "SET", name, value]);
        match self {
            Self::Disk => set("stop-writes-on-bgsave-error", "no"),
            Self::Replicas => set("min-replicas-to-write", "0"),
            Self::Memory => set("maxmemory", "0"),
        };
    }
}

fn reads(server: &Server, thread: &OwnThread) -> Vec<Request> {
    let client = server.client();
    let below = [
        "",
        "?peek=true",
        "state?peek=true",
        "state/list?tail=1&peek=true",
        "history?peek=true",
        "state",
        "state?key=list",
        "state/list",
        "state/list?tail=1",
        "keys",
        "history",
        "history?limit=1",
        "checkpoints",
        "checkpoints/1",
        "turn",
    ];
    let mut reads: Vec<_> = below.map(|path| thread.get(path)).into();
    reads.push(thread.head("state/list"));
    reads.push(thread.by_api_key(Method::GET, "export"));
    reads.push(thread.by_api_key(Method::GET, "state"));
    reads.push(thread.post_with_thread_id(
        "/v1/scopes/keys/get",
        r#"{"scope":"thread:current","keys":["a"]}"#,
    ));
    reads.push(thread.post_with_thread_id("/v1/scopes/tasks/get", r#"{"scope":"thread:current"}"#));
    for path in [
        "/v1/threads",
        "/v1/export",
        "/v1/archives",
        "/v1/kv/files",
        "/v1/kv/files/a",
    ] {
        reads.push(client.get(path).bearer(API_SECRET));
    }
    let conversation = format!("/v1/conversations/{}", thread.id.replace("thrd_", "conv_"));
    for path in ["", "/items"] {
        reads.push(
            client
                .get(&format!("{conversation}{path}"))
                .bearer(API_SECRET),
        );
    }
    reads
}

async fn assert_reads_succeed(cause: Cause) {
    let redis = RedisServer::start();
    // each read must call Redis
    let builder = Server::builder(Backend::Memory).redis(&redis.url());
    let server = builder.set("THREADKEEP_READ_CACHE_BYTES", 0).start();
    let client = server.client();
    let thread = client.thread();
    let list: Vec<_> = (0..2_000).collect();
    thread
        .put("state/list", &json!(list).to_string())
        .ok()
        .await;
    thread
        .post("history", r#"{"items":[{"id":"a","value":1}]}"#)
        .ok()
        .await;
    thread.post("checkpoints", "{}").send().await;
    for keyed in [
        r#"{"scope":"thread:current","entries":[{"key":"a","value":"b"}]}"#,
        r#"{"scope":"thread:current","key":"due","value":"c","ttl_seconds":1}"#,
    ] {
        thread
            .post_with_thread_id("/v1/scopes/keys/set", keyed)
            .ok()
            .await;
    }
    let tasks = r#"{"scope":"thread:current","tasks":[{"content":"a","status":"pending"}]}"#;
    thread
        .post_with_thread_id("/v1/scopes/tasks/set", tasks)
        .ok()
        .await;
    let entry = client
        .request(Method::PUT, "/v1/kv/files/a")
        .bearer(API_SECRET);
    entry.json("1").ok().await;

    cause.begin(&redis);
    // wait until the key `due` has expired, but do not read the key, because a read would delete it
    let due = redis.seconds() + 2;
    until(async || redis.seconds() >= due).await;

    for round in 0..2 {
        for (index, read) in reads(&server, &thread).into_iter().enumerate() {
            let answer = read.send().await;
            assert_eq!(
                answer.status,
                200,
                "{cause:?} {round} {index}: {}",
                answer.text()
            );
        }
        let write = thread.post("state/list/push", "1").send().await;
        assert_eq!(write.status, 503, "{cause:?}: {}", write.text());
    }
    let keys = r#"{"scope":"thread:current","keys":["a","due"]}"#;
    let values = thread
        .post_with_thread_id("/v1/scopes/keys/get", keys)
        .ok()
        .await;
    assert_eq!(
        values.json()["values"],
        json!({"a": "b", "due": null}),
        "{cause:?}"
    );
    let export = thread.by_api_key(Method::GET, "export").ok().await.text();
    assert!(!export.contains("due"), "{cause:?}: {export}");
    let state = thread.get("state/list?tail=1").ok().await.text();
    assert_eq!(state, "[1999]");

    cause.end(&redis);
    until(async || thread.post("state/list/push", "1").send().await.status == 200).await;
}

#[tokio::test]
async fn reads_succeed_while_the_disk_of_redis_fails() {
    assert_reads_succeed(Cause::Disk).await;
}

#[tokio::test]
async fn reads_succeed_while_redis_has_too_few_replicas() {
    assert_reads_succeed(Cause::Replicas).await;
}

#[tokio::test]
async fn reads_succeed_while_the_memory_of_redis_is_full() {
    assert_reads_succeed(Cause::Memory).await;
}
