use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

use super::responses::{body, create, message, run, with};
use crate::http::over_both_stores;
use crate::protocols::openai::responses::{increment_call, with_models};
use crate::support::client::{Request, new_id};
use crate::support::server::Server;
use crate::support::upstream::{Call, Failure, Gate, Reply, Upstream};

/// Time limit for each line of a stream, long enough even on half a processor core.
const PATIENCE: Duration = Duration::from_secs(120);
const ACCEPT: &str = r#"application/x-ndjson; profile="responses-stream/v2""#;

struct Lines {
    answer: reqwest::Response,
    text: String,
}

impl Lines {
    async fn of(request: Request) -> Self {
        let answer = request.header("accept", ACCEPT).begin().await;
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.headers()["content-type"], "application/x-ndjson");
        Self {
            answer,
            text: String::new(),
        }
    }

    async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some((line, rest)) = self.text.split_once('\n') {
                let line = serde_json::from_str(line).unwrap();
                self.text = rest.to_owned();
                return Some(line);
            }
            let chunk = timeout(PATIENCE, self.answer.chunk()).await.unwrap();
            let chunk = chunk.unwrap()?;
            assert!(chunk.is_ascii());
            self.text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    /// Skips keep-alive lines. Returns the next line, or `None` at the end of the stream.
    async fn next_event(&mut self) -> Option<Value> {
        loop {
            let line = self.next().await?;
            if line["type"] != "keepalive" {
                return Some(line);
            }
        }
    }

    async fn rest(mut self) -> Vec<Value> {
        let mut lines = Vec::new();
        while let Some(line) = self.next_event().await {
            lines.push(line);
        }
        lines
    }
}

fn types(lines: &[Value]) -> Vec<&str> {
    lines
        .iter()
        .map(|line| line["type"].as_str().unwrap())
        .collect()
}

fn deltas(lines: &[Value]) -> String {
    lines
        .iter()
        .filter_map(|line| line["delta"].as_str())
        .collect()
}

