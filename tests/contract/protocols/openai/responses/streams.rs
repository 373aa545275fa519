use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{PATIENCE_MS, increment_call, kinds, state_tools, with_models};
use crate::http::over_both_stores;
use crate::protocols::openai::{Api, refused};
use crate::support::client::{Request, new_id};
use crate::support::server::Server;
use crate::support::upstream::{Call, Failure, Gate, PRIVATE_DETAIL, Reply, Upstream};

/// Time limit for each event of a stream, long enough even on half a processor core.
const PATIENCE: Duration = Duration::from_secs(120);

pub(in crate::protocols::openai) struct Events {
    answer: reqwest::Response,
    text: String,
    next: u64,
}

impl Events {
    pub(in crate::protocols::openai) async fn of(request: Request) -> Self {
        Self::after(request, 0).await
    }

    async fn after(request: Request, next: u64) -> Self {
        let answer = request.begin().await;
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.headers()["content-type"], "text/event-stream");
        Self {
            answer,
            text: String::new(),
            next,
        }
    }

    async fn block(&mut self) -> Option<String> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let block = block.to_owned();
                self.text = rest.to_owned();
                return Some(block);
            }
            self.read_chunk().await?;
        }
    }

    async fn await_text(&mut self, text: &str) {
        while self.text.len() < text.len() {
            self.read_chunk().await.expect(text);
        }
        assert_eq!(&self.text[..text.len()], text);
    }

    async fn read_chunk(&mut self) -> Option<()> {
        let chunk = timeout(PATIENCE, self.answer.chunk()).await.unwrap();
        let chunk = chunk.unwrap()?;
        self.text.push_str(std::str::from_utf8(&chunk).unwrap());
        Some(())
    }

    /// Returns the next event, or `None` after `[DONE]`, which must be the end of every completed stream.
    async fn next(&mut self) -> Option<Value> {
        let block = self.block().await.expect("an end");
        if block == "data: [DONE]" {
            assert_eq!(self.block().await, None);
            return None;
        }
        let field = |name: &str| {
            let line = block.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap_or_else(|| panic!("{block}"))
        };
        let event: Value = serde_json::from_str(field("data: ")).unwrap();
        assert_eq!(event["type"], field("event: "));
        assert_eq!(event["sequence_number"], self.next);
        assert_eq!(field("id: "), self.next.to_string());
        self.next += 1;
        Some(event)
    }

    pub(super) async fn until(&mut self, kind: &str) -> Value {
        loop {
            let event = self.next().await.expect(kind);
            if event["type"] == kind {
                return event;
            }
        }
    }

    pub(super) async fn read_until_cut(mut self) -> String {
        while let Ok(Some(chunk)) = timeout(PATIENCE, self.answer.chunk()).await.unwrap() {
            self.text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
        self.text
    }

    pub(in crate::protocols::openai) async fn rest(mut self) -> Vec<Value> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            events.push(event);
        }
        events
    }
}

fn types(events: &[Value]) -> Vec<String> {
    let kind = |event: &'_ Value| event["type"].as_str().unwrap()["response.".len()..].to_owned();
    events.iter().map(kind).collect()
}

fn deltas(events: &[Value]) -> String {
    let deltas = events.iter().filter_map(|event| event["delta"].as_str());
    deltas.collect()
}

fn streamed(mut body: Value) -> Value {
    body["stream"] = json!(true);
    body
}

fn run(api: &Api, body: Value) -> Request {
    api.post("/responses", &streamed(body))
}

fn listen(api: &Api, response: &Value, query: &str) -> Request {
    let path = format!(
        "/responses/{}?stream=true{query}",
        response.as_str().unwrap()
    );
    api.ask(Method::GET, &path)
}

