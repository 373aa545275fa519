use futures_util::future::join_all;

use crate::budgets::{LONGEST_WAIT, MB, builder};
use crate::support::client::{OwnThread, Request};
use crate::support::heartbeat::Heartbeat;
use crate::support::server::{Backend, Server};

const MESSAGES: usize = 24;
const MESSAGE_BYTES: usize = 520_000;

fn post(server: &Server, thread: &OwnThread, message: &str) -> Request {
    server
        .client()
        .post("/mcp")
        .header("x-thread-id", &thread.signed)
        .header("accept", "application/json, text/event-stream")
        .json(message)
}

fn filled(before: &str, part: &str, after: &str, bytes: usize) -> String {
    let count = bytes / (part.len() + 1);
    let parts = vec![part; count].join(",");
    format!("{before}{parts}{after}")
}

fn message(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#)
}

/// Returns a message whose parameters precede its method. A parser that tries one type per known method may buffer such
/// parameters once for each method.
fn params_first(method: &str, params: &str) -> String {
    format!(r#"{{"params":{params},"jsonrpc":"2.0","id":1,"method":"{method}"}}"#)
}

fn many_values(bytes: usize) -> Vec<String> {
    let write = r#"{"name":"kv_write","arguments":{"key":["#;
    let tasks = r#"{"name":"tasks_write","arguments":{"tasks":["#;
    let meta = r#"{"name":"kv_list","_meta":{"x":["#;
    let client = r#"{"protocolVersion":"2025-06-18","clientInfo":{"name":"x","version":"1"},"capabilities":{"experimental":{"x":{"x":["#;
    let fill = |before: &str, part, after| filled(before, part, after, bytes);
    vec![
        message("tools/call", &fill(write, "0", "]}}")),
        message("tools/call", &fill(tasks, "{}", "]}}")),
        params_first("tools/call", &fill(meta, "[]", "]}}")),
        params_first("initialize", &fill(client, "0", "]}}}}")),
        params_first("nothing/at_all", &fill("[", "{}", "]")),
        params_first("notifications/x", &fill(r#"{"_meta":["#, "[[]]", "]}")),
        fill("[", r#"{"id":1}"#, "]"),
        "[".repeat(bytes),
    ]
}

fn many_parts(bytes: usize) -> Vec<String> {
    let write = r#"{"name":"kv_write","arguments":{"#;
    let escapes = r"\n\u0041".repeat(bytes / 8);
    let fill = |before: &str, part, after| filled(before, part, after, bytes);
    vec![
        message("tools/call", &fill(write, r#""key":0"#, "}}")),
        params_first("resources/read", &fill("{", r#""uri":"""#, "}")),
        params_first("ping", &format!(r#"{{"x":"{escapes}"}}"#)),
        fill("{", r#""id":1"#, "}"),
    ]
}

async fn assert_cheap(messages: &[String], count: usize) {
    let server = builder(Backend::Memory).start();
    let thread = server.client().thread();
    // the first request allocates memory that is needed only once
    post(&server, &thread, &message("ping", "{}")).ok().await;
    let heartbeat = Heartbeat::start(&server);
    let before = server.peak_bytes();

    let sent = messages.iter().cycle().take(count);
    let answers = join_all(sent.map(|text| post(&server, &thread, text).send())).await;

    for (answer, text) in answers.iter().zip(messages.iter().cycle()) {
        let start = &text[..text.len().min(80)];
        assert!(answer.status < 500 && answer.status != 413, "{start}");
    }
    let grown = server.peak_bytes() - before;
    assert!(grown < 100 * MB, "{grown}");
    let wait = heartbeat.longest_wait().await;
    assert!(wait < LONGEST_WAIT, "{wait:?}");
}

#[tokio::test]
async fn messages_with_many_values_use_little_memory() {
    assert_cheap(&many_values(MESSAGE_BYTES), MESSAGES).await;
}

#[tokio::test]
async fn messages_with_many_members_or_escapes_use_little_memory() {
    assert_cheap(&many_parts(MESSAGE_BYTES), 4).await;
}

#[tokio::test]
async fn oversized_messages_are_not_buffered() {
    let server = builder(Backend::Memory).start();
    let thread = server.client().thread();
    let messages = many_values(2_000_000);
    let heartbeat = Heartbeat::start(&server);
    let before = server.peak_bytes();

    let sent = messages.iter().cycle().take(MESSAGES);
    let answers = join_all(sent.map(|text| post(&server, &thread, text).send())).await;

    for answer in answers {
        answer.problem(413, "body_too_large");
    }
    let grown = server.peak_bytes() - before;
    assert!(grown < 50 * MB, "{grown}");
    let wait = heartbeat.longest_wait().await;
    assert!(wait < LONGEST_WAIT, "{wait:?}");
}

#[tokio::test]
async fn answers_have_a_content_length() {
    let server = builder(Backend::Memory).start();
    let thread = server.client().thread();

    let answer = post(&server, &thread, &message("tools/list", "{}"))
        .ok()
        .await;

    let length = answer.header("content-length").unwrap();
    assert_eq!(length.parse(), Ok(answer.body.len()));
    assert_eq!(answer.json()["id"], 1);
}
