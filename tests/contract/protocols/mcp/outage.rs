use serde_json::json;

use super::Mcp;
use crate::support::redis::RedisServer;
use crate::support::server::{Backend, Server};

#[tokio::test]
async fn an_unavailable_store_is_an_internal_error_without_details() {
    let redis = RedisServer::start();
    let server = Server::builder(Backend::Memory)
        .redis(&redis.url())
        .set("THREADKEEP_STORE_TIMEOUT_MS", 5_000)
        .start();
    let mcp = Mcp::own(&server.client());
    redis.kill();

    for (method, params) in [
        ("tools/call", json!({"name": "kv_list"})),
        (
            "tools/call",
            json!({"name": "kv_write", "arguments": {"key": "k", "value": "hidden"}}),
        ),
        ("resources/list", json!({})),
        ("resources/read", json!({"uri": "threadkeep://tasks"})),
    ] {
        let error = mcp.error(method, params).await;
        assert_eq!(error["code"], -32603, "{error}");
        assert_eq!(error["data"], json!({"code": "store_unavailable"}));
        assert_eq!(error["message"], "the store is not available");
    }
    // methods that need no store still succeed
    mcp.result("tools/list", json!({})).await;
    server.await_log(|line| line.contains("MCP message failed"));
    assert!(!server.log().contains("hidden"));
}
