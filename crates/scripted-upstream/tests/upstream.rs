#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot continue should panic"
)]

use std::time::Duration;

use serde_json::{Value, json};
use threadkeep_scripted_upstream::{Call, Failure, Gate, KEY, PRIVATE_DETAIL, Reply, Upstream};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const HEADERS: &str = "user-agent: threadkeep/1\r\ncontent-type: application/json\r\n";

/// A response with its body decoded from chunks.
struct Answer {
    head: String,
    body: String,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    fn status(&self) -> &str {
        self.head.split(' ').nth(1).unwrap()
    }

    fn events(&self) -> Vec<&str> {
        let lines = self.body.lines();
        lines
            .filter_map(|line| line.strip_prefix("data: "))
            .collect()
    }

    fn deltas(&self, pointer: &str) -> String {
        let chunks = self.events().into_iter();
        let chunks = chunks.filter_map(|event| serde_json::from_str::<Value>(event).ok());
        let texts = chunks.filter_map(|chunk| Some(chunk.pointer(pointer)?.as_str()?.to_owned()));
        texts.collect()
    }
}

fn question(more: Value) -> Value {
    let mut body = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]});
    body.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    body
}

fn streamed() -> Value {
    question(json!({"stream": true, "stream_options": {"include_usage": true}}))
}

