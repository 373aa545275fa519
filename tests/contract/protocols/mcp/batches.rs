//! Tests batches of messages, which only revision 2025-03-26 supports.

use serde_json::{Value, json};

use super::Mcp;
use crate::http::over_both_stores;
use crate::support::server::Server;

fn call(id: u32, name: &str, arguments: Value) -> Value {
    let params = json!({"name": name, "arguments": arguments});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
}

async fn answers(mcp: &Mcp, batch: &[Value]) -> Vec<Value> {
    let answer = mcp.post(&json!(batch).to_string()).ok().await;
    assert_eq!(answer.header("content-type"), Some("application/json"));
    answer.json().as_array().unwrap().clone()
}

async fn each_message_is_answered_in_order(server: &Server) {
    let mcp = Mcp::own(&server.client());

    let answers = answers(
        &mcp,
        &[
            call(1, "kv_write", json!({"key": "k", "value": "a"})),
            json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
            call(2, "kv_read", json!({"key": "k"})),
            json!({"jsonrpc": "2.0", "id": 3, "method": "prompts/list"}),
            json!(7),
            json!({"id": 4}),
            json!({"jsonrpc": "2.0", "id": 5, "method": "initialize", "params": {}}),
            call(
                6,
                "kv_increment",
                json!({"key": "n", "by": 9_007_199_254_740_993_i64}),
            ),
        ],
    )
    .await;

    let ids: Vec<_> = answers.iter().map(|answer| answer["id"].clone()).collect();
    assert_eq!(json!(ids), json!([1, 2, 3, null, 4, 5, 6]));
    assert_eq!(
        answers[0]["result"]["structuredContent"],
        json!({"ok": true})
    );
    assert_eq!(answers[1]["result"]["structuredContent"]["value"], "a");
    let codes: Vec<_> = answers[2..6]
        .iter()
        .map(|answer| answer["error"]["code"].clone())
        .collect();
    assert_eq!(json!(codes), json!([-32601, -32600, -32600, -32600]));
    let sum = &answers[6]["result"]["structuredContent"]["value"];
    assert_eq!(*sum, 9_007_199_254_740_993_i64);
}

async fn a_batch_of_notifications_gets_no_answer(server: &Server) {
    let mcp = Mcp::own(&server.client());
    let notification = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});

    let batch = json!([notification, notification]).to_string();
    let answer = mcp.post(&batch).send().await;

    assert_eq!((answer.status, answer.text().as_str()), (202, ""));
}

async fn batches_need_a_revision_that_supports_them(server: &Server) {
    let ping = json!([{"jsonrpc": "2.0", "id": 7, "method": "ping"}]).to_string();
    let post = async |version: &str| {
        let header = ("mcp-protocol-version", version.to_owned());
        let mcp = Mcp::own(&server.client()).with(header);
        mcp.post(&ping).send().await
    };

    for version in ["2024-11-05", "2025-03-26"] {
        assert_eq!(post(version).await.status, 200, "{version}");
    }
    for version in ["2025-06-18", "2025-11-25", "2026-07-28"] {
        let answer = post(version).await;
        assert_eq!(answer.status, 400, "{version}");
        assert_eq!(answer.json()["error"]["code"], -32600);
    }
}

async fn a_batch_has_1_to_32_messages(server: &Server) {
    let mcp = Mcp::own(&server.client());
    let ping = json!({"jsonrpc": "2.0", "id": 7, "method": "ping"});

    assert_eq!(answers(&mcp, &vec![ping.clone(); 32]).await.len(), 32);
    for batch in [vec![], vec![ping; 33]] {
        let answer = mcp.post(&json!(batch).to_string()).send().await;
        assert_eq!(answer.status, 400);
        assert_eq!(answer.json()["error"]["code"], -32600);
    }
}

/// Each answer contains 128 KiB of tasks twice.
async fn a_batch_whose_answers_are_too_large_stops(server: &Server) {
    let mcp = Mcp::own(&server.client());
    let task = json!({"content": "x".repeat(130), "status": "pending"});
    mcp.call("tasks_write", json!({"tasks": vec![task; 700]}))
        .await;
    let mut batch: Vec<_> = (0..30)
        .map(|id| call(id, "tasks_read", json!({})))
        .collect();
    batch.push(call(30, "kv_write", json!({"key": "late", "value": ""})));
    batch.push(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));

    let answers = answers(&mcp, &batch).await;

    let run = answers.iter().filter(|answer| answer["result"].is_object());
    assert!((5..15).contains(&run.count()));
    assert_eq!(answers.len(), 31);
    let error = &answers[30]["error"];
    assert_eq!(error["code"], -32600, "{error}");
    assert_eq!(answers[30]["id"], 30);
    assert_eq!(mcp.keys().await, json!([]));
}

async fn a_batch_rejected_by_its_headers_gets_one_answer(server: &Server) {
    let mcp = Mcp::own(&server.client()).with(("host", "evil.example".into()));
    let ping = json!({"jsonrpc": "2.0", "id": 7, "method": "ping"});

    let answer = mcp.post(&json!([ping, ping]).to_string()).send().await;

    assert_eq!(answer.status, 403);
}

over_both_stores!(
    each_message_is_answered_in_order,
    a_batch_of_notifications_gets_no_answer,
    batches_need_a_revision_that_supports_them,
    a_batch_has_1_to_32_messages,
    a_batch_whose_answers_are_too_large_stops,
    a_batch_rejected_by_its_headers_gets_one_answer,
);
