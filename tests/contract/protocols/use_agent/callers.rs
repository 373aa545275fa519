use reqwest::Method;
use serde_json::json;

use super::{App, ids, refusal, refused, thread_id_for, unique};
use crate::http::{over_both_stores, with_own_servers};
use crate::support::client::{Client, Request};
use crate::support::server::{API_SECRET, Backend, Builder, Server};

fn with_header(backend: Backend) -> Builder {
    Server::builder(backend)
        .set("THREADKEEP_OWNER", "header")
        .set("THREADKEEP_IDENTITY_HEADER", "x-user")
        .set("THREADKEEP_TRUSTED_PROXIES", "127.0.0.1")
}

fn by(client: &Client, user: &str, method: Method, path: &str) -> Request {
    let request = client.request(method, &format!("/api/threads{path}"));
    request.header("x-user", user)
}

async fn requests_without_an_api_key_are_rejected(server: &Server) {
    let (app, name) = (App::of(server), unique());
    app.post(&json!({"id": name, "userId": "ann"})).ok().await;
    let client = server.client();
    for (method, path) in [
        (Method::GET, "/api/threads?userId=ann".to_owned()),
        (Method::POST, "/api/threads".into()),
        (Method::GET, format!("/api/threads/{name}")),
        (Method::PATCH, format!("/api/threads/{name}")),
        (Method::DELETE, format!("/api/threads/{name}")),
        (Method::PUT, "/api/threads".into()),
    ] {
        let request = || {
            client
                .request(method.clone(), &path)
                .json(r#"{"userId":"ann"}"#)
        };
        refused(request(), 401, "api_key_required").await;
        let unknown = request().bearer("an-api-key-that-nobody-has-given-to-anyone");
        let answer = unknown.send().await;
        refusal(&answer, 401, "invalid_api_key");
        let challenge = answer.header("www-authenticate");
        assert_eq!(challenge, Some(r#"Bearer error="invalid_token""#));
        // a signed id is not accepted here
        let thread = client.thread_of(&thread_id_for(&name));
        let signed = request().header("x-thread-id", &thread.signed);
        refused(signed, 401, "api_key_required").await;
    }
    let large = client
        .post("/api/threads")
        .json(&format!("\"{}\"", "x".repeat(100_000)));
    refused(large, 401, "api_key_required").await;
}

async fn a_user_can_use_only_their_own_threads(backend: Backend) {
    let server = with_header(backend).start();
    let (app, client) = (App::of(&server), server.client());
    let (ann, bob) = (unique(), unique());
    let of_bob = unique();
    app.post(&json!({"id": of_bob, "userId": bob})).ok().await;
    let ask = |method: Method, path: &str| by(&client, &ann, method, path);
    let post = |body: serde_json::Value| ask(Method::POST, "").json(&body.to_string());

    let made = post(json!({"title": "Mine"})).ok().await.json();
    let name = made["threadId"].as_str().unwrap();
    let path = format!("/{name}");
    for query in ["".to_owned(), format!("?userId={ann}&channelKey=ignored")] {
        assert_eq!(ids(&ask(Method::GET, &query).ok().await.json()), [name]);
    }
    post(json!({"id": name, "userId": ann})).ok().await;
    ask(Method::GET, &path).ok().await;
    ask(Method::PATCH, &path)
        .json(r#"{"title":"T"}"#)
        .ok()
        .await;
    assert_eq!(app.open(name).await["thread"]["title"], "T");

    let before = app.at_v1(Method::GET, &of_bob, "").ok().await.json()["version"].clone();
    let other = format!("/{of_bob}");
    for request in [
        ask(Method::GET, &format!("?userId={bob}")),
        post(json!({"userId": bob})),
        post(json!({"id": of_bob})),
        ask(Method::GET, &other),
        ask(Method::PATCH, &other).json(r#"{"title":"T"}"#),
        ask(Method::DELETE, &other),
    ] {
        refused(request, 403, "not_the_owner").await;
    }
    for request in [
        ask(Method::GET, "?channelKey=c"),
        post(json!({"channelKey": "c"})),
    ] {
        refused(request, 401, "api_key_required").await;
    }
    assert_eq!(
        app.at_v1(Method::GET, &of_bob, "").ok().await.json()["version"],
        before
    );
    for _ in 0..2 {
        assert_eq!(ask(Method::DELETE, &path).send().await.status, 204);
    }
    let unknown = format!("/{}", unique());
    refused(ask(Method::GET, &unknown), 404, "not_found").await;
    assert_eq!(ask(Method::DELETE, &unknown).send().await.status, 204);
    let channel = by(&client, "channel:c", Method::GET, "");
    refused(channel, 400, "invalid_parameter").await;
    refused(client.get("/api/threads"), 401, "owner_required").await;
}

async fn a_user_cannot_claim_a_thread_without_an_owner(backend: Backend) {
    let server = with_header(backend).start();
    let (app, client) = (App::of(&server), server.client());
    let (ann, name) = (unique(), unique());
    app.append_message(&name, "1", "a secret").await;
    let ask = |method: Method, path: &str| by(&client, &ann, method, path);
    let path = format!("/{name}");

    for request in [
        ask(Method::POST, "").json(&json!({"id": name}).to_string()),
        ask(Method::GET, &path),
        ask(Method::PATCH, &path).json(r#"{"title":"T"}"#),
        ask(Method::DELETE, &path),
    ] {
        refused(request, 403, "not_the_owner").await;
    }

    let thread = app.at_v1(Method::GET, &name, "").ok().await.json();
    assert_eq!(thread["owner"], serde_json::Value::Null);
    // a back end may assign this thread to a user
    app.post(&json!({"id": name, "userId": ann})).ok().await;
    ask(Method::GET, &path).ok().await;
}

async fn an_api_key_needs_rights_to_threads(backend: Backend) {
    let secret = |name: &str| format!("a-secret-of-the-key-{name}-that-is-long-enough");
    let names = ["read", "write", "other"];
    let keys = names
        .map(|name| format!("{name}:{}", secret(name)))
        .join(",");
    let server = with_header(backend)
        .set("THREADKEEP_API_KEYS", format!("ops:{API_SECRET},{keys}"))
        .set(
            "THREADKEEP_API_KEY_RIGHTS",
            "read:threads.read,write:threads,other:scopes",
        )
        .start();
    let (client, user) = (server.client(), unique());
    let ask = |name: &str, method: Method, path: &str| {
        let request = client.request(method, &format!("/api/threads{path}"));
        request
            .bearer(&secret(name))
            .json(&json!({"userId": user, "id": user}).to_string())
    };

    ask("write", Method::POST, "").ok().await;

    for name in ["read", "write"] {
        ask(name, Method::GET, &format!("?userId={user}"))
            .ok()
            .await;
        ask(name, Method::GET, &format!("/{user}")).ok().await;
    }
    for (name, method) in [
        ("read", Method::DELETE),
        ("other", Method::GET),
        ("other", Method::DELETE),
    ] {
        let text = refused(ask(name, method, &format!("/{user}")), 403, "right_missing").await;
        assert!(text.contains("threads"), "{text}");
    }
    refused(
        ask("other", Method::GET, &format!("?userId={user}")),
        403,
        "right_missing",
    )
    .await;
}

async fn an_owner_has_a_limited_number_of_threads(backend: Backend) {
    let server = with_header(backend)
        .set("THREADKEEP_MAX_THREADS_PER_OWNER", 2)
        .start();
    let (app, user) = (App::of(&server), unique());
    let unowned = unique();
    app.append_message(&unowned, "1", "hello").await;
    for _ in 0..2 {
        app.post(&json!({"userId": user})).ok().await;
    }

    for body in [
        json!({"userId": user}),
        json!({"userId": user, "id": unowned}),
    ] {
        refused(app.post(&body), 409, "too_many_threads").await;
    }

    assert_eq!(app.list(&user, "").await["total"], 2);
}

async fn an_owner_can_be_required(backend: Backend) {
    let server = with_header(backend)
        .set("THREADKEEP_OWNER_REQUIRED", true)
        .start();
    let client = server.client();

    refused(client.get("/api/threads"), 401, "owner_required").await;

    by(&client, "ann", Method::GET, "").ok().await;
}

over_both_stores!(requests_without_an_api_key_are_rejected);

with_own_servers!(
    a_user_can_use_only_their_own_threads,
    a_user_cannot_claim_a_thread_without_an_owner,
    an_api_key_needs_rights_to_threads,
    an_owner_has_a_limited_number_of_threads,
    an_owner_can_be_required,
);
