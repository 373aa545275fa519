use reqwest::Method;
use serde_json::json;

use super::{Kv, ask, refused};
use crate::http::{over_both_stores, with_own_servers};
use crate::support::redis::RedisServer;
use crate::support::server::{API_SECRET, Backend, RELAY_SECRET, Server};

async fn requests_without_a_valid_api_key_are_rejected(server: &Server) {
    let kv = Kv::new(server);
    kv.set("k", "secret").ok().await;
    let entry = format!("/kv/{}/k", kv.name);
    let thread = kv.client.thread();

    for (method, path) in [
        (Method::GET, entry.as_str()),
        (Method::PUT, &entry),
        (Method::DELETE, &entry),
        (Method::PATCH, &entry),
        (Method::POST, "/kv/n"),
        (Method::DELETE, "/kv/n"),
        (Method::GET, "/kv/keys/n"),
        (Method::GET, "/kv/search/n/k"),
        (Method::GET, "/kv/namespaces"),
        (Method::GET, "/kv/stats"),
        (Method::GET, "/kv/stats/%FF"),
        (Method::GET, "/kv/2025-03-17/keys/n"),
        (Method::GET, "/kv"),
        (Method::GET, "/kv/"),
        (Method::GET, "/kv/a/b/c/d"),
        (Method::POST, "/session"),
        (Method::GET, "/session"),
    ] {
        for key in ["", "Bearer", "Bearer ", "Bearer wrong", API_SECRET] {
            let request = kv
                .client
                .request(method.clone(), path)
                .header("authorization", key)
                .header("x-thread-id", &thread.signed)
                .body(vec![b'x'; 100_000]);
            refused(request, 401).await;
        }
    }
    let answer = kv.client.get(&entry).send().await;
    assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
    let answer = kv.client.get(&entry).bearer("wrong").send().await;
    let challenge = answer.header("www-authenticate");
    assert_eq!(challenge, Some(r#"Bearer error="invalid_token""#));
    assert_eq!(kv.get("k").ok().await.text(), "secret");
    kv.client.get(&entry).bearer(RELAY_SECRET).ok().await;
}

async fn unknown_paths_and_methods_get_the_protocols_errors(server: &Server) {
    let client = server.client();
    for path in ["/kv", "/kv/a/b/c/d", "/kv/2025-03-17/a/b/c/d"] {
        refused(ask(&client, Method::GET, path), 404).await;
    }
    for (method, path, allow) in [
        (Method::PATCH, "/kv/a/b", "GET, PUT, DELETE"),
        (Method::POST, "/kv/a/b", "GET, PUT, DELETE"),
        (Method::GET, "/kv/a/b/60", "PUT"),
        (Method::GET, "/kv/a", "POST, DELETE"),
        (Method::PUT, "/kv/a", "POST, DELETE"),
        (Method::GET, "/kv/2025-03-17/a", "POST, DELETE"),
        (Method::GET, "/session", "POST, PUT"),
    ] {
        let answer = ask(&client, method.clone(), path).send().await;
        assert_eq!(answer.header("allow"), Some(allow), "{method} {path}");
        refused(ask(&client, method, path), 405).await;
    }
}

async fn malformed_bodies_and_headers_change_nothing(server: &Server) {
    let kv = Kv::new(server);
    for bad in [
        "{",
        "null",
        "60",
        "[60]",
        r#"{"default_ttl_seconds":"60"}"#,
        r#"{"default_ttl_seconds":[60]}"#,
        r#"{"default_ttl_seconds":true}"#,
        r#"{"default_ttl_seconds":1e999}"#,
    ] {
        refused(kv.namespace(Method::POST).json(bad), 400).await;
    }
    let not_text = kv.namespace(Method::POST).body(vec![b'{', 0xff, b'}']);
    refused(not_text, 400).await;
    let large = format!("\"{}\"", "x".repeat(2 * 1_048_576));
    refused(kv.namespace(Method::POST).json(&large), 413).await;
    for (name, value) in [
        ("content-type", "json"),
        ("content-type", "é/x"),
        ("content-encoding", "a b"),
        ("content-type", &format!("text/{}", "x".repeat(251))),
    ] {
        let text = refused(kv.set("k", "x").header(name, value), 400).await;
        assert!(text.contains("content"), "{text}");
    }
    let twice = kv.set("k", "x").header("content-type", "text/a");
    refused(twice.header("content-type", "text/b"), 400).await;

    let names = ask(&kv.client, Method::GET, "/kv/namespaces").ok().await;
    let names = names.json();
    assert!(!names.as_array().unwrap().contains(&json!(kv.name)));
}

async fn names_and_values_appear_in_no_log_and_no_metric(backend: Backend) {
    let server = Server::builder(backend)
        .set("THREADKEEP_LOG", "debug")
        .start();
    let kv = Kv::named(&server, "name-to-hide");
    for request in [
        kv.namespace(Method::POST).json("{}"),
        kv.set("key-to-hide", "value-to-hide"),
        kv.set_with_ttl("key-to-hide", "ttl-to-hide", "value-to-hide"),
        kv.get("key-to-hide"),
        kv.get("other-to-hide"),
        kv.set("key-to-hide", "value-to-hide".repeat(100_000)),
        kv.search("key-to-hide"),
        kv.list("keys"),
        kv.list("stats"),
        kv.at_old_path().get("key-to-hide"),
        kv.ask(Method::GET, "/stats?name=name-to-hide"),
        kv.ask(Method::GET, "/a/b/c/path-to-hide"),
        ask(&kv.client, Method::POST, "/session").body("value-to-hide"),
        kv.client
            .get("/kv/name-to-hide/key-to-hide")
            .bearer("to-hide"),
    ] {
        request.send().await;
    }
    let metrics = kv.client.get("/metrics").ok().await.text();
    assert!(server.stop().success());

    let log = server.log();
    assert!(
        !log.contains("to-hide") && !log.contains(API_SECRET),
        "{log}"
    );
    assert!(!metrics.contains("to-hide"), "{metrics}");
    for route in [
        "/kv/{namespace}",
        "/kv/{namespace}/{key}",
        "/kv/{namespace}/{key}/{ttl}",
        "/kv/search/{namespace}/{keyword}",
        "/kv/keys/{namespace}",
        "/kv/stats/{namespace}",
        "/kv/stats",
        "/kv/2025-03-17/{namespace}/{key}",
        "/session",
    ] {
        let label = format!("route=\"{route}\"");
        assert!(metrics.contains(&label), "{route} in {metrics}");
    }
}

#[tokio::test]
async fn an_unavailable_store_is_reported_and_logged() {
    let redis = RedisServer::start();
    let server = Server::builder(Backend::Memory)
        .redis(&redis.url())
        .set("THREADKEEP_STORE_TIMEOUT_MS", 5_000)
        // the default level does not log requests that are rejected while Redis is known to be unavailable
        .set("THREADKEEP_LOG", "threadkeep=debug")
        .start();
    let kv = Kv::new(&server);
    kv.set("k", "x").ok().await;

    redis.kill();

    for request in [
        kv.get("k"),
        kv.set("k", "y"),
        kv.delete("k"),
        kv.namespace(Method::POST),
        kv.namespace(Method::DELETE),
        kv.list("keys"),
        kv.list("stats"),
        kv.search("k"),
        kv.ask(Method::GET, "/namespaces"),
        kv.ask(Method::GET, "/stats"),
        kv.ask(Method::GET, "/stats?sort=size"),
    ] {
        let text = refused(request, 503).await;
        assert_eq!(text, "the store is not available");
    }
    let answer = kv.get("k").send().await;
    assert_eq!(answer.header("retry-after"), Some("1"));
    let session = answer.header("x-session-id").unwrap();
    let line = server.await_log(|line| line.contains(session));
    assert!(line.contains("/kv/{namespace}/{key}"), "{line}");
    assert!(line.contains("the store is unavailable: "), "{line}");
}

#[tokio::test]
async fn an_answer_that_cannot_be_finished_is_cut_off() {
    let redis = RedisServer::start();
    let server = Server::builder(Backend::Memory)
        .redis(&redis.url())
        .set("THREADKEEP_STORE_TIMEOUT_MS", 5_000)
        .start();
    let kv = Kv::new(&server);
    // the answer is larger than the socket buffers, so the server cannot finish sending it before the client reads
    for number in 0..60 {
        kv.set(&number.to_string(), vec![b'x'; 1_000_000])
            .ok()
            .await;
    }

    let begun = kv.search("").begin().await;
    assert_eq!(begun.status().as_u16(), 200);
    redis.kill();

    assert!(begun.bytes().await.is_err());
    server.await_log(|line| line.contains("answer ended early"));
}

over_both_stores!(
    requests_without_a_valid_api_key_are_rejected,
    unknown_paths_and_methods_get_the_protocols_errors,
    malformed_bodies_and_headers_change_nothing,
);
with_own_servers!(names_and_values_appear_in_no_log_and_no_metric);
