use reqwest::Method;
use serde_json::json;

use super::{App, refusal, refused, unique};
use crate::http::{over_both_stores, with_own_servers};
use crate::support::server::{Backend, Server};

async fn agent_routes_belong_to_the_app(server: &Server) {
    let client = server.client();
    for path in [
        "/api/chat",
        "/api/chat/cancel",
        "/api/approve-tool",
        "/api/realtime/token",
    ] {
        for method in [Method::POST, Method::GET] {
            let large = json!({"userMessage": "x".repeat(100_000)}).to_string();
            let text = refused(client.request(method, path).json(&large), 404, "not_found").await;
            assert!(text.contains("your app"), "{text}");
        }
    }
}

async fn unknown_paths_and_methods_get_the_protocols_errors(server: &Server) {
    let app = App::of(server);
    refused(app.ask(Method::GET, "/api/threads/a/b"), 404, "not_found").await;
    for (path, allow) in [
        ("/api/threads", "GET, HEAD, POST"),
        ("/api/threads/a", "GET, HEAD, PATCH, DELETE"),
    ] {
        let answer = app.ask(Method::PUT, path).json("{}").send().await;
        refusal(&answer, 405, "method_not_allowed");
        assert_eq!(answer.header("allow"), Some(allow));
    }
    let large = app
        .ask(Method::POST, "/api/threads")
        .json(&"x".repeat(2_097_153));
    refused(large, 413, "body_too_large").await;
    let key = app
        .post(&json!({"userId": "ann"}))
        .header("idempotency-key", "a b");
    refused(key, 400, "invalid_parameter").await;
}

async fn configured_origins_may_call(backend: Backend) {
    let server = Server::builder(backend)
        .set("THREADKEEP_CORS_ORIGINS", "https://app.example")
        .start();
    for method in ["GET", "POST", "PATCH", "DELETE"] {
        let preflight = server.client().request(Method::OPTIONS, "/api/threads/a");
        let preflight = preflight
            .header("origin", "https://app.example")
            .header("access-control-request-method", method)
            .header(
                "access-control-request-headers",
                "authorization,content-type,idempotency-key",
            );
        let answer = preflight.send().await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let allowed = answer.header("access-control-allow-methods").unwrap();
        assert!(allowed.contains(method), "{allowed}");
    }
    let app = App::of(&server);
    let answer = app.ask(Method::GET, &format!("/api/threads?userId={}", unique()));
    let answer = answer.header("origin", "https://app.example").ok().await;
    assert_eq!(
        answer.header("access-control-allow-origin"),
        Some("https://app.example")
    );
    assert!(
        answer
            .header("access-control-expose-headers")
            .unwrap()
            .contains("x-session-id")
    );
}

over_both_stores!(
    agent_routes_belong_to_the_app,
    unknown_paths_and_methods_get_the_protocols_errors,
);

with_own_servers!(configured_origins_may_call);
