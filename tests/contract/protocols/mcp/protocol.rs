use reqwest::Method;
use serde_json::json;

use super::Mcp;
use crate::http::over_both_stores;
use crate::support::server::Server;

async fn initialize_returns_the_servers_name_and_instructions(server: &Server) {
    let mcp = Mcp::own(&server.client());
    let params = json!({
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    });

    let result = mcp.result("initialize", params).await;

    assert_eq!(result["protocolVersion"], "2025-06-18");
    assert_eq!(result["serverInfo"]["name"], "threadkeep");
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(result["serverInfo"]["version"], version);
    assert!(result["capabilities"]["tools"].is_object());
    assert!(result["capabilities"]["resources"].is_object());
    let instructions = result["instructions"].as_str().unwrap();
    for word in ["kv_write", "tasks_write", "32768", "128 bytes"] {
        assert!(instructions.contains(word), "{word}");
    }
}

async fn no_session_is_created_and_no_cookie_is_set(server: &Server) {
    let mcp = Mcp::own(&server.client());
    let cookie = ("cookie", "atid=whatever".into());

    let answer = mcp.with(cookie).ping().await;

    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.header("cache-control"), Some("private, no-store"));
    assert!(answer.header("x-session-id").unwrap().starts_with("sess_"));
    for absent in ["set-cookie", "x-thread-id", "mcp-session-id"] {
        assert_eq!(answer.header(absent), None, "{absent}");
    }
}

async fn notifications_are_accepted_without_an_answer(server: &Server) {
    let mcp = Mcp::own(&server.client());

    let body = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let answer = mcp.post(body).send().await;

    assert_eq!((answer.status, answer.text().as_str()), (202, ""));
}

async fn only_post_is_allowed(server: &Server) {
    let mcp = Mcp::own(&server.client());

    for method in [Method::GET, Method::DELETE, Method::PUT, Method::PATCH] {
        let answer = mcp.request(method).send().await;
        answer.problem(405, "method_not_allowed");
        assert_eq!(answer.header("allow"), Some("POST"));
    }
    for method in [Method::GET, Method::POST] {
        let below = mcp.clone().at("/mcp/sse").request(method);
        below.refused(404, "not_found").await;
    }
    assert_eq!(mcp.at("/mcp/").ping().await.status, 200);
}

async fn unknown_methods_and_malformed_params_are_protocol_errors(server: &Server) {
    let mcp = Mcp::own(&server.client());

    for (method, params, code) in [
        ("nothing/at_all", json!({}), -32601),
        ("tools/call", json!({"name": 5}), -32602),
        ("tools/call", json!({}), -32602),
        (
            "tools/call",
            json!({"name": "kv_list", "arguments": "{}"}),
            -32602,
        ),
        ("tools/call", json!({"name": "kv_clear"}), -32602),
        ("tools/list", json!({"cursor": "x"}), -32602),
        ("resources/read", json!({}), -32602),
    ] {
        let error = mcp.error(method, params.clone()).await;
        assert_eq!(error["code"], code, "{method} {params}: {error}");
    }
}

