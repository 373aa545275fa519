use serde_json::json;

use super::{Mcp, unique};
use crate::http::with_own_servers;
use crate::support::server::{API_SECRET, Backend, Server};

async fn messages_and_signatures_are_not_logged(backend: Backend) {
    let server = Server::builder(backend)
        .set("THREADKEEP_LOG", "trace")
        .start();
    let client = server.client();
    let name = unique();
    let body = json!({"scope": format!("session:{name}")}).to_string();
    let made = client.post("/v1/mcp-urls").bearer(API_SECRET).json(&body);
    let url = made.ok().await.json()["url"].as_str().unwrap().to_owned();
    let (_, signature) = url.split_once("sig=").unwrap();
    let mcp = Mcp::anonymous(&client).at(&url);

    let hidden = json!({"key": "key-to-hide", "value": "value-to-hide"});
    mcp.call("kv_write", hidden).await;
    mcp.tool_error("kv_write", json!({"key": "key-to-hide"}))
        .await;
    mcp.error("tools/call", json!({"name": "value-to-hide"}))
        .await;
    mcp.error("key-to-hide", json!({})).await;
    let uri = "threadkeep://kv/key-to-hide";
    mcp.result("resources/read", json!({"uri": uri})).await;
    assert!(server.stop().success());

    let log = server.log();
    let secrets = ["key-to-hide", "value-to-hide", signature, &name, API_SECRET];
    for line in log.lines().filter(|line| is_ours(line)) {
        for secret in secrets {
            assert!(!line.contains(secret), "{line}");
        }
    }
    assert!(log.contains(r#""route":"/mcp""#), "{log}");
}

/// Returns whether a log line comes from this server or the MCP library, rather than from the HTTP library.
fn is_ours(line: &str) -> bool {
    line.contains(r#""target":"threadkeep"#) || line.contains(r#""target":"rmcp"#)
}

async fn bad_origins_are_logged_only_if_the_filter_names_the_library(backend: Backend) {
    for (filter, are_logged) in [
        ("error,threadkeep=info", false),
        ("info", false),
        ("info,rmcp=warn", true),
    ] {
        let server = Server::builder(backend)
            .set("THREADKEEP_LOG", filter)
            .start();
        let client = server.client();
        for origin in [b"\xff".as_slice(), b"https://evil.example", b"x"] {
            let request = client
                .post("/mcp")
                .bearer(API_SECRET)
                .header("origin", origin);
            request.json("{}").send().await;
        }
        assert!(server.stop().success());

        let log = server.log();
        assert_eq!(log.to_lowercase().contains("origin"), are_logged, "{log}");
    }
}

async fn requests_are_counted_under_one_route(backend: Backend) {
    let server = Server::start(backend);
    let client = server.client();
    Mcp::own(&client).ping().await;
    Mcp::own(&client).at("/mcp/").ping().await;
    Mcp::own(&client).at("/mcp?scope=x").ping().await;

    let metrics = client.get("/metrics").ok().await.text();

    let line = |status: u16, count: u16| {
        let labels = format!(r#"route="/mcp",method="POST",status="{status}""#);
        format!("threadkeep_http_requests_total{{{labels}}} {count}")
    };
    assert!(metrics.contains(&line(200, 2)), "{metrics}");
    assert!(metrics.contains(&line(400, 1)), "{metrics}");
}

with_own_servers!(
    messages_and_signatures_are_not_logged,
    bad_origins_are_logged_only_if_the_filter_names_the_library,
    requests_are_counted_under_one_route,
);
