use ::modelrelay::StateHandleCreateRequest;
use ::modelrelay::{ApiKey, Client, ListStateHandlesOptions, RetryConfig};
use reqwest::Method;

use super::{api_error, ask, client_at, get, post, refused};
use crate::http::over_both_stores;
use crate::support::redis::RedisServer;
use crate::support::server::Backend;
use crate::support::server::{API_SECRET, RELAY_SECRET, Server};

fn client_with(server: &Server, key: &str) -> Client {
    Client::with_key(ApiKey::parse(key).unwrap())
        .base_url(format!("http://{}/api/v1", server.address()))
        .retry(RetryConfig::disabled())
        .build()
        .unwrap()
}

async fn requests_without_a_valid_api_key_are_rejected(server: &Server) {
    let wrong = client_with(server, "mr_sk_wrong").state_handles();

    let error = api_error(wrong.list(ListStateHandlesOptions::default()).await);

    assert!(error.is_unauthorized(), "{error:?}");
    assert_eq!(error.status, 401);
    assert!(error.request_id.is_some());
    for (key, challenge) in [
        ("Bearer mr_sk_wrong", r#"Bearer error="invalid_token""#),
        ("", "Bearer"),
    ] {
        let request = server.client().get("/sessions");
        let answer = request.header("authorization", key).send().await;
        assert_eq!(answer.header("www-authenticate"), Some(challenge));
    }
    for path in [
        "/api/v1/sessions",
        "/api/v1/state-handles/x",
        "/api/v1/tool-calls",
        "/api/v1/unknown",
        "/api/v1",
        "/sessions",
        "/runs/x/events",
    ] {
        for (name, value) in [
            ("x-none", ""),
            ("x-modelrelay-api-key", ""),
            ("x-modelrelay-api-key", "mr_sk_"),
            ("authorization", "Bearer mr_sk_wrong"),
            ("authorization", RELAY_SECRET),
        ] {
            let request = server.client().get(path).header(name, value);
            refused(request, 401, "UNAUTHORIZED").await;
        }
    }
}

async fn a_key_is_accepted_in_either_header_and_at_either_root(server: &Server) {
    let client = server.client();
    for path in ["/api/v1/sessions", "/sessions"] {
        for key in [RELAY_SECRET, API_SECRET] {
            client.get(path).bearer(key).ok().await;
            let by_header = client.get(path).header("x-modelrelay-api-key", key);
            by_header.bearer("wrong").ok().await;
            let by_bearer = client.get(path).header("x-modelrelay-api-key", "wrong");
            by_bearer.bearer(key).ok().await;
        }
    }
    let at_the_root = client_at(&format!("http://{}", server.address()));
    let at_the_root = at_the_root.state_handles();
    at_the_root
        .list(ListStateHandlesOptions::default())
        .await
        .unwrap();
    let with_token = Client::with_token(API_SECRET)
        .base_url(format!("http://{}/api/v1/", server.address()))
        .build()
        .unwrap();
    let with_token = with_token.state_handles();
    with_token
        .list(ListStateHandlesOptions::default())
        .await
        .unwrap();
}

async fn every_answer_carries_the_id_of_its_request(server: &Server) {
    let id = "req-0123456789.~!";
    let longest = "x".repeat(128);
    for ok in [id, &longest] {
        let request = get(server, "/sessions").header("x-modelrelay-request-id", ok);
        let answer = request.ok().await;
        assert_eq!(answer.header("x-modelrelay-request-id"), Some(ok));
        let request = get(server, "/unknown").header("x-modelrelay-request-id", ok);
        let answer = request.send().await;
        assert_eq!(answer.header("x-modelrelay-request-id"), Some(ok));
    }
    for bad in ["", "a b", "é", &"x".repeat(129)] {
        let request = get(server, "/sessions").header("x-modelrelay-request-id", bad);
        let answer = request.ok().await;
        let ours = answer.header("x-session-id");
        assert_eq!(answer.header("x-modelrelay-request-id"), ours, "{bad}");
    }
}

async fn unknown_paths_and_methods_get_the_protocols_errors(server: &Server) {
    for path in [
        "",
        "/",
        "/unknown",
        "/responses",
        "/sessions/a/b/c",
        "/runs/x/y",
    ] {
        refused(get(server, path), 404, "NOT_FOUND").await;
    }
    for (method, path, allow) in [
        (Method::PUT, "/sessions", "GET, POST"),
        (Method::GET, "/runs", "POST"),
        (Method::POST, "/sessions/x", "GET, PATCH, DELETE"),
        (Method::DELETE, "/runs/x/events", "GET"),
        (Method::GET, "/tool-calls", "POST"),
    ] {
        let answer = ask(server, method.clone(), path).send().await;
        assert_eq!(answer.header("allow"), Some(allow), "{path}");
        refused(ask(server, method, path), 405, "METHOD_NOT_ALLOWED").await;
    }
}

async fn malformed_ids_pages_and_keys_are_refused(server: &Server) {
    for id in ["x", "6c8b7f2e3f4a4a659c1e0f9f3c7c2d11", "%20", "a%2Fb"] {
        for path in ["/sessions", "/state-handles", "/runs"] {
            let request = get(server, &format!("{path}/{id}"));
            refused(request, 400, "INVALID_INPUT").await;
        }
    }
    for query in [
        "limit=0",
        "limit=101",
        "limit=x",
        "limit=",
        "offset=-1",
        "cursor=x",
        "offset=1&cursor=1",
        "limit=1&limit=2",
        "unknown=1",
    ] {
        for path in ["/sessions", "/state-handles"] {
            let request = get(server, &format!("{path}?{query}"));
            refused(request, 400, "INVALID_INPUT").await;
        }
    }
    let request = get(server, "/sessions?customer_id=x");
    refused(request, 400, "VALIDATION_ERROR").await;
    for key in ["", "a b", &"x".repeat(129)] {
        let request = post(server, "/sessions", "{}").header("idempotency-key", key);
        refused(request, 400, "INVALID_INPUT").await;
    }
}

async fn malformed_bodies_create_nothing(server: &Server) {
    for path in ["/sessions", "/state-handles"] {
        for bad in ["{", "nonsense", "{} {}", "{\"a\":}"] {
            refused(post(server, path, bad), 400, "INVALID_INPUT").await;
        }
        for bad in ["[]", "1", "null", r#"{"unknown":1}"#] {
            refused(post(server, path, bad), 400, "VALIDATION_ERROR").await;
        }
        let not_text = ask(server, Method::POST, path).body(vec![b'{', 0xff, b'}']);
        refused(not_text, 400, "INVALID_INPUT").await;
        let deep = format!("{}{}", "[".repeat(600), "]".repeat(600));
        refused(post(server, path, &deep), 400, "INVALID_INPUT").await;
        let large = format!("\"{}\"", "x".repeat(2 * 1_048_576));
        refused(post(server, path, &large), 413, "VALIDATION_ERROR").await;
    }
    for bad in [
        r#"{"ttl_seconds":0}"#,
        r#"{"ttl_seconds":31536001}"#,
        r#"{"ttl_seconds":-1}"#,
        r#"{"ttl_seconds":1.5}"#,
        r#"{"ttl_seconds":"60"}"#,
    ] {
        refused(post(server, "/state-handles", bad), 400, "VALIDATION_ERROR").await;
    }
    for bad in [
        r#"{"customer_id":"x"}"#,
        r#"{"metadata":[]}"#,
        r#"{"metadata":1}"#,
    ] {
        refused(post(server, "/sessions", bad), 400, "VALIDATION_ERROR").await;
    }
}

#[tokio::test]
async fn an_unavailable_store_is_reported_and_recovers() {
    let redis = RedisServer::start();
    let server = Server::builder(Backend::Memory)
        .redis(&redis.url())
        .set("THREADKEEP_STORE_TIMEOUT_MS", 5_000)
        .start();
    let handles = client_with(&server, RELAY_SECRET).state_handles();
    let kept = handles
        .create(StateHandleCreateRequest { ttl_seconds: None })
        .await;
    redis.suspend();

    let listed = handles.list(ListStateHandlesOptions::default()).await;
    let made = handles
        .create(StateHandleCreateRequest { ttl_seconds: None })
        .await;

    assert!(api_error(listed).is_unavailable());
    let made = api_error(made);
    assert!(made.is_unavailable());
    assert!(!made.message.to_lowercase().contains("redis"), "{made}");
    let answer = get(&server, "/sessions").send().await;
    assert!(answer.header("retry-after").is_some());
    redis.resume();
    let kept = kept.unwrap().id;
    crate::support::until(async || {
        let listed = handles.list(ListStateHandlesOptions::default()).await;
        listed.is_ok_and(|page| page.state_handles.iter().any(|handle| handle.id == kept))
    })
    .await;
}

async fn errors_do_not_repeat_what_was_sent(server: &Server) {
    let secret = "hunter2, expected ".repeat(1_000);
    let query = format!("/sessions?{}=1", "hunter2".repeat(1_000));
    for answer in [
        post(
            server,
            "/sessions",
            &format!(r#"{{"metadata":"{secret}"}}"#),
        ),
        post(server, "/sessions", &format!(r#"{{"{secret}":1}}"#)),
        post(server, "/state-handles", r#"{"ttl_seconds":"hunter2"}"#),
        get(server, &query),
    ] {
        let answer = answer.send().await;
        assert_eq!(answer.status, 400);
        let text = answer.json()["message"].as_str().unwrap().to_owned();
        assert!(
            !text.contains("hunter2") && text.contains(", expected "),
            "{text}"
        );
    }
}

async fn a_list_is_not_accepted_as_an_object(server: &Server) {
    for (path, body) in [
        ("/sessions", "[null,null]"),
        ("/runs", r#"{"options":["key"]}"#),
        ("/tool-calls", r#"{"tool_calls":[["1","kv_list",{},null]]}"#),
        (
            "/tool-calls",
            r#"{"tool_calls":[{"function":["kv_list",{}]}]}"#,
        ),
    ] {
        refused(post(server, path, body), 400, "VALIDATION_ERROR").await;
    }
}

over_both_stores!(
    requests_without_a_valid_api_key_are_rejected,
    a_key_is_accepted_in_either_header_and_at_either_root,
    every_answer_carries_the_id_of_its_request,
    unknown_paths_and_methods_get_the_protocols_errors,
    malformed_ids_pages_and_keys_are_refused,
    malformed_bodies_create_nothing,
    errors_do_not_repeat_what_was_sent,
    a_list_is_not_accepted_as_an_object,
);