async fn a_stream_delivers_the_answer_as_it_is_written(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let gate = Gate::new();
    upstream.script([
        Reply::calls([increment_call()]),
        Reply::text("Du hast genau eins, schön 😀.").held_after(2, &gate),
    ]);
    let request = body("Count.", &["kv.increment"]);

    let mut lines = Lines::of(run(&server, &request)).await;
    let mut first = Vec::new();
    for _ in 0..3 {
        first.push(lines.next_event().await.unwrap());
    }
    gate.open();
    let rest = lines.rest().await;

    assert_eq!(types(&first), ["start", "tool_use_stop", "update"]);
    assert!(
        first[0]["request_id"]
            .as_str()
            .unwrap()
            .starts_with("resp_")
    );
    assert_eq!(first[0]["model"], "m");
    let call = &first[1]["tool_calls"][0];
    assert_eq!(call["function"]["name"], "kv.increment");
    assert_eq!(call["function"]["arguments"], r#"{"key":"a/n"}"#);
    assert_eq!(first[1]["tool_result"], json!({"ok": true, "value": 1}));
    let all = [first, rest].concat();
    let last = all.last().unwrap();
    assert_eq!(last["type"], "completion");
    assert_eq!(last["content"], "Du hast genau eins, schön 😀.");
    assert_eq!(last["content"], deltas(&all));
    assert_eq!(last["tool_calls"], json!([]));
    assert_eq!(last["stop_reason"], "end_turn");
    assert_eq!(last["model"], "m");
    assert!(last["usage"]["total_tokens"].as_u64() > Some(0));
    assert!(
        upstream
            .requests()
            .iter()
            .all(|request| request.is_stream())
    );
    assert_eq!(upstream.faults(), [""; 0]);
}

async fn server_sent_events_are_named_by_their_types(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    upstream.script([Reply::text("Hello.")]);

    let answer = run(&server, &body("Hi.", &[])).header("accept", "text/event-stream");
    let answer = answer.ok().await;

    assert_eq!(answer.header("content-type"), Some("text/event-stream"));
    let text = answer.text();
    let events: Vec<_> = text.trim_end().split("\n\n").collect();
    assert!(events.len() >= 3, "{text}");
    for event in &events {
        let (name, data) = event.split_once('\n').unwrap();
        let data: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
        assert_eq!(data["type"], name.strip_prefix("event: ").unwrap());
    }
    assert!(events[0].starts_with("event: start\n"), "{text}");
    assert!(events.last().unwrap().starts_with("event: completion\n"));
}

async fn client_calls_are_streamed_once_and_server_calls_never(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let weather = Call::new("weather_now", r#"{"city":"Oslo","days":3}"#).id("c-1");
    upstream
        .script([Reply::text("One moment.").and_calls([weather, Call::from(increment_call())])]);
    let request = body("How is it?", &["weather.now", "kv_increment"]);

    let lines = Lines::of(run(&server, &request)).await.rest().await;

    let calling: Vec<_> = lines
        .iter()
        .filter(|line| line.get("tool_call_delta").is_some())
        .collect();
    assert_eq!(calling.len(), 2, "{lines:?}");
    let call = |line: &Value| line["tool_call_delta"].clone();
    assert_eq!(calling[0]["type"], "tool_use_start");
    assert_eq!(call(calling[0])["function"]["name"], "weather.now");
    assert_eq!(call(calling[0])["index"], 0);
    assert_eq!(calling[1]["type"], "tool_use_delta");
    assert_eq!(
        call(calling[1])["function"]["arguments"],
        r#"{"city":"Oslo","days":3}"#
    );
    let stops: Vec<_> = lines
        .iter()
        .filter(|line| line["type"] == "tool_use_stop")
        .collect();
    assert_eq!(stops.len(), 2);
    // the server runs its own tool calls before it reports the tool calls that the client must run
    assert_eq!(stops[0]["tool_result"]["value"], 1);
    assert_eq!(stops[1]["tool_calls"][0]["id"], "c-1");
    assert_eq!(stops[1].get("tool_result"), None);
    let last = lines.last().unwrap();
    assert_eq!(last["stop_reason"], "tool_calls");
    assert_eq!(last["tool_calls"], stops[1]["tool_calls"]);
    assert_eq!(last["content"], "One moment.");
    assert_eq!(upstream.faults(), [""; 0]);
}

async fn an_interrupted_text_resumes_where_possible(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream)
        .set("THREADKEEP_UPSTREAM_RETRIES", 1)
        .start();
    let broken = || Reply::text("This is a long text.").fails_after(2, Failure::CutOff);
    for (again, gap) in [("This is a long text.", false), ("Another one.", true)] {
        upstream.script([broken(), Reply::text(again)]);

        let lines = Lines::of(run(&server, &body("Write.", &[]))).await;
        let lines = lines.rest().await;

        let last = lines.last().unwrap();
        let content = last["content"].as_str().unwrap();
        assert_eq!(content, deltas(&lines));
        match gap {
            false => assert_eq!(content, again),
            true => {
                let (before, after) = content.split_once("\n\n").unwrap();
                assert!("This is a long text.".starts_with(before), "{content}");
                assert_eq!(after, again);
            }
        }
    }
    assert_eq!(upstream.faults(), [""; 0]);
}

async fn a_stream_that_waits_for_another_response_starts_at_once(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let session = create(&server, "/sessions").await;
    let gate = upstream.hold();
    upstream.script([Reply::text("one"), Reply::text("two")]);
    let request = |text: &str| {
        let request = with(body(text, &[]), "session_id", &*session);
        with(request, "threadkeep", json!({"history": true}))
    };

    let mut first = Lines::of(run(&server, &request("first"))).await;
    first.next().await.unwrap();
    gate.waiting(1).await;
    let mut second = Lines::of(run(&server, &request("second")).header("prefer", "wait=60")).await;
    let start = second.next().await.unwrap();
    let silence = second.next().await.unwrap();
    gate.open();
    let (first, second) = (first.rest().await, second.rest().await);

    assert_eq!(start["type"], "start");
    assert_eq!(silence["type"], "keepalive");
    assert_eq!(first.last().unwrap()["content"], "one");
    assert_eq!(second.last().unwrap()["content"], "two");
    assert!(second.iter().all(|line| line["type"] != "start"));
    assert_eq!(upstream.faults(), [""; 0]);
}

async fn a_document_arrives_whole_with_its_patch_and_payload(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream)
        .set("THREADKEEP_UPSTREAM_RETRIES", 1)
        .start();
    let document = r#"{"city":"Oslo","days":[1,2,3]}"#;
    upstream.script([
        Reply::text(r#"{"city":"Ber"#).fails_after(1, Failure::CutOff),
        Reply::text(document),
    ]);
    let format = json!({"type": "json_schema", "json_schema": {"name": "trip", "schema": {"type": "object"}}});
    let request = with(body("Plan.", &[]), "output_format", format);

    let lines = Lines::of(run(&server, &request)).await.rest().await;

    assert_eq!(types(&lines), ["start", "update", "completion"]);
    let value: Value = serde_json::from_str(document).unwrap();
    assert_eq!(lines[1]["delta"], document);
    assert_eq!(
        lines[1]["patch"],
        json!([{"op": "replace", "path": "", "value": value}])
    );
    assert_eq!(lines[2]["content"], document);
    assert_eq!(lines[2]["payload"], value);
    let last = upstream.requests().pop().unwrap();
    let format = &last.body["response_format"];
    assert_eq!(format["json_schema"]["name"], "trip");
}

async fn a_repeat_of_a_stream_has_the_same_lines(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    upstream.script([Reply::calls([increment_call()]), Reply::text("once")]);
    let key = new_id();
    let ask = || run(&server, &body("Count.", &["kv_increment"])).header("idempotency-key", &key);

    let first = Lines::of(ask()).await.rest().await;
    let second = Lines::of(ask()).await.rest().await;
    let whole = ask().ok().await.json();

    assert_eq!(first, second);
    assert_eq!(whole["id"], first[0]["request_id"]);
    let mut expected = message("assistant", "once");
    expected["content"][0]["text"] = first.last().unwrap()["content"].clone();
    assert_eq!(whole["output"], json!([expected]));
    assert_eq!(upstream.count(), 2);
}

over_both_stores! {
    a_stream_delivers_the_answer_as_it_is_written,
    server_sent_events_are_named_by_their_types,
    client_calls_are_streamed_once_and_server_calls_never,
    an_interrupted_text_resumes_where_possible,
    a_stream_that_waits_for_another_response_starts_at_once,
    a_document_arrives_whole_with_its_patch_and_payload,
    a_repeat_of_a_stream_has_the_same_lines,
}

#[tokio::test]
async fn a_stream_of_a_killed_replica_can_be_read_in_full_from_another() {
    use crate::protocols::openai::responses::two_replicas;
    use crate::support::server::Backend;

    let shared = Server::start(Backend::Redis);
    let upstream = Upstream::start().await;
    let [first, second] = two_replicas(&shared, &upstream);
    let key = new_id();
    let gate = Gate::new();
    upstream.script([
        Reply::calls([increment_call()]),
        Reply::text("You have one of them.").held_after(2, &gate),
        Reply::text("You have one of them."),
    ]);
    let request = body("Count.", &["kv_increment"]);
    let ask = |server: &Server| run(server, &request).header("idempotency-key", &key);

    let mut broken = Lines::of(ask(&first)).await;
    while broken.next().await.unwrap()["type"] != "update" {}
    first.kill();
    let whole = Lines::of(ask(&second)).await.rest().await;

    let last = whole.last().unwrap();
    assert_eq!(last["content"], "You have one of them.");
    assert_eq!(last["content"], deltas(&whole));
    let ran = whole
        .iter()
        .filter(|line| line.get("tool_result").is_some());
    assert_eq!(ran.count(), 1);
    assert_eq!(upstream.faults(), [""; 0]);
}
