use futures_util::future::join_all;
use serde_json::json;

use crate::budgets::{LONGEST_WAIT, MB, builder};
use crate::support::client::Answer;
use crate::support::heartbeat::Heartbeat;
use crate::support::server::{Backend, RELAY_SECRET};

const REQUESTS: usize = 6;
/// Half of the maximum body size, because unoptimized builds are slow.
const BODY_BYTES: usize = 1_000_000;

/// Maximum growth of the server's memory, in bytes.
const GROWTH_BYTES_MAX: u64 = 100 * MB;

fn filled(before: &str, part: &str, after: &str) -> String {
    let count = (BODY_BYTES - before.len() - after.len()) / (part.len() + 1);
    let parts = vec![part; count].join(",");
    format!("{before}{parts}{after}")
}

async fn send_within_limits(bodies: &[(&str, String)]) -> Vec<Answer> {
    let server = builder(Backend::Memory).start();
    let client = server.client();
    let heartbeat = Heartbeat::start(&server);
    let before = server.peak_bytes();

    let sent = bodies.iter().cycle().take(REQUESTS);
    let send = |(path, body): &(&str, String)| {
        let request = client.post(path).json(body);
        match path.starts_with("/api") {
            true => request.bearer(RELAY_SECRET).send(),
            false => request.send(),
        }
    };
    let answers = join_all(sent.map(send)).await;

    let grown = server.peak_bytes() - before;
    assert!(grown < GROWTH_BYTES_MAX, "{grown}");
    let wait = heartbeat.longest_wait().await;
    assert!(wait < LONGEST_WAIT, "{wait:?}");
    answers
}

#[tokio::test]
async fn list_lengths_are_checked_before_elements_are_parsed() {
    let tool = "/v1/tools/tasks_write";
    let inner = filled(r#"{"tasks":["#, "{}", "]}");
    let text = json!({"scope": "thread:current", "arguments": inner}).to_string();
    let bodies = [
        (
            tool,
            filled(
                r#"{"scope":"thread:current","arguments":{"tasks":["#,
                "{}",
                "]}}",
            ),
        ),
        (tool, text),
        (
            "/v1/tool-calls",
            filled(r#"{"scope":"thread:current","tool_calls":["#, "{}", "]}"),
        ),
        (
            "/v1/tool-calls",
            filled(r#"{"scope":"thread:current","content":["#, "{}", "]}"),
        ),
        (
            "/api/v1/tool-calls",
            filled(r#"{"tool_calls":["#, "{}", "]}"),
        ),
        (
            "/api/v1/runs/00000000-0000-4000-8000-000000000000/tool-results",
            filled(
                r#"{"node_id":"x","step":0,"request_id":"x","results":["#,
                "0",
                "]}",
            ),
        ),
    ];

    let answers = send_within_limits(&bodies).await;

    let too_many = json!({"error": "a list may have at most 1000 tasks"});
    assert_eq!(answers[0].json(), too_many);
    assert_eq!(answers[1].json(), too_many);
    for answer in answers {
        assert!(answer.status < 500, "{}", answer.text());
    }
}

/// Reads a 32 KiB value 127 times. As JSON strings inside JSON, the complete results would take 29 MB.
#[tokio::test]
async fn the_results_of_one_message_are_bounded() {
    let call = |arguments: serde_json::Value, name| {
        let function = json!({"name": name, "arguments": arguments.to_string()});
        json!({"id": "x", "type": "function", "function": function})
    };
    let value = "\u{1}".repeat(32_768);
    let write = call(json!({"key": "k", "value": value}), "kv_write");
    let read = call(json!({"key": "k"}), "kv_read");
    let mut calls = vec![read; 127];
    calls.insert(0, write);
    let body = json!({"scope": "thread:current", "tool_calls": calls}).to_string();

    let answers = send_within_limits(&[("/v1/tool-calls", body)]).await;

    for answer in answers {
        assert_eq!(answer.status, 200, "{}", answer.text());
        let messages = &answer.json()["messages"];
        assert_eq!(messages.as_array().unwrap().len(), 128);
        assert!(answer.body.len() < 5_000_000, "{}", answer.body.len());
        let last = messages[127]["content"].as_str().unwrap();
        assert!(last.contains("exceed 2097152 bytes"), "{last}");
    }
}
