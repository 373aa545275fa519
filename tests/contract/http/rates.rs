use reqwest::Method;
use serde_json::{Value, json};

use crate::support::client::{Client, OwnThread, Request};
use crate::support::redis::RedisServer;
use crate::support::server::{API_SECRET, Backend, Server};

fn limited(backend: Backend, limit: &str, rate: &str) -> Server {
    Server::builder(backend).set(limit, rate).start()
}

const NEW_THREADS: &str = "THREADKEEP_RATE_NEW_THREADS";
const WRITES: &str = "THREADKEEP_RATE_WRITES";
const THREAD_WRITES: &str = "THREADKEEP_RATE_THREAD_WRITES";

async fn limited_by(limit: &str, request: Request) -> Value {
    let answer = request.send().await;
    let problem = answer.problem(429, "rate_limited");
    assert_eq!(problem["limit"], limit, "{problem}");
    let seconds: u64 = answer.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=86_400).contains(&seconds), "{seconds}");
    problem
}

fn put_as_stranger(client: &Client) -> Request {
    client
        .request(Method::PUT, "/v1/threads/current/state/k")
        .json("1")
}

async fn metric(server: &Server, limit: &str) -> u64 {
    let name = format!("threadkeep_rate_limited_total{{limit=\"{limit}\"}}");
    server.metric(&name).await
}

