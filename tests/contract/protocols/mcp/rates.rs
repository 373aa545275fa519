use serde_json::json;

use super::{Mcp, unique};
use crate::http::with_own_servers;
use crate::support::server::{Backend, Server};

async fn writes_count_per_scope_and_per_address(backend: Backend) {
    let server = Server::builder(backend)
        .set("THREADKEEP_RATE_WRITES", "3/1d")
        .set("THREADKEEP_RATE_THREAD_WRITES", "2/1d")
        .start();
    let client = server.client();
    let write = json!({"name": "kv_write", "arguments": {"key": "k", "value": "1"}});
    let refused = async |mcp: &Mcp, text: &str| {
        let error = mcp.error("tools/call", write.clone()).await;
        assert_eq!(error["data"]["code"], "rate_limited", "{error}");
        assert!(error["data"]["retry_after_seconds"].as_u64() >= Some(1));
        assert!(error["message"].as_str().unwrap().contains(text), "{error}");
    };
    let thread = Mcp::thread(&client, &client.thread());
    for _ in 0..2 {
        thread
            .call("kv_write", json!({"key": "k", "value": "1"}))
            .await;
        thread.keys().await;
    }

    refused(&thread, "`rate_thread_writes`").await;
    let other = Mcp::thread(&client, &client.thread());
    other
        .call("kv_write", json!({"key": "k", "value": "1"}))
        .await;
    refused(&other, "`rate_writes`").await;
    // requests with an API key do not count towards the limit for an IP address
    let name = unique();
    let session = Mcp::session(&client, &name);
    for _ in 0..2 {
        session
            .call("kv_write", json!({"key": "k", "value": "1"}))
            .await;
    }
    refused(&session, "`rate_thread_writes`").await;
    assert_eq!(thread.keys().await.as_array().unwrap().len(), 1);
}

with_own_servers!(writes_count_per_scope_and_per_address);