async fn invalid_messages_get_protocol_errors(server: &Server) {
    let mcp = Mcp::own(&server.client());
    let message =
        |params: &str| format!(r#"{{"jsonrpc":"2.0","id":7,"method":"ping","params":{params}}}"#);

    for (body, code) in [
        ("", -32700),
        ("{", -32700),
        (r#"{"jsonrpc":"2.0","id":7,"method":"ping"} x"#, -32700),
        ("[]", -32600),
        ("7", -32600),
        (r#"{"id":7}"#, -32600),
        (r#"{"jsonrpc":"1.0","id":7,"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":7,"method":null}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":7,"id":7,"method":"ping"}"#, -32600),
        (&message(&format!("[{}0]", "0,".repeat(2_000))), -32600),
        (&message(r#"{"x":1e400}"#), -32600),
        (&message(&"[".repeat(600)), -32700),
    ] {
        let answer = mcp.post(body).send().await;
        assert_eq!(answer.status, 400, "{body}: {}", answer.text());
        assert_eq!(answer.json()["error"]["code"], code, "{body}");
    }
    let with_id = mcp.post(r#"{"id":"a"}"#).send().await;
    assert_eq!(with_id.json()["id"], "a");
}

async fn unsupported_media_types_are_rejected(server: &Server) {
    let mcp = Mcp::own(&server.client());
    let body = r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#;
    let post = || mcp.request(Method::POST).body(body);
    let both = "application/json, text/event-stream";

    for (accept, kind, status) in [
        (both, "application/json; charset=utf-8", 200),
        (both, "text/plain", 415),
        ("application/json", "application/json", 200),
        ("*/*", "application/json", 200),
        ("application/*;q=0.5, text/html", "application/json", 200),
        ("text/html", "application/json", 406),
        ("text/event-stream", "application/json", 406),
        ("application/json;q=0, */*", "application/json", 406),
    ] {
        let request = post().header("accept", accept);
        let answer = request.header("content-type", kind).send().await;
        assert_eq!(answer.status, status, "{accept} {kind}");
    }
}

async fn a_body_over_the_limit_is_rejected(server: &Server) {
    let mcp = Mcp::own(&server.client());

    let ping = r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#;
    let padded = |bytes: usize| format!("{ping}{}", " ".repeat(bytes - ping.len()));

    assert_eq!(mcp.post(&padded(524_288)).send().await.status, 200);
    let answer = mcp.post(&padded(524_289)).send().await;
    let problem = answer.problem(413, "body_too_large");
    assert_eq!(problem["limit_bytes"], 524_288);
}

async fn unknown_protocol_versions_are_rejected(server: &Server) {
    let mcp = Mcp::own(&server.client());
    let ping = |version: &str| {
        let header = ("mcp-protocol-version", version.to_owned());
        mcp.clone().with(header)
    };

    for version in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        assert_eq!(ping(version).ping().await.status, 200, "{version}");
    }
    let answer = ping("1999-01-01").ping().await;
    assert_eq!(answer.status, 400);
    let text = answer.header("content-type").unwrap();
    assert!(text.starts_with("text/plain"), "{text}");
}

/// All methods of every protocol revision and extension in the MCP library, except those that this server has.
const UNDECLARED: [&str; 16] = [
    "prompts/list",
    "prompts/get",
    "completion/complete",
    "logging/setLevel",
    "resources/subscribe",
    "resources/unsubscribe",
    "resources/directory/read",
    "subscriptions/listen",
    "tasks/get",
    "tasks/update",
    "tasks/cancel",
    "skills/list",
    "skills/get",
    "roots/list",
    "tools/listen",
    "",
];

async fn undeclared_methods_are_not_found(server: &Server) {
    let mcp = Mcp::own(&server.client());

    for method in UNDECLARED {
        for params in [json!({}), json!({"name": "x", "uri": "a://b"})] {
            let error = mcp.error(method, params).await;
            assert_eq!(error["code"], -32601, "{method}: {error}");
            let text = error["message"].as_str().unwrap();
            assert!(
                text.contains("tools/call") && text.contains("ping"),
                "{text}"
            );
        }
    }
    let notification = r#"{"jsonrpc":"2.0","method":"prompts/list"}"#;
    assert_eq!(mcp.post(notification).send().await.status, 202);
}

async fn a_request_rejected_by_the_transport_does_not_reveal_methods(server: &Server) {
    let mcp = Mcp::own(&server.client()).with(("host", "evil.example".into()));

    let answer = mcp.message("prompts/list", &json!({})).send().await;

    assert_eq!(answer.status, 403);
    assert!(!answer.text().contains("tools/call"));
}

over_both_stores!(
    initialize_returns_the_servers_name_and_instructions,
    no_session_is_created_and_no_cookie_is_set,
    notifications_are_accepted_without_an_answer,
    only_post_is_allowed,
    unknown_methods_and_malformed_params_are_protocol_errors,
    invalid_messages_get_protocol_errors,
    unsupported_media_types_are_rejected,
    a_body_over_the_limit_is_rejected,
    unknown_protocol_versions_are_rejected,
    undeclared_methods_are_not_found,
    a_request_rejected_by_the_transport_does_not_reveal_methods,
);