async fn writes_from_an_address_are_limited(backend: Backend) {
    let server = limited(backend, WRITES, "3/1d");
    let client = server.client();
    let threads: Vec<_> = (0..4).map(|_| client.thread()).collect();
    for thread in &threads[..3] {
        thread.put("state/k", "1").ok().await;
    }

    limited_by("writes", threads[0].put("state/k", "2")).await;
    limited_by("writes", threads[3].put("state/k", "2")).await;
    limited_by("writes", threads[0].delete("")).await;

    assert_eq!(threads[0].state().await, r#"{"k":1}"#);
    assert_eq!(threads[0].object().await["version"], 1);
    assert_eq!(threads[3].object().await["exists"], false);
    assert_eq!(metric(&server, "writes").await, 3);
    assert_eq!(metric(&server, "new_threads").await, 0);
}

async fn back_ends_are_not_limited_by_address(backend: Backend) {
    let server = Server::builder(backend)
        .set(WRITES, "1/1d")
        .set(NEW_THREADS, "1/1d")
        .start();
    let client = server.client();
    client.thread().put("state/k", "1").ok().await;

    for _ in 0..3 {
        let thread = client.thread();
        thread
            .by_api_key(Method::PUT, "state/k")
            .json("1")
            .ok()
            .await;
        client.post("/v1/threads").bearer(API_SECRET).ok().await;
    }
    limited_by("writes", client.thread().put("state/k", "1")).await;
    let wrong = client.thread();
    let wrong = wrong.put("state/k", "1").bearer("not the key");
    limited_by("writes", wrong).await;
}

async fn a_key_lifts_only_the_limits_of_calls_that_its_rights_cover(backend: Backend) {
    let server = Server::builder(backend)
        .set("THREADKEEP_API_KEY_RIGHTS", "ops:events+kv")
        .set(WRITES, "1/1d")
        .start();
    let client = server.client();
    client.thread().put("state/k", "1").ok().await;

    for number in 0..3 {
        let entry = client.request(Method::PUT, &format!("/v1/kv/space/{number}"));
        entry.bearer(API_SECRET).json("1").ok().await;
    }
    let put = client.thread().put("state/k", "1").bearer(API_SECRET);
    limited_by("writes", put).await;
}

async fn new_threads_from_an_address_are_limited(backend: Backend) {
    let server = limited(backend, NEW_THREADS, "4/1d");
    let client = server.client();
    let minted = client.get("/v1/threads/current").ok().await;
    let minted = minted.header("x-thread-id").unwrap().to_owned();
    let thread = client.thread();
    thread.put("state/k", "1").ok().await;
    put_as_stranger(&client).ok().await;
    client.post("/v1/threads").ok().await;
    let existing = client.thread();
    let body = r#"{"scope":"thread:current","key":"a","value":"1"}"#;
    existing
        .post_with_thread_id("/v1/scopes/keys/set", body)
        .ok()
        .await;

    let answer = put_as_stranger(&client).send().await;
    answer.problem(429, "rate_limited");
    assert_eq!(answer.header("x-thread-id"), None);
    assert_eq!(answer.header("set-cookie"), None);
    limited_by("new_threads", client.post("/v1/threads")).await;
    // the limit also applies to a new thread for which the server has already returned a signed id
    let by_minted = put_as_stranger(&client).header("x-thread-id", &minted);
    limited_by("new_threads", by_minted).await;
    let scope = client
        .thread()
        .post_with_thread_id("/v1/scopes/keys/set", body);
    limited_by("new_threads", scope).await;

    // the limit does not apply to writes to existing threads, or to the deletion of a thread that does not exist
    for number in 0..5 {
        thread.put("state/k", &number.to_string()).ok().await;
        existing
            .post_with_thread_id("/v1/scopes/keys/set", body)
            .ok()
            .await;
        client.thread().delete("").ok().await;
    }
    assert_eq!(metric(&server, "new_threads").await, 4);
}

async fn writes_to_a_thread_are_limited_for_all_callers(backend: Backend) {
    let server = limited(backend, THREAD_WRITES, "4/1d");
    let thread = server.client().thread();
    thread.put("state/k", "1").ok().await;
    thread
        .by_api_key(Method::PUT, "state/k")
        .json("2")
        .ok()
        .await;
    thread.post("history", r#"{"id":"a","value":1}"#).ok().await;
    let kv = r#"{"scope":"thread:current","key":"a","value":"1"}"#;
    thread
        .post_with_thread_id("/v1/scopes/keys/set", kv)
        .ok()
        .await;
    let before = thread.object().await;

    for request in every_write(&thread) {
        limited_by("thread_writes", request).await;
    }

    let after = thread.object().await;
    for member in ["version", "size_bytes", "metadata", "updated_at"] {
        assert_eq!(after[member], before[member], "{member}");
    }
    assert_eq!(
        thread.get("history").ok().await.json()["items"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    server.client().thread().put("state/k", "1").ok().await;
}

fn every_write(thread: &OwnThread) -> Vec<Request> {
    let scope = |path: &str, members: Value| {
        let mut body = json!({"scope": "thread:current"});
        body.as_object_mut()
            .unwrap()
            .extend(members.as_object().unwrap().clone());
        thread.post_with_thread_id(path, &body.to_string())
    };
    let call = json!({"tool_use": [{
        "type": "tool_use", "id": "1", "name": "kv_write", "input": {"key": "b", "value": "1"},
    }]});
    vec![
        thread.put("state/k", "3"),
        thread.put("state", "{}"),
        thread.delete("state/k"),
        thread.delete("state"),
        thread.post("state/l/push", "1"),
        thread.post("state/n/increment", "{}"),
        thread.merge(r#"[{"op":"clear"}]"#),
        thread.merge_patch(r#"{"k":{"x":1}}"#),
        thread.patch("", r#"{"metadata":{"a":1}}"#),
        thread.delete(""),
        thread.by_api_key(Method::PUT, "state/k").json("3"),
        thread.by_api_key(Method::DELETE, ""),
        thread.post("history", r#"{"id":"b","value":1}"#),
        scope("/v1/scopes/keys/set", json!({"key": "b", "value": "1"})),
        scope("/v1/scopes/keys/increment", json!({"key": "c"})),
        scope("/v1/scopes/tasks/set", json!({"tasks": []})),
        scope("/v1/scopes/clear", json!({})),
        scope(
            "/v1/tools/kv_write",
            json!({"arguments": {"key": "b", "value": "1"}}),
        ),
        scope("/v1/tool-calls", call),
    ]
}

async fn a_scope_without_a_thread_has_its_own_limit(backend: Backend) {
    let server = limited(backend, THREAD_WRITES, "1/1d");
    let client = server.client();
    for name in ["a", "b"] {
        let scope = format!("session:{name}");
        let body = json!({"scope": scope, "arguments": {"key": "k", "value": "1"}});
        client.back_end("/v1/tools/kv_write", &body).ok().await;

        limited_by(
            "thread_writes",
            client.back_end("/v1/tools/kv_write", &body),
        )
        .await;
    }
}

async fn a_request_counts_once_and_its_repeat_once_more(backend: Backend) {
    let server = Server::builder(backend)
        .set(THREAD_WRITES, "5/1d")
        .set(WRITES, "5/1d")
        .start();
    let thread = server.client().thread();
    let call = |id: &str| {
        json!({
            "type": "tool_use", "id": id, "name": "kv_write", "input": {"key": id, "value": "1"},
        })
    };
    let calls = json!({"scope": "thread:current", "tool_use": [call("a"), call("b"), call("c")]});
    thread
        .post_with_thread_id("/v1/tool-calls", &calls.to_string())
        .ok()
        .await;
    thread.merge_patch(r#"{"k":{"x":1}}"#).ok().await;
    let keyed = || thread.put("state/k", "1").header("idempotency-key", "a");
    keyed().ok().await;
    let replayed = keyed().ok().await;
    // a request that is rejected for a different reason still counts towards the limit
    thread
        .put("state/k", "1")
        .header("if-match", "\"99\"")
        .refused(412, "version_mismatch")
        .await;

    assert_eq!(replayed.header("idempotency-replayed"), Some("true"));
    let problem = keyed().refused(429, "rate_limited").await;
    assert!(
        problem["detail"]
            .as_str()
            .unwrap()
            .ends_with("Nothing was changed.")
    );
}

async fn writes_over_a_thread_limit_do_not_count_for_the_address(backend: Backend) {
    let server = Server::builder(backend)
        .set(THREAD_WRITES, "1/1d")
        .set(NEW_THREADS, "3/1d")
        .set(WRITES, "3/1d")
        .start();
    let client = server.client();
    let thread = client.thread();
    thread.put("state/k", "1").ok().await;

    for _ in 0..5 {
        limited_by("thread_writes", thread.put("state/k", "2")).await;
    }

    for _ in 0..2 {
        client.thread().put("state/k", "1").ok().await;
    }
    let problem = client
        .thread()
        .put("state/k", "1")
        .refused(429, "rate_limited")
        .await;
    assert_ne!(problem["limit"], "thread_writes");
}

async fn clients_behind_a_trusted_proxy_count_separately(backend: Backend) {
    let direct = limited(backend, WRITES, "1/1d");
    let proxied = Server::builder(backend)
        .set(WRITES, "1/1d")
        .set("THREADKEEP_TRUSTED_PROXIES", "127.0.0.1")
        .start();
    let put = |server: &Server, address: &str| {
        let thread = server.client().thread();
        thread
            .put("state/k", "1")
            .header("x-forwarded-for", address)
    };

    for address in ["203.0.113.7", "2001:db8:1:2::1", "203.0.113.8"] {
        put(&proxied, address).ok().await;
        limited_by("writes", put(&proxied, address)).await;
    }
    limited_by("writes", put(&proxied, "2001:db8:1:2:3:4:5:6")).await;
    put(&proxied, "2001:db8:1:3::1").ok().await;
    put(&direct, "203.0.113.7").ok().await;
    limited_by("writes", put(&direct, "203.0.113.8")).await;
}

async fn reads_do_not_count(backend: Backend) {
    let server = Server::builder(backend)
        .set(THREAD_WRITES, "1/1d")
        .set(NEW_THREADS, "1/1d")
        .set(WRITES, "1/1d")
        .start();
    let thread = server.client().thread();
    for _ in 0..3 {
        thread.get("").ok().await;
        thread.get("state").ok().await;
        let body = r#"{"scope":"thread:current","key":"a"}"#;
        thread
            .post_with_thread_id("/v1/scopes/keys/get", body)
            .ok()
            .await;
        thread
            .post_with_thread_id("/v1/tools/kv_list", r#"{"scope":"thread:current"}"#)
            .ok()
            .await;
    }

    thread.put("state/k", "1").ok().await;
}

/// A merge must not read stored values if a limit rejects the request.
async fn a_merge_over_a_limit_reads_nothing(backend: Backend) {
    let server = limited(backend, THREAD_WRITES, "2/1d");
    let thread = server.client().thread();
    thread.put("state/k", "{}").ok().await;
    thread.merge_patch(r#"{"k":{"a":1}}"#).ok().await;
    let reads = async || {
        server.store_calls("get_values", "threads").await
            + server.store_calls("get_thread", "threads").await
    };
    let before = reads().await;

    limited_by("thread_writes", thread.merge_patch(r#"{"k":{"b":2}}"#)).await;
    let metadata = r#"{"metadata":{"b":2}}"#;
    limited_by("thread_writes", thread.patch("", metadata)).await;

    assert_eq!(reads().await, before);
    assert_eq!(thread.state().await, r#"{"k":{"a":1}}"#);
}

mod on_redis {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::support::until;

    #[tokio::test]
    async fn replicas_share_a_limit() {
        let first = Server::builder(Backend::Redis)
            .set(WRITES, "4/1d")
            .set(THREAD_WRITES, "3/1d")
            .start();
        let second = first.settings().start();
        let (client, other) = (first.client(), second.client());
        let thread = client.thread();
        let same = other.thread_of(&thread.id);
        thread.put("state/k", "1").ok().await;
        same.put("state/k", "2").ok().await;
        thread.put("state/k", "3").ok().await;

        limited_by("thread_writes", same.put("state/k", "4")).await;
        limited_by("thread_writes", thread.put("state/k", "4")).await;
        other.thread().put("state/k", "1").ok().await;
        limited_by("writes", client.thread().put("state/k", "1")).await;
        limited_by("writes", other.thread().put("state/k", "1")).await;
    }

    #[tokio::test]
    async fn addresses_are_not_stored_or_logged_and_every_counter_expires() {
        let redis = RedisServer::start();
        let server = Server::builder(Backend::Memory)
            .redis(&redis.url())
            .set(WRITES, "1/1m")
            .set(NEW_THREADS, "5/1m")
            .set(THREAD_WRITES, "5/1m")
            .set("THREADKEEP_TRUSTED_PROXIES", "127.0.0.1")
            .set("THREADKEEP_LOG", "trace")
            .start();
        let put = || {
            let thread = server.client().thread();
            thread
                .put("state/k", "1")
                .header("x-forwarded-for", "203.0.113.77")
        };
        put().ok().await;
        limited_by("writes", put()).await;

        let mut connection = redis.connection();
        let keys = redis.keys();
        let is_counter =
            |key: &&String| RATES.iter().any(|name| key.ends_with(&format!(":{name}")));
        let counters: Vec<_> = keys.iter().filter(is_counter).collect();
        assert_eq!(counters.len(), 3, "{keys:?}");
        for key in counters {
            let ends_ms: i64 = redis::cmd("PTTL").arg(key).query(&mut connection).unwrap();
            assert!(
                (1..=60_000).contains(&ends_ms),
                "{key} ends in {ends_ms} ms"
            );
        }
        assert!(!keys.concat().contains("203.0.113"), "{keys:?}");
        assert!(!server.log().contains("203.0.113"));
    }

    const RATES: [&str; 3] = ["new_threads", "writes", "thread_writes"];

    #[tokio::test]
    async fn a_limited_write_waits_for_an_unreachable_store_only_once() {
        let redis = RedisServer::start();
        let timeout = Duration::from_millis(1_000);
        let server = Server::builder(Backend::Memory)
            .redis(&redis.url())
            .set(WRITES, "1/1d")
            .set(NEW_THREADS, "1/1d")
            .set(THREAD_WRITES, "1/1d")
            .set("THREADKEEP_STORE_TIMEOUT_MS", timeout.as_millis())
            .start();
        let thread = server.client().thread();
        let mut times = Vec::new();
        // retry: waiting for the store twice takes two timeouts every time, but a pause of the machine delays only
        // some requests
        for _ in 0..20 {
            // the first of these writes succeeds; all later writes exceed the limit
            until(async || thread.put("state/k", "1").send().await.status == 429).await;
            redis.suspend();

            let start = Instant::now();
            let answer = thread.put("state/k", "2").send().await;
            let took = start.elapsed();

            redis.resume();
            answer.problem(503, "store_unavailable");
            assert_eq!(answer.header("retry-after"), Some("1"));
            if took < 2 * timeout {
                return;
            }
            times.push(took);
        }
        panic!("{times:?}");
    }
}

with_own_servers!(
    writes_from_an_address_are_limited,
    back_ends_are_not_limited_by_address,
    a_key_lifts_only_the_limits_of_calls_that_its_rights_cover,
    new_threads_from_an_address_are_limited,
    writes_to_a_thread_are_limited_for_all_callers,
    a_scope_without_a_thread_has_its_own_limit,
    a_request_counts_once_and_its_repeat_once_more,
    writes_over_a_thread_limit_do_not_count_for_the_address,
    clients_behind_a_trusted_proxy_count_separately,
    reads_do_not_count,
    a_merge_over_a_limit_reads_nothing,
);