async fn a_stream_delivers_the_answer_as_it_is_written(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let api = Api::of(&server);
    let gate = Gate::new();
    upstream.script([
        Reply::calls([increment_call()]),
        Reply::text("You have one of these now.").held_after(1, &gate),
    ]);
    let body = json!({"model": "m", "tools": state_tools(), "input": "Count."});

    let mut events = Events::of(run(&api, body)).await;
    let created = events.until("response.created").await;
    let id = &created["response"]["id"];
    assert_eq!(created["response"]["status"], "in_progress");
    let first = events.until("response.output_text.delta").await;
    let whole = api
        .ask(Method::GET, &format!("/responses/{}", id.as_str().unwrap()))
        .ok()
        .await
        .json();
    assert_eq!(whole["status"], "in_progress");
    assert_eq!(kinds(&whole["output"]), ["mcp_call"]);
    // a second reader resumes with `starting_after`; a third reader resumes with `last-event-id`, like a browser
    let at = first["sequence_number"].as_u64().unwrap();
    let second_reader = Events::after(listen(&api, id, "&starting_after=0"), 1).await;
    let again = listen(&api, id, "").header("last-event-id", (at - 1).to_string());
    let again = Events::after(again, at).await;
    gate.open();

    let rest = events.rest().await;
    let retrieved = api
        .ask(Method::GET, &format!("/responses/{}", id.as_str().unwrap()))
        .ok()
        .await
        .json();
    let last = rest.last().unwrap();
    assert_eq!(last["type"], "response.completed");
    assert_eq!(last["response"], retrieved);
    let text = first["delta"].as_str().unwrap().to_owned() + &deltas(&rest);
    assert_eq!(text, "You have one of these now.");
    let second_reader = second_reader.rest().await;
    assert_eq!(
        types(&second_reader)[..5],
        [
            "in_progress",
            "output_item.added",
            "mcp_call_arguments.delta",
            "mcp_call_arguments.done",
            "mcp_call.in_progress",
        ]
    );
    assert!(second_reader.ends_with(&rest));
    let again = again.rest().await;
    assert_eq!(again[0], first);
    assert_eq!(again[1..], rest);
    assert_eq!(upstream.faults(), [""; 0]);
}