async fn connect(upstream: &Upstream, headers: &str, body: &Value) -> TcpStream {
    let url = upstream.url();
    let address = url
        .strip_prefix("http://")
        .unwrap()
        .strip_suffix("/v1")
        .unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let body = body.to_string();
    let length = body.len();
    let request = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

async fn post_with(upstream: &Upstream, headers: &str, body: &Value) -> Answer {
    let mut stream = connect(upstream, headers, body).await;
    let ended = tokio::time::timeout(Duration::from_secs(10), async {
        let mut bytes = Vec::new();
        while stream.read_buf(&mut bytes).await.unwrap() > 0 {
            if is_whole(&bytes) {
                break;
            }
        }
        bytes
    });
    let bytes = ended.await.unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let (head, rest) = text.split_once("\r\n\r\n").unwrap();
    let body = match head.contains("chunked") {
        true => rest
            .lines()
            .filter(|line| !is_size(line))
            .collect::<Vec<_>>()
            .join("\n"),
        false => rest.to_owned(),
    };
    Answer {
        head: head.to_owned(),
        body,
    }
}

fn is_size(line: &str) -> bool {
    !line.is_empty() && line.chars().all(|c| c.is_ascii_hexdigit())
}

fn is_whole(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    match length {
        Some(length) => body.len() >= length.parse().unwrap(),
        None => body.ends_with("\r\n0\r\n\r\n"),
    }
}

async fn post(upstream: &Upstream, body: &Value) -> Answer {
    let headers = format!("{HEADERS}authorization: Bearer {KEY}\r\n");
    post_with(upstream, &headers, body).await
}

#[tokio::test]
async fn complete_answers_follow_the_script() {
    let upstream = Upstream::start().await;
    upstream.script([
        Reply::text("hello you").reasoning("One word"),
        Reply::calls([("kv_increment", "{}"), ("kv_read", "{")]),
        Reply::status(429).retry_after(1),
    ]);

    let text = post(&upstream, &question(json!({}))).await.json();
    let calls = post(&upstream, &question(json!({}))).await.json();
    let error = post(&upstream, &question(json!({}))).await;

    let message = json!({
        "role": "assistant",
        "content": "hello you",
        "refusal": null,
        "reasoning_content": "One word",
    });
    assert_eq!(text["choices"][0]["message"], message);
    assert_eq!(text["choices"][0]["finish_reason"], "stop");
    assert_eq!(text["usage"]["prompt_tokens"], 1);
    assert_eq!(text["usage"]["completion_tokens"], 4);
    assert_eq!(
        text["usage"]["completion_tokens_details"]["reasoning_tokens"],
        2
    );
    assert_eq!(calls["choices"][0]["finish_reason"], "tool_calls");
    assert_eq!(
        calls["choices"][0]["message"]["tool_calls"][1],
        json!({"id": "call_2_1", "type": "function", "function": {"name": "kv_read", "arguments": "{"}})
    );
    assert_eq!(error.status(), "429");
    assert!(error.head.contains("retry-after: 1"));
    assert!(error.body.contains(PRIVATE_DETAIL));
    assert_eq!(upstream.faults(), [""; 0]);
}

#[tokio::test]
async fn streams_have_deltas_a_finish_reason_usage_and_an_end() {
    let upstream = Upstream::start().await;
    let call = Call::new("kv_write", r#"{"key":"a/b","value":1}"#).id("same");
    upstream.script([Reply::text("two words, ä")
        .reasoning("hm")
        .and_calls([call])]);

    let answer = post(&upstream, &streamed()).await;

    let delta = "/choices/0/delta";
    assert_eq!(answer.deltas(&format!("{delta}/content")), "two words, ä");
    assert_eq!(answer.deltas(&format!("{delta}/reasoning_content")), "hm");
    assert_eq!(answer.deltas(&format!("{delta}/role")), "assistant");
    let call = format!("{delta}/tool_calls/0");
    assert_eq!(answer.deltas(&format!("{call}/id")), "same");
    assert_eq!(answer.deltas(&format!("{call}/function/name")), "kv_write");
    let arguments = answer.deltas(&format!("{call}/function/arguments"));
    assert_eq!(arguments, r#"{"key":"a/b","value":1}"#);
    assert_eq!(answer.deltas("/choices/0/finish_reason"), "tool_calls");
    let [.., usage, done] = answer.events()[..] else {
        panic!("{}", answer.body);
    };
    let usage: Value = serde_json::from_str(usage).unwrap();
    assert_eq!(usage["choices"], json!([]));
    assert_eq!(usage["usage"]["total_tokens"], 6);
    assert_eq!(done, "[DONE]");
}

#[tokio::test]
async fn pieces_do_not_change_the_answer() {
    let upstream = Upstream::start().await;
    let pieces = Reply::text("äöü").in_pieces(1, Duration::ZERO);
    upstream.script([pieces.clone(), pieces]);

    let stream = post(&upstream, &streamed()).await;
    let whole = post(&upstream, &question(json!({}))).await;

    assert_eq!(stream.deltas("/choices/0/delta/content"), "äöü");
    assert_eq!(whole.json()["choices"][0]["message"]["content"], "äöü");
}

#[tokio::test]
async fn answers_fail_as_scripted() {
    let upstream = Upstream::start().await;
    let ends = |answer: &Answer| answer.events().last() == Some(&"[DONE]");
    let all = [
        Failure::CutOff,
        Failure::EndsEarly,
        Failure::Garbage,
        Failure::Error,
    ];
    for failure in all {
        upstream.script([Reply::failing(failure), Reply::failing(failure)]);

        let stream = post(&upstream, &streamed()).await;
        let whole = post(&upstream, &question(json!({}))).await;

        assert_eq!(ends(&stream), failure == Failure::Garbage, "{failure:?}");
        let text = stream.deltas("/choices/0/delta/content");
        assert!(text.starts_with("This answer"), "{failure:?}");
        assert_eq!(stream.body.contains("<html>"), failure == Failure::Garbage);
        let whole = serde_json::from_str::<Value>(&whole.body);
        let is_readable = whole.is_ok_and(|whole| whole["error"]["message"] == PRIVATE_DETAIL);
        assert_eq!(is_readable, failure == Failure::Error, "{failure:?}");
    }
}

#[tokio::test]
async fn a_client_that_disconnects_is_recorded_as_abandoned() {
    let upstream = Upstream::start().await;
    let gate = Gate::new();
    upstream.script([
        Reply::hang(),
        Reply::failing(Failure::Hang),
        Reply::text("later").held_midway(&gate),
    ]);
    let headers = format!("{HEADERS}authorization: Bearer {KEY}\r\n");

    for count in 1..=3 {
        let stream = connect(&upstream, &headers, &streamed()).await;
        upstream.await_requests(count).await;
        drop(stream);
        upstream.await_abandoned(count).await;
    }

    let requests = upstream.requests();
    assert!(requests.iter().all(|request| !request.is_answered));
}

#[tokio::test]
async fn a_gate_holds_answers() {
    let upstream = Upstream::start().await;
    upstream.answer_with(|request| Reply::text(request.user_text()));
    let gate = upstream.hold();
    let headers = format!("{HEADERS}authorization: Bearer {KEY}\r\n");
    let mut first = connect(&upstream, &headers, &question(json!({}))).await;
    gate.waiting(1).await;
    let mut second = connect(&upstream, &headers, &question(json!({}))).await;
    gate.waiting(2).await;

    gate.open_for_one();
    assert!(first.read(&mut [0; 10]).await.unwrap() > 0);
    drop(gate);
    assert!(second.read(&mut [0; 10]).await.unwrap() > 0);

    assert!(
        post(&upstream, &question(json!({})))
            .await
            .body
            .contains("hi")
    );
}

#[tokio::test]
async fn a_stream_is_held_or_fails_after_a_number_of_deltas() {
    let upstream = Upstream::start().await;
    let gate = Gate::new();
    let call = || Call::new("kv_read", r#"{"key":"a/b"}"#);
    upstream.script([
        Reply::text("12345678")
            .and_calls([call()])
            .held_after(3, &gate),
        Reply::text("12345678")
            .and_calls([call()])
            .fails_after(3, Failure::EndsEarly),
        Reply::text("12345678").fails_after(0, Failure::CutOff),
    ]);
    let headers = format!("{HEADERS}authorization: Bearer {KEY}\r\n");
    let arguments = "/choices/0/delta/tool_calls/0/function/arguments";

    let mut held = connect(&upstream, &headers, &streamed()).await;
    gate.waiting(1).await;
    let mut bytes = Vec::new();
    while !String::from_utf8_lossy(&bytes).contains(r#"{\"ke"#) {
        assert!(held.read_buf(&mut bytes).await.unwrap() > 0);
    }
    gate.open();
    while !is_whole(&bytes) {
        assert!(held.read_buf(&mut bytes).await.unwrap() > 0);
    }
    let failed = post(&upstream, &streamed()).await;
    let nothing = post(&upstream, &streamed()).await;

    assert!(String::from_utf8_lossy(&bytes).contains("[DONE]"));
    assert_eq!(failed.deltas("/choices/0/delta/content"), "12345678");
    assert_eq!(failed.deltas(arguments), r#"{"ke"#);
    assert_eq!(nothing.deltas("/choices/0/delta/role"), "");
}

#[tokio::test]
async fn invalid_requests_are_recorded_and_consume_no_reply() {
    let upstream = Upstream::start().await;
    upstream.script([Reply::text("one"), Reply::text("two")]);
    let key = format!("authorization: Bearer {KEY}\r\n");
    let foreign = "user-agent: curl\r\ncontent-type: text/plain\r\nx-thread-id: t\r\n";

    let unknown = post_with(&upstream, HEADERS, &question(json!({}))).await;
    let wrong = post(&upstream, &json!({"model": "m", "messages": []})).await;
    let first = post_with(&upstream, &format!("{foreign}{key}"), &question(json!({}))).await;
    let second = post(&upstream, &question(json!({}))).await;
    let third = post(&upstream, &question(json!({}))).await;

    let statuses = [&unknown, &wrong, &first, &second, &third].map(Answer::status);
    assert_eq!(statuses, ["401", "400", "200", "200", "500"]);
    assert!(second.body.contains("two"));
    assert_eq!(
        upstream.faults(),
        [
            "request 1: wrong or missing key",
            "request 2: there are no messages",
            "request 3: unexpected header x-thread-id",
            "request 3: wrong user agent \"curl\"",
            "request 3: wrong content type \"text/plain\"",
            "request 5: the script has no reply",
        ]
    );
}

#[tokio::test]
async fn requests_can_be_read() {
    let upstream = Upstream::start().await;
    upstream.script([Reply::text("2")]);
    let call = json!({"id": "a", "type": "function", "function": {"name": "n", "arguments": "{}"}});
    let messages = json!([
        {"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": " two"}]},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a", "content": "1"},
    ]);

    post(&upstream, &json!({"model": "m", "messages": messages})).await;

    let [request] = &upstream.requests()[..] else {
        panic!("there should be one request");
    };
    assert_eq!(request.model(), "m");
    assert_eq!(request.user_text(), "one two");
    assert_eq!(request.results(), ["1"]);
    assert_eq!(request.header("user-agent"), Some("threadkeep/1"));
    assert!(!request.is_stream() && request.is_answered);
}
