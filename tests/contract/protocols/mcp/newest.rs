//! Tests revision 2026-07-28, which has no handshake, so each request is self-contained.

use serde_json::{Value, json};

use super::Mcp;
use crate::http::over_both_stores;
use crate::support::client::{Answer, Request};
use crate::support::server::Server;

const VERSION: &str = "2026-07-28";

fn request(mcp: &Mcp, method: &str, name: &str, mut params: Value) -> Request {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    });
    let request = mcp
        .message(method, &params)
        .header("mcp-protocol-version", VERSION)
        .header("mcp-method", method);
    match name {
        "" => request,
        name => request.header("mcp-name", name),
    }
}

async fn result(mcp: &Mcp, method: &str, name: &str, params: Value) -> Value {
    let answer = request(mcp, method, name, params).ok().await;
    answer.json()["result"].take()
}

fn assert_not_found(answer: &Answer, method: &str) {
    assert_eq!(answer.status, 404, "{method}: {}", answer.text());
    let message = answer.json();
    assert_eq!(message["id"], 7);
    let error = &message["error"];
    assert_eq!(error["code"], -32601, "{method}: {error}");
    let text = error["message"].as_str().unwrap();
    assert!(
        text.contains("tools/call") && !text.contains("ping"),
        "{text}"
    );
}

async fn a_request_needs_no_handshake(server: &Server) {
    let mcp = Mcp::own(&server.client());

    let params = json!({"name": "kv_list", "arguments": {}});
    let result = result(&mcp, "tools/call", "kv_list", params).await;

    assert_eq!(result["resultType"], "complete");
    assert_eq!(result["structuredContent"], json!({"keys": []}));
}

async fn undeclared_methods_are_not_found(server: &Server) {
    let mcp = Mcp::own(&server.client());
    let client = json!({"name": "test", "version": "1"});
    let handshake = |version: &str| json!({"protocolVersion": version, "capabilities": {}, "clientInfo": client});

    for (method, name, params) in [
        ("initialize", "", json!({})),
        ("initialize", "", handshake(VERSION)),
        ("ping", "", json!({})),
        ("prompts/list", "", json!({})),
        ("prompts/get", "x", json!({"name": "x"})),
        ("completion/complete", "", json!({})),
        ("logging/setLevel", "", json!({"level": "info"})),
        (
            "resources/subscribe",
            "threadkeep://tasks",
            json!({"uri": "threadkeep://tasks"}),
        ),
        ("subscriptions/listen", "", json!({"notifications": {}})),
        ("tasks/get", "t", json!({"taskId": "t"})),
        ("skills/list", "", json!({})),
        ("nothing/at_all", "", json!({})),
    ] {
        let answer = request(&mcp, method, name, params).send().await;
        assert_not_found(&answer, method);
    }
    // clients of older revisions send no `_meta`
    let bare = mcp.message("initialize", &handshake(VERSION));
    let answer = bare.header("mcp-protocol-version", VERSION).send().await;
    assert_not_found(&answer, "initialize");
}

async fn a_handshake_for_this_revision_negotiates_an_older_one(server: &Server) {
    let params = json!({
        "protocolVersion": VERSION,
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    });

    let result = Mcp::own(&server.client())
        .result("initialize", params)
        .await;

    assert_eq!(result["protocolVersion"], "2025-11-25");
}

async fn a_missing_scope_is_an_invalid_parameter(server: &Server) {
    let id = "6c8b7f2e-3f4a-4a65-9c1e-0f9f3c7c2d11";
    let mcp = Mcp::back_end(&server.client()).with(("x-state-id", id.into()));
    let tasks = "threadkeep://tasks";

    for (method, name, params) in [
        ("tools/call", "kv_list", json!({"name": "kv_list"})),
        ("tools/call", "tasks_read", json!({"name": "tasks_read"})),
        ("resources/list", "", json!({})),
        ("resources/read", tasks, json!({"uri": tasks})),
    ] {
        let answer = request(&mcp, method, name, params).send().await;
        let error = answer.json()["error"].take();
        assert_eq!(error["code"], -32602, "{method}: {error}");
        assert_eq!(error["data"]["code"], "scope_not_found");
    }
}

async fn every_result_names_the_server(server: &Server) {
    let mcp = Mcp::own(&server.client());
    let tasks = "threadkeep://tasks";

    for (method, name, params) in [
        ("server/discover", "", json!({})),
        ("tools/list", "", json!({})),
        ("tools/call", "kv_list", json!({"name": "kv_list"})),
        ("tools/call", "kv_read", json!({"name": "kv_read"})),
        ("resources/list", "", json!({})),
        ("resources/templates/list", "", json!({})),
        ("resources/read", tasks, json!({"uri": tasks})),
    ] {
        let result = result(&mcp, method, name, params).await;
        let named = &result["_meta"]["io.modelcontextprotocol/serverInfo"];
        assert_eq!(named["name"], "threadkeep", "{method}: {result}");
        assert_eq!(named["version"], env!("CARGO_PKG_VERSION"));
    }
    let older = mcp.result("tools/list", json!({})).await;
    assert_eq!(older.get("_meta"), None);
}

/// Results that are the same for all callers may be cached for five minutes.
async fn results_state_how_long_they_may_be_cached(server: &Server) {
    let mcp = Mcp::own(&server.client());
    let tasks = "threadkeep://tasks";

    for (method, name, params, ttl_ms, scope) in [
        ("server/discover", "", json!({}), 300_000, "public"),
        ("tools/list", "", json!({}), 300_000, "public"),
        ("resources/templates/list", "", json!({}), 300_000, "public"),
        ("resources/list", "", json!({}), 0, "private"),
        ("resources/read", tasks, json!({"uri": tasks}), 0, "private"),
    ] {
        let result = result(&mcp, method, name, params).await;
        assert_eq!(result["ttlMs"], ttl_ms, "{method}");
        assert_eq!(result["cacheScope"], scope, "{method}");
    }
}

over_both_stores!(
    a_request_needs_no_handshake,
    undeclared_methods_are_not_found,
    a_handshake_for_this_revision_negotiates_an_older_one,
    a_missing_scope_is_an_invalid_parameter,
    every_result_names_the_server,
    results_state_how_long_they_may_be_cached,
);
