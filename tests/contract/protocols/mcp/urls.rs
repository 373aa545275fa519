use serde_json::{Value, json};

use super::{Mcp, bearer, unique};
use crate::http::{over_both_stores, with_own_servers};
use crate::support::client::Client;
use crate::support::server::{API_SECRET, Backend, Server};
use crate::support::until;

async fn make(client: &Client, body: Value) -> Value {
    let request = client.post("/v1/mcp-urls").bearer(API_SECRET);
    request.json(&body.to_string()).ok().await.json()
}

async fn url(client: &Client, scope: &str) -> String {
    let made = make(client, json!({"scope": scope})).await;
    assert_eq!(made["scope"], scope);
    assert_eq!(made["expires_at"], Value::Null);
    made["url"].as_str().unwrap().into()
}

async fn a_url_grants_access_to_its_scope(server: &Server) {
    let client = server.client();
    let name = format!("{}&é=+/%", unique());
    let url = url(&client, &format!("session:{name}")).await;
    // if `public_url` is not set, the created URL contains the address to which the client sent its request
    let address = format!("http://{}/mcp?", server.address());
    assert!(url.starts_with(&address), "{url}");
    let mcp = Mcp::anonymous(&client).at(url);

    mcp.call("kv_write", json!({"key": "k", "value": "v"}))
        .await;

    let session = Mcp::session(&client, &name);
    assert_eq!(session.keys().await, json!(["k"]));
    let other = Mcp::session(&client, &unique());
    assert_eq!(other.keys().await, json!([]));
}

async fn every_kind_of_scope_can_have_a_url(server: &Server) {
    let client = server.client();
    let thread = client.thread().id;
    let uuid = "6c8b7f2e-3f4a-4a65-9c1e-0f9f3c7c2d11";

    for scope in [
        format!("thread:{thread}"),
        format!("state:{uuid}"),
        format!("run:{uuid}"),
        format!("tool:{}", unique()),
        format!("personality:{}", unique()),
        "request".into(),
    ] {
        let mcp = Mcp::anonymous(&client).at(url(&client, &scope).await);
        assert_eq!(mcp.ping().await.status, 200, "{scope}");
    }
}

async fn a_modified_url_is_rejected(server: &Server) {
    let client = server.client();
    let scope = format!("session:{}", unique());
    let made = make(&client, json!({"scope": scope, "expires_in_seconds": 600})).await;
    let url = made["url"].as_str().unwrap();
    let (rest, signature) = url.split_once("&sig=").unwrap();
    let (_, expires) = rest.split_once("&expires=").unwrap();

    for changed in [
        url.replace("session", "tool"),
        url.replace("test-", "test_"),
        url.replace("test-", "tes"),
        url.replace(expires, "99999999999"),
        rest.replace(&format!("&expires={expires}"), &format!("&sig={signature}")),
        format!("{rest}&sig="),
        format!("{rest}&sig={}", &signature[1..]),
        format!("{rest}&sig={}", "A".repeat(signature.len())),
        format!("{url}&sig={signature}"),
        format!("{url}&scope=session:other"),
        format!("/mcp?sig={signature}"),
        format!("/mcp?scope=session:other&sig={signature}"),
    ] {
        let mcp = Mcp::anonymous(&client).at(changed);
        mcp.assert_rejected("api_key_required").await;
    }
    // a valid API key does not override a wrong signature
    let wrong = format!("{rest}&sig={}", "A".repeat(22));
    let mcp = Mcp::anonymous(&client).at(wrong).with(bearer());
    mcp.assert_rejected("api_key_required").await;
}

async fn a_url_cannot_be_combined_with_a_scope_header(server: &Server) {
    let client = server.client();
    let scope = format!("session:{}", unique());
    let mcp = Mcp::anonymous(&client).at(url(&client, &scope).await);

    for header in [
        ("x-session-id", unique()),
        ("x-thread-id", client.thread().signed),
    ] {
        let request = mcp.clone().with(header).message("ping", &json!({}));
        request.refused(400, "invalid_parameter").await;
    }
    assert_eq!(mcp.with(bearer()).ping().await.status, 200);
}

async fn a_url_expires(server: &Server) {
    let client = server.client();
    let scope = format!("session:{}", unique());
    let made = make(&client, json!({"scope": scope, "expires_in_seconds": 2})).await;
    assert!(made["expires_at"].is_string());
    let mcp = Mcp::anonymous(&client).at(made["url"].as_str().unwrap());

    assert_eq!(mcp.ping().await.status, 200);
    until(async || mcp.ping().await.status == 401).await;

    mcp.assert_rejected("api_key_required").await;
}

async fn only_back_ends_can_create_urls(server: &Server) {
    let client = server.client();
    let thread = client.thread();
    let post = || client.post("/v1/mcp-urls");
    let body = json!({"scope": format!("thread:{}", thread.id)}).to_string();

    let request = post().json(&body);
    request.refused(401, "api_key_required").await;
    let request = post().json(&body).header("x-thread-id", &thread.signed);
    request.refused(401, "api_key_required").await;
    for (body, code) in [
        ("{}", "invalid_parameter"),
        (r#"{"scope":5}"#, "invalid_parameter"),
        (r#"{"scope":"nothing"}"#, "invalid_scope"),
        (r#"{"scope":"thread:current"}"#, "invalid_scope"),
        (
            r#"{"scope":"request","expires_in_seconds":0}"#,
            "invalid_parameter",
        ),
        (
            r#"{"scope":"request","expires_in_seconds":31536001}"#,
            "invalid_parameter",
        ),
        (r#"{"scope":"request","other":1}"#, "invalid_parameter"),
        ("{", "invalid_json"),
    ] {
        let request = post().bearer(API_SECRET).json(body);
        request.refused(400, code).await;
    }
    let request = client.get("/v1/mcp-urls").bearer(API_SECRET);
    request.refused(405, "method_not_allowed").await;
}

async fn a_url_begins_with_the_public_url(backend: Backend) {
    let server = Server::builder(backend)
        .set("THREADKEEP_PUBLIC_URL", "https://threads.example.com/keep")
        .start();

    let url = url(&server.client(), "request").await;

    let expected = "https://threads.example.com/keep/mcp?scope=request&sig=";
    assert!(url.starts_with(expected), "{url}");
}

async fn a_url_is_valid_while_its_key_still_verifies(backend: Backend) {
    let old = Server::start(backend);
    let url = url(&old.client(), "request").await;
    let keys = format!(
        "new:another-secret-of-at-least-32-bytes,main:{}",
        crate::support::server::SIGNING_SECRET
    );
    let both = old.settings().set("THREADKEEP_SIGNING_KEYS", keys).start();
    let new = "new:another-secret-of-at-least-32-bytes";
    let new_only = old.settings().set("THREADKEEP_SIGNING_KEYS", new).start();

    let at = |server: &Server| Mcp::anonymous(&server.client()).at(url.clone());

    assert_eq!(at(&both).ping().await.status, 200);
    assert_eq!(at(&new_only).ping().await.status, 401);
}

over_both_stores!(
    a_url_grants_access_to_its_scope,
    every_kind_of_scope_can_have_a_url,
    a_modified_url_is_rejected,
    a_url_cannot_be_combined_with_a_scope_header,
    a_url_expires,
    only_back_ends_can_create_urls,
);

with_own_servers!(
    a_url_begins_with_the_public_url,
    a_url_is_valid_while_its_key_still_verifies,
);
