use std::time::{Duration, Instant};

use reqwest::Method;

use super::entries::Space;
use crate::support::client::{OwnThread, Request};
use crate::support::redis::RedisServer;
use crate::support::server::{API_SECRET, Backend, Server};
use crate::support::until;

const TIMEOUT: Duration = Duration::from_secs(2);
/// Time after which a request counts as hanging. Much longer than [`TIMEOUT`], because the machine may be busy.
const HANG_LIMIT: Duration = Duration::from_secs(60);

/// Retries a write until it succeeds, because Redis may be busy and answer too late at first.
async fn write(thread: &OwnThread, json: &str) {
    until(async || thread.put("state/k", json).send().await.status == 200).await;
}

fn server_on(redis: &RedisServer) -> Server {
    Server::builder(Backend::Memory)
        .redis(&redis.url())
        .set("THREADKEEP_STORE_TIMEOUT_MS", TIMEOUT.as_millis())
        .start()
}

fn every_request(thread: &OwnThread) -> Vec<Request> {
    vec![
        thread.get(""),
        thread.get("state"),
        thread.get("state?key=k"),
        thread.get("state/k"),
        thread.get("state/k?tail=1"),
        thread.get("keys"),
        thread.get("state").header("if-none-match", "*"),
        thread.put("state/k", "1"),
        thread.put("state", "{}"),
        thread.delete("state/k"),
        thread.delete("state"),
        thread.post("state/k/push", "1"),
        thread.post("state/k/increment", "{}"),
        thread.merge(r#"[{"op":"clear"}]"#),
        thread.merge_patch(r#"{"k":{"x":1}}"#),
        thread.patch("", r#"{"metadata":{"a":1}}"#),
        thread.delete(""),
        thread.by_api_key(Method::GET, "state"),
        thread.get("history"),
        thread.post("history", r#"{"id":"a","value":1}"#),
        thread.post_with_thread_id("/v1/scopes/keys/get", r#"{"scope":"thread:current","key":"a"}"#),
        thread.post_with_thread_id("/v1/scopes/keys/increment", r#"{"scope":"thread:current","key":"a"}"#),
        thread.post_with_thread_id("/v1/scopes/tasks/set", r#"{"scope":"thread:current","tasks":[]}"#),
        thread.post_with_thread_id("/v1/tools/kv_list", r#"{"scope":"thread:current"}"#),
        thread.post_with_thread_id(
            "/v1/tool-calls",
            r#"{"scope":"thread:current","tool_use":[{"type":"tool_use","id":"1","name":"tasks_read"}]}"#,
        ),
    ]
}

async fn assert_unavailable(request: Request) {
    let start = Instant::now();

    let answer = request.send().await;

    let took = start.elapsed();
    let problem = answer.problem(503, "store_unavailable");
    let seconds: u32 = answer.header("retry-after").unwrap().parse().unwrap();
    assert!(seconds >= 1);
    assert!(took < HANG_LIMIT, "{took:?}");
    let detail = problem["detail"].as_str().unwrap().to_lowercase();
    assert!(!detail.contains("redis") && !detail.contains("127.0.0.1"));
}

#[tokio::test]
async fn an_unreachable_store_is_an_error_and_not_an_empty_thread() {
    let redis = RedisServer::start();
    let server = server_on(&redis);
    let thread = server.client().thread();
    write(&thread, "[1]").await;

    redis.kill();

    for request in every_request(&thread) {
        assert_unavailable(request).await;
    }
    let post = server.client().post("/v1/threads").json("{}");
    assert_unavailable(post).await;
}

#[tokio::test]
async fn an_entry_that_cannot_be_loaded_is_an_error_and_not_absent() {
    let redis = RedisServer::start();
    let server = server_on(&redis);
    let space = Space::new(&server);
    until(async || space.put("k", "1").send().await.status == 200).await;
    let every_request = || {
        [
            space.get("k"),
            space.request(Method::HEAD, "k"),
            space.put("k", "2"),
            space.put("k?ttl_seconds=60", "2"),
            space.delete("k"),
            space.get(""),
            space.request(Method::PUT, ""),
            space.delete(""),
            space.client.get("/v1/kv").bearer(API_SECRET),
        ]
    };

    redis.suspend();
    assert_unavailable(space.get("k")).await;
    redis.resume();
    until(|| async { space.get("k").send().await.status == 200 }).await;
    redis.kill();

    for (index, request) in every_request().into_iter().enumerate() {
        match index {
            // an answer to HEAD has no body, so only its status is checked
            1 => assert_eq!(request.send().await.status, 503),
            _ => assert_unavailable(request).await,
        }
    }
}

#[tokio::test]
async fn a_silent_store_is_an_error_after_the_timeout() {
    let redis = RedisServer::start();
    let server = server_on(&redis);
    let thread = server.client().thread();
    write(&thread, "[1]").await;

    redis.suspend();
    for request in [
        thread.get("state"),
        thread.put("state/k", "2"),
        thread.merge_patch(r#"{"k":{"x":1}}"#),
        thread.patch("", r#"{"metadata":{"a":1}}"#),
        thread.delete(""),
    ] {
        assert_unavailable(request).await;
    }
    redis.resume();

    until(|| async { thread.get("state").send().await.status == 200 }).await;
}

#[tokio::test]
async fn readiness_follows_the_store_and_liveness_does_not() {
    let redis = RedisServer::start();
    let server = server_on(&redis);
    let client = server.client();
    let status = |path: &'static str| {
        let client = client.clone();
        async move { client.get(path).send().await.status }
    };

    redis.kill();
    let (ready, alive) = (client.get("/readyz").send().await, status("/healthz").await);
    redis.restart();

    ready.problem(503, "store_unavailable");
    assert!(ready.header("retry-after").is_some());
    assert_eq!(alive, 200);
    until(|| async { status("/readyz").await == 200 }).await;
}

#[tokio::test]
async fn a_new_id_is_not_returned_while_the_store_is_unreachable() {
    let redis = RedisServer::start();
    let server = server_on(&redis);
    redis.kill();

    let answer = server.client().get("/v1/threads/current").send().await;

    answer.problem(503, "store_unavailable");
    assert_eq!(answer.header("x-thread-id"), None);
    assert_eq!(answer.header("set-cookie"), None);
}

#[tokio::test]
async fn invalid_requests_are_refused_without_the_store() {
    let redis = RedisServer::start();
    let server = server_on(&redis);
    let thread = server.client().thread();
    redis.kill();

    let forged = server
        .client()
        .get("/v1/threads/current")
        .header("x-thread-id", "bad");
    forged.refused(401, "invalid_thread_signature").await;
    let closed = server.client().get(&format!("/v1/threads/{}", thread.id));
    closed.refused(401, "api_key_required").await;
    thread
        .put("state/k", "{")
        .refused(400, "invalid_json")
        .await;
}

#[tokio::test]
async fn a_thread_outlives_the_process_in_redis() {
    let redis = RedisServer::start();
    let server = Server::builder(Backend::Memory).redis(&redis.url()).start();
    let thread = server.client().thread();
    let written = thread.put("state/k", "[1.0]").ok().await;
    let settings = server.settings();
    server.kill();

    let server = settings.start();

    let state = server
        .client()
        .thread_of(&thread.id)
        .get("state")
        .ok()
        .await;
    assert_eq!(state.text(), r#"{"k":[1.0]}"#);
    assert_eq!(state.etag(), written.etag());
}

#[tokio::test]
async fn two_prefixes_in_one_redis_are_isolated() {
    let redis = RedisServer::start();
    let start = || Server::builder(Backend::Memory).redis(&redis.url()).start();
    let (one, other) = (start(), start());
    let thread = one.client().thread();
    thread.put("state/k", "1").ok().await;

    let seen = other.client().thread_of(&thread.id).state().await;

    assert_eq!(seen, "{}");
}

#[tokio::test]
async fn a_store_failure_is_logged_without_the_password() {
    let redis = RedisServer::start_with(&["--requirepass", "password-to-hide"]);
    let url = redis.url().replace("://", "://:password-to-hide@");
    let server = Server::builder(Backend::Memory)
        .redis(&url)
        .set("THREADKEEP_LOG", "debug")
        .set("THREADKEEP_STORE_TIMEOUT_MS", TIMEOUT.as_millis())
        .start();
    let thread = server.client().thread();
    write(&thread, "1").await;

    redis.kill();
    let answer = thread.get("state").send().await;

    answer.problem(503, "store_unavailable");
    let session = answer.header("x-session-id").unwrap().to_owned();
    until(|| async { server.log().contains(&session) }).await;
    assert!(server.stop().success());
    assert!(
        !server.log().contains("password-to-hide"),
        "{}",
        server.log()
    );
}
