//! Tests that the protocol is available both at `/v1`, which is the base URL of `OpenAI`'s API, and at `/openai/v1`.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::{Value, json};

use super::responses::with_models;
use super::{Api, ids, message, missing, refused};
use crate::http::{over_both_stores, with_own_servers};
use crate::support::client::Request;
use crate::support::server::{API_SECRET, Backend, Server};
use crate::support::upstream::Upstream;

const BASES: [&str; 2] = ["/v1", "/openai/v1"];

fn ask(server: &Server, method: Method, path: &str) -> Request {
    let client = server.client();
    client.request(method, path).bearer(API_SECRET)
}

async fn both_base_urls_serve_the_same_conversations(server: &Server) {
    for (base, other) in [(BASES[0], BASES[1]), (BASES[1], BASES[0])] {
        let made = ask(server, Method::POST, &format!("{base}/conversations"));
        let body = json!({"metadata": {"a": "b"}, "items": [message("a")]});
        let made = made.json(&body.to_string()).ok().await.json();
        let path = |base: &str, rest: &str| {
            let id = made["id"].as_str().unwrap();
            format!("{base}/conversations/{id}{rest}")
        };

        let seen = ask(server, Method::GET, &path(other, "")).ok().await;
        assert_eq!(seen.json(), made);
        let added = ask(server, Method::POST, &path(base, "/items"));
        let added = added.json(&json!({"items": [message("b")]}).to_string());
        added.ok().await;
        let listed = ask(server, Method::GET, &path(other, "/items?order=asc"));
        assert_eq!(ids(&listed.ok().await.json()), ["a", "b"]);
        for base in BASES {
            let item = ask(server, Method::GET, &path(base, "/items/b"));
            assert_eq!(item.ok().await.json()["id"], "b");
            let head = ask(server, Method::HEAD, &path(base, "/items/b"));
            head.ok().await;
        }
        ask(server, Method::DELETE, &path(base, "/items/b"))
            .ok()
            .await;
        missing(ask(server, Method::GET, &path(other, "/items/b"))).await;
        ask(server, Method::DELETE, &path(base, "")).ok().await;
        missing(ask(server, Method::GET, &path(other, ""))).await;
    }
}

async fn missing_openai_paths_get_openais_errors(server: &Server) {
    for path in [
        "/v1/chat/completions",
        "/v1/chat/completions/chatcmpl_1",
        "/v1/completions",
        "/v1/embeddings",
        "/v1/files",
        "/v1/moderations",
        "/v1/audio/speech",
        "/v1/vector_stores",
        "/v1/models",
        "/v1/responses",
        "/v1/conversations/a/b",
        "/openai/v1/chat/completions",
        "/openai/v1",
    ] {
        for method in [Method::GET, Method::POST] {
            let request = ask(server, method, path).json("{}");
            let text = refused(request, 404, Some("unknown_url"), None).await;
            assert!(text.contains("/conversations"), "{path}: {text}");
            assert!(text.contains("models"), "{path}: {text}");
        }
        let anonymous = server.client().post(path).json("{}");
        refused(anonymous, 401, Some("invalid_api_key"), None).await;
    }
}

async fn paths_of_the_http_api_keep_their_errors(server: &Server) {
    for path in [
        "/v1",
        "/v1/",
        "/v1/nothing",
        "/v1/conversationsx",
        "/v1//models",
    ] {
        let request = ask(server, Method::GET, path);
        request.refused(404, "not_found").await;
    }
    let thread = "/v1/threads/thrd_00000000000000000000000000000000";
    let put = ask(server, Method::PUT, thread).json("{}");
    put.refused(405, "method_not_allowed").await;
    let below = ask(server, Method::GET, &format!("{thread}/conversations"));
    below.refused(404, "not_found").await;
}

async fn openapi_lists_the_methods_of_each_compatible_path(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let document = server.client().get("/openapi.json").ok().await.json();
    let mut roots = BTreeSet::new();

    for (path, item) in document["paths"].as_object().unwrap() {
        let operations = item.as_object().unwrap();
        let is_foreign = |operation: &Value| operation.get("externalDocs").is_some();
        if !operations.values().any(is_foreign) {
            continue;
        }
        let concrete = path.replace(['{', '}'], "");
        let refused = ask(&server, Method::PATCH, &concrete)
            .json("{}")
            .send()
            .await;
        assert_eq!(refused.status, 405, "{path}");
        let allowed = refused.header("allow").unwrap().split(", ");
        let allowed: BTreeSet<String> = allowed
            .filter(|method| *method != "HEAD")
            .map(str::to_lowercase)
            .collect();
        assert_eq!(allowed, operations.keys().cloned().collect(), "{path}");
        roots.extend(
            path.split('/')
                .filter(|part| !part.is_empty())
                .take(2)
                .map(str::to_owned),
        );
    }

    let named = ["v1", "conversations", "responses", "models", "mcp"];
    assert_eq!(roots, named.map(str::to_owned).into());
}

async fn statistics_name_the_route_at_each_base_url(backend: Backend) {
    let server = Server::start(backend);
    let conversation = Api::of(&server).create(&json!({})).await;
    for base in BASES {
        let path = format!("{base}/conversations/{}/items/a", conversation.id);
        missing(ask(&server, Method::GET, &path)).await;
        let unknown = ask(&server, Method::GET, &format!("{base}/files/secret"));
        refused(unknown, 404, Some("unknown_url"), None).await;
    }

    let stats = ask(&server, Method::GET, "/v1/stats").ok().await.json();

    let routes: Vec<&str> = stats["routes"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|row: &Value| row["route"].as_str())
        .collect();
    for base in BASES {
        let route = format!("{base}/conversations/{{conversation}}/items/{{item}}");
        assert!(routes.contains(&route.as_str()), "{route} in {routes:?}");
    }
    assert!(
        !routes.iter().any(|route| route.contains("secret")),
        "{routes:?}"
    );
}

async fn allowed_origins_can_use_both_base_urls(backend: Backend) {
    let server = Server::builder(backend)
        .set("THREADKEEP_CORS_ORIGINS", "https://app.example.com")
        .start();
    let answers = |base: &'static str| {
        let server = &server;
        async move {
            let path = format!("{base}/conversations");
            let preflight = server.client().request(Method::OPTIONS, &path);
            let preflight = preflight
                .header("origin", "https://app.example.com")
                .header("access-control-request-method", "POST")
                .header("access-control-request-headers", "authorization")
                .send()
                .await;
            let made = ask(server, Method::POST, &path).json("{}");
            let made = made.header("origin", "https://app.example.com").ok().await;
            let header = |name: &str| made.header(name).map(str::to_owned);
            let preflighted = |name: &str| preflight.header(name).map(str::to_owned);
            (
                preflight.status,
                preflighted("access-control-allow-origin"),
                preflighted("access-control-allow-headers"),
                header("access-control-allow-origin"),
                header("cache-control"),
                header("vary"),
                header("x-thread-id"),
            )
        }
    };

    let (new, old) = (answers(BASES[0]).await, answers(BASES[1]).await);

    assert_eq!(new, old);
    assert_eq!(new.1.as_deref(), Some("https://app.example.com"));
}

over_both_stores!(
    both_base_urls_serve_the_same_conversations,
    missing_openai_paths_get_openais_errors,
    paths_of_the_http_api_keep_their_errors,
    openapi_lists_the_methods_of_each_compatible_path,
);

with_own_servers!(
    statistics_name_the_route_at_each_base_url,
    allowed_origins_can_use_both_base_urls,
);