async fn client_calls_are_streamed(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let api = Api::of(&server);
    let mut tools = state_tools();
    let own = json!({"type": "function", "name": "weather", "parameters": {"type": "object"}});
    tools.as_array_mut().unwrap().push(own);
    let weather = Call::new("weather", r#"{"city":"Oslo","days":3}"#);
    upstream
        .script([Reply::text("One moment.").and_calls([weather, Call::from(increment_call())])]);
    let body = json!({"model": "m", "tools": tools, "input": "How is it in Oslo?"});

    let events = Events::of(run(&api, body)).await.rest().await;

    let of_call = |event: &&Value| {
        event["type"]
            .as_str()
            .unwrap()
            .contains("function_call_arg")
    };
    let of_call: Vec<_> = events.iter().filter(of_call).cloned().collect();
    assert_eq!(deltas(&of_call), r#"{"city":"Oslo","days":3}"#);
    let done = of_call.last().unwrap();
    assert_eq!(done["type"], "response.function_call_arguments.done");
    assert_eq!(done["arguments"], r#"{"city":"Oslo","days":3}"#);
    assert_eq!(done["name"], "weather");
    let last = events.last().unwrap();
    let output = &last["response"]["output"];
    assert_eq!(kinds(output), ["message", "function_call", "mcp_call"]);
    // the client runs its calls as soon as their events arrive, so the events of the server's calls must come first
    let done = |kind: &str| {
        let matches = |event: &Value| {
            event["type"] == "response.output_item.done" && event["item"]["type"] == kind
        };
        events.iter().position(matches).unwrap()
    };
    assert!(done("mcp_call") < done("function_call"));
    for item in output.as_array().unwrap() {
        let done =
            |event: &&Value| event["type"] == "response.output_item.done" && event["item"] == *item;
        assert_eq!(events.iter().filter(done).count(), 1, "{item}");
    }
    assert_eq!(upstream.faults(), [""; 0]);
}

async fn an_interrupted_text_is_replaced_by_another_item(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream)
        .set("THREADKEEP_UPSTREAM_RETRIES", 1)
        .start();
    let api = Api::of(&server);
    upstream.script([
        Reply::text("This will never be complete.").fails_after(2, Failure::CutOff),
        Reply::text("This is complete."),
    ]);

    let body = json!({"model": "m", "input": "Write."});
    let events = Events::of(run(&api, body)).await.rest().await;

    let done: Vec<_> = events
        .iter()
        .filter(|event| event["type"] == "response.output_item.done")
        .collect();
    assert_eq!(done.len(), 2, "{events:?}");
    assert_eq!(done[0]["item"]["status"], "incomplete");
    assert_eq!(done[0]["output_index"], 0);
    assert_eq!(done[1]["item"]["status"], "completed");
    assert_eq!(done[1]["output_index"], 1);
    assert_ne!(done[0]["item"]["id"], done[1]["item"]["id"]);
    let last = events.last().unwrap();
    assert_eq!(last["response"]["output"], json!([done[1]["item"]]));
    assert_eq!(upstream.faults(), [""; 0]);
}

async fn each_stream_failure_is_its_last_event_and_the_next_response_works(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream)
        .set("THREADKEEP_UPSTREAM_TIMEOUT_MS", PATIENCE_MS)
        .start();
    let api = Api::of(&server);
    let id = new_id();
    let body = |text: &str| json!({"model": "m", "conversation": id, "input": text});
    let text = || Reply::text("This will never be complete.");
    for (reply, code) in [
        (Reply::status(400).message("too long"), "upstream_refused"),
        (Reply::status(500), "upstream_error"),
        (Reply::status(429), "rate_limit_exceeded"),
        (Reply::disconnect(), "upstream_error"),
        (Reply::garbage(), "upstream_malformed"),
        (Reply::empty(), "upstream_malformed"),
        (Reply::hang(), "upstream_timeout"),
        (text().fails_after(1, Failure::CutOff), "upstream_malformed"),
        (text().fails_after(2, Failure::Hang), "upstream_timeout"),
    ] {
        upstream.script([reply]);
        let events = Events::of(run(&api, body("fails"))).await.rest().await;
        let last = events.last().unwrap();
        assert_eq!(last["type"], "response.failed", "{code}");
        assert_eq!(last["response"]["error"]["code"], code, "{last}");
        assert_eq!(last["response"]["status"], "failed");
        let begun = types(&events)
            .iter()
            .filter(|kind| *kind == "output_item.added")
            .count();
        let done = types(&events)
            .iter()
            .filter(|kind| *kind == "output_item.done")
            .count();
        assert_eq!(begun, done, "{events:?}");
        assert!(!format!("{events:?}").contains(PRIVATE_DETAIL));
        upstream.script([Reply::text("works")]);
        let next = Events::of(run(&api, body("works"))).await.rest().await;
        assert_eq!(next.last().unwrap()["type"], "response.completed");
    }
    assert_eq!(upstream.faults(), [""; 0]);
}

async fn a_disconnect_does_not_end_the_response_but_a_cancel_does(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let api = Api::of(&server);
    let gate = Gate::new();
    let reply = || Reply::text("This takes a while.").held_after(1, &gate);
    upstream.script([reply(), reply()]);
    let body = json!({"model": "m", "input": "Write."});

    let mut abandoned = Events::of(run(&api, body.clone())).await;
    let first = abandoned.until("response.created").await["response"]["id"].clone();
    abandoned.until("response.output_text.delta").await;
    drop(abandoned);
    let mut events = Events::of(run(&api, body)).await;
    let second = events.until("response.created").await["response"]["id"].clone();
    events.until("response.output_text.delta").await;
    let path = format!("/responses/{}/cancel", second.as_str().unwrap());
    let cancelled = api.ask(Method::POST, &path).ok().await.json();
    gate.open();

    assert_eq!(cancelled["status"], "cancelled");
    let events = events.rest().await;
    assert_eq!(
        types(&events),
        [
            "output_text.done",
            "content_part.done",
            "output_item.done",
            "incomplete"
        ]
    );
    assert_eq!(events[2]["item"]["status"], "incomplete");
    assert_eq!(events[3]["response"], cancelled);
    let first = Events::of(listen(&api, &first, "")).await.rest().await;
    let last = first.last().unwrap();
    assert_eq!(
        last["response"]["output"][0]["content"][0]["text"],
        "This takes a while."
    );
}

async fn streams_of_a_deleted_response_get_a_final_event(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let api = Api::of(&server);
    upstream.script([Reply::hang()]);
    let body = json!({"model": "m", "input": "hi"});
    let mut own = Events::of(run(&api, body)).await;
    let created = own.until("response.created").await;
    let path = format!("/responses/{}", created["response"]["id"].as_str().unwrap());
    let read = |api: &Api| api.ask(Method::GET, &format!("{path}?stream=true"));
    let mut reader = Events::of(read(&api)).await;
    reader.until("response.in_progress").await;

    api.ask(Method::DELETE, &path).ok().await;

    for events in [own, reader] {
        let rest = events.rest().await;
        assert_eq!(rest.last().unwrap()["type"], "response.incomplete");
        assert_eq!(rest.last().unwrap()["response"]["status"], "cancelled");
    }
}

async fn a_background_response_returns_at_once(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let api = Api::of(&server);
    let gate = upstream.hold();
    upstream.script([Reply::text("later"), Reply::text("streamed")]);
    let body = json!({"model": "m", "background": true, "input": "Take your time."});
    let key = new_id();

    let ask = || {
        api.post("/responses", &body)
            .header("idempotency-key", &key)
    };
    let queued = ask().ok().await.json();
    let again = ask().ok().await;
    let path = format!("/responses/{}", queued["id"].as_str().unwrap());
    let running = api.ask(Method::GET, &path).ok().await.json();
    let events = Events::of(listen(&api, &queued["id"], "")).await;
    gate.open();
    let events = events.rest().await;
    let done = api.ask(Method::GET, &path).ok().await.json();

    assert_eq!(queued["status"], "queued");
    assert_eq!(queued["background"], true);
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!(again.json()["id"], queued["id"]);
    assert_eq!(running["status"], "in_progress");
    assert_eq!(done["status"], "completed");
    assert_eq!(events.last().unwrap()["response"], done);
    let both = Events::of(run(&api, body)).await.rest().await;
    assert_eq!(both[0]["response"]["status"], "queued");
    assert_eq!(deltas(&both), "streamed");
    let without = json!({"model": "m", "background": true, "store": false, "input": "x"});
    let without = api.post("/responses", &without);
    refused(without, 400, Some("invalid_value"), Some("store")).await;
}

async fn an_unstored_stream_is_complete_and_then_gone(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let api = Api::of(&server);
    upstream.script([Reply::text("forget me")]);

    let body = json!({"model": "m", "store": false, "input": "Write."});
    let events = Events::of(run(&api, body)).await.rest().await;

    let last = events.last().unwrap();
    assert_eq!(last["type"], "response.completed");
    assert_eq!(deltas(&events), "forget me");
    let read = listen(&api, &last["response"]["id"], "");
    refused(read, 404, Some("response_not_found"), None).await;
}

async fn a_repeat_of_a_streamed_response_returns_the_same_events(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let api = Api::of(&server);
    upstream.script([Reply::text("once"), Reply::text("whole")]);
    let body = json!({"model": "m", "input": "Write."});
    let key = new_id();
    let ask = |body: &Value| api.post("/responses", body).header("idempotency-key", &key);

    let first = Events::of(ask(&streamed(body.clone()))).await.rest().await;
    let second = Events::of(ask(&streamed(body.clone()))).await;
    assert_eq!(second.answer.headers()["idempotency-replayed"], "true");
    let second = second.rest().await;
    let whole = ask(&body).ok().await;

    assert_eq!(first, second);
    assert_eq!(whole.header("idempotency-replayed"), Some("true"));
    assert_eq!(whole.json(), first.last().unwrap()["response"]);
    assert_eq!(upstream.count(), 1);
}

async fn resuming_a_failed_response_reuses_the_failures_number(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let api = Api::of(&server);
    upstream.script([
        Reply::calls([increment_call()]),
        Reply::text("It breaks off here.").fails_after(2, Failure::CutOff),
        Reply::text("whole"),
    ]);
    let key = new_id();
    let ask = || {
        let body = json!({"model": "m", "input": "Write.", "tools": state_tools()});
        run(&api, body).header("idempotency-key", &key)
    };

    let failed = Events::of(ask()).await.rest().await;
    let id = failed[0]["response"]["id"].as_str().unwrap();
    let read = api.ask(Method::GET, &format!("/responses/{id}"));
    let read = read.ok().await.json();
    let whole = Events::of(ask()).await.rest().await;

    let (last, before) = failed.split_last().unwrap();
    assert_eq!(last["type"], "response.failed");
    assert_eq!(last["response"], read);
    assert_eq!(kinds(&read["output"]), ["mcp_call"]);
    assert_ne!(read["usage"]["total_tokens"], 0);
    let number = before.len();
    assert_eq!(whole[..number], *before);
    assert_eq!(whole[number]["type"], "response.in_progress");
    let id = &last["response"]["id"];
    let after = listen(&api, id, &format!("&starting_after={number}"));
    let after = Events::after(after, number as u64 + 1).await.rest().await;
    assert_eq!(after, whole[number + 1..]);
    assert_eq!(deltas(&after), "whole");
    assert_eq!(after.last().unwrap()["type"], "response.completed");
}

async fn invalid_event_numbers_are_rejected(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let api = Api::of(&server);
    upstream.script([Reply::text("done")]);
    let body = json!({"model": "m", "input": "Write."});
    let answer = api.post("/responses", &body).ok().await.json();
    let id = &answer["id"];

    let events = Events::of(listen(&api, id, "")).await.rest().await;
    assert_eq!(events.last().unwrap()["response"], answer);
    let last = events.len() - 1;
    let after_all = listen(&api, id, &format!("&starting_after={last}"));
    assert!(Events::after(after_all, 0).await.rest().await.is_empty());
    for (query, code, param) in [
        (
            format!("&starting_after={}", last + 1),
            "invalid_value",
            "starting_after",
        ),
        ("&starting_after=x".into(), "invalid_type", "starting_after"),
    ] {
        refused(listen(&api, id, &query), 400, Some(code), Some(param)).await;
    }
    let wrong = listen(&api, id, "").header("last-event-id", "x");
    refused(wrong, 400, Some("invalid_type"), Some("Last-Event-ID")).await;
    let unknown = listen(&api, &json!("resp_0000"), "");
    refused(unknown, 404, Some("response_not_found"), None).await;
}

async fn an_idle_stream_sends_comments(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let api = Api::of(&server);
    let gate = upstream.hold();
    upstream.script([Reply::text("done")]);

    let mut events = Events::of(run(&api, json!({"model": "m", "input": "Write."}))).await;
    let created = events.block().await.unwrap();
    assert!(
        created.starts_with("event: response.created\n"),
        "{created}"
    );
    events.block().await.unwrap();
    // no empty line follows a comment, because `OpenAI`'s client for Python would treat it as an event without data
    events.await_text(":\n:\n").await;
    gate.open();

    let next = events.block().await.unwrap();
    assert!(next.starts_with(":\n:\n"), "{next}");
    assert!(next.contains("\nevent: "), "{next}");
}

over_both_stores! {
    a_stream_delivers_the_answer_as_it_is_written,
    client_calls_are_streamed,
    an_interrupted_text_is_replaced_by_another_item,
    each_stream_failure_is_its_last_event_and_the_next_response_works,
    a_disconnect_does_not_end_the_response_but_a_cancel_does,
    streams_of_a_deleted_response_get_a_final_event,
    a_background_response_returns_at_once,
    an_unstored_stream_is_complete_and_then_gone,
    a_repeat_of_a_streamed_response_returns_the_same_events,
    resuming_a_failed_response_reuses_the_failures_number,
    invalid_event_numbers_are_rejected,
    an_idle_stream_sends_comments,
}

#[tokio::test]
async fn a_stream_resumes_on_another_replica_after_a_kill_or_stop() {
    use super::two_replicas;
    use crate::support::server::Backend;

    let shared = Server::start(Backend::Redis);
    for is_killed in [true, false] {
        let upstream = Upstream::start().await;
        let [first, second] = two_replicas(&shared, &upstream);
        let key = new_id();
        let gate = Gate::new();
        upstream.script([
            Reply::calls([increment_call()]),
            Reply::text("It breaks off here.").held_after(2, &gate),
            Reply::text("You have one."),
        ]);
        let body = streamed(json!({"model": "m", "tools": state_tools(), "input": "Count."}));
        let ask = |server: &Server| {
            let request = Api::of(server).post("/responses", &body);
            request.header("idempotency-key", &key)
        };

        let mut broken = Events::of(ask(&first)).await;
        let created = broken.until("response.created").await;
        let seen = broken.until("response.output_text.delta").await;
        let number = seen["sequence_number"].as_u64().unwrap();
        match is_killed {
            true => first.kill(),
            false => drop(first.stop()),
        }
        let id = &created["response"]["id"];
        let query = format!("&starting_after={number}");
        let resumed = listen(&Api::of(&second), id, &query);
        let resumed = Events::after(resumed, number + 1).await;
        let whole = Events::of(ask(&second)).await.rest().await;
        let resumed = resumed.rest().await;

        assert!(whole.ends_with(&resumed), "{resumed:?}");
        assert_eq!(whole[number as usize], seen);
        let last = whole.last().unwrap();
        assert_eq!(last["type"], "response.completed");
        assert_eq!(kinds(&last["response"]["output"]), ["mcp_call", "message"]);
        assert_eq!(
            last["response"]["output"][0]["output"],
            r#"{"ok":true,"value":1}"#
        );
        let broken = |event: &&Value| event["item"]["status"] == "incomplete";
        assert_eq!(whole.iter().filter(broken).count(), 1);
        assert_eq!(upstream.faults(), [""; 0]);
    }
}
