use reqwest::Method;
use serde_json::{Value, json};

use super::runs::{new_run, path};
use super::{ask, get, post, refused};
use crate::http::over_both_stores;
use crate::protocols::openai::responses::{PATIENCE_MS, increment_call, with_models};
use crate::support::client::{Request, new_id};
use crate::support::server::Server;
use crate::support::upstream::{Call, PRIVATE_DETAIL, Reply, Upstream};

pub(super) fn message(role: &str, text: &str) -> Value {
    json!({"type": "message", "role": role, "content": [{"type": "text", "text": text}]})
}

pub(super) fn tool(name: &str) -> Value {
    json!({"type": "function", "function": {
        "name": name, "description": format!("what {name} does"), "parameters": {"type": "object"},
    }})
}

pub(super) fn body(text: &str, tools: &[&str]) -> Value {
    let tools: Vec<_> = tools.iter().map(|name| tool(name)).collect();
    json!({"model": "m", "input": [message("user", text)], "tools": tools})
}

pub(super) fn with(mut body: Value, name: &str, value: impl Into<Value>) -> Value {
    body[name] = value.into();
    body
}

pub(super) fn run(server: &Server, body: &Value) -> Request {
    post(server, "/responses", &body.to_string())
}

pub(super) async fn create(server: &Server, path: &str) -> String {
    let made = post(server, path, "{}").ok().await.json();
    made["id"].as_str().unwrap().to_owned()
}

fn text(answer: &Value) -> &str {
    answer["output"][0]["content"][0]["text"].as_str().unwrap()
}

fn last_results(upstream: &Upstream) -> Vec<String> {
    let last = upstream.requests().pop().unwrap();
    let results = last.messages().iter();
    let results = results.filter(|message| message["role"] == "tool");
    results
        .map(|message| message["content"].as_str().unwrap().to_owned())
        .collect()
}

async fn a_response_runs_the_servers_tools_and_returns_the_text(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let handle = create(&server, "/state-handles").await;
    upstream.script([
        Reply::text("One moment. ").and_calls([increment_call()]),
        Reply::text("You have one."),
    ]);
    let request = with(body("Count.", &["kv.increment"]), "state_id", &*handle);
    let request = with(request, "temperature", json!(0.5));
    let request = with(request, "provider", "openai");
    let request = with(request, "stop", json!(["END"]));
    let request = with(request, "max_output_tokens", 100);

    let answer = run(&server, &request).header("x-modelrelay-request-id", "r-1");
    let answer = answer.ok().await;

    assert_eq!(answer.header("x-modelrelay-request-id"), Some("r-1"));
    let answer = answer.json();
    let expected = "One moment. You have one.";
    let item = json!({
        "type": "message", "role": "assistant", "content": [{"type": "text", "text": expected}],
    });
    assert_eq!(answer["output"], json!([item]));
    assert_eq!(answer["model"], "m");
    assert_eq!(answer["stop_reason"], "end_turn");
    assert!(answer["id"].as_str().unwrap().starts_with("resp_"));
    let usage = |name: &str| answer["usage"][name].as_u64().unwrap();
    assert!(usage("input_tokens") > 0);
    assert_eq!(
        usage("total_tokens"),
        usage("input_tokens") + usage("output_tokens")
    );
    let first = &upstream.requests()[0];
    let offered = &first.body["tools"][0]["function"];
    assert_eq!(offered["name"], "kv_increment");
    assert_eq!(offered["description"], "what kv.increment does");
    assert_eq!(offered["parameters"], json!({"type": "object"}));
    assert_eq!(first.body["stop"], json!(["END"]));
    let kept = json!({"state_id": handle, "tool_calls": [{"id": "r", "name": "kv_read", "arguments": {"key": "a/n"}}]});
    let kept = post(&server, "/tool-calls", &kept.to_string()).ok().await;
    assert_eq!(kept.json()["results"][0]["result"]["value"], "1");

    // a context other than a thread has no history
    upstream.script([Reply::text("Who?")]);
    run(&server, &with(body("And?", &[]), "state_id", &*handle))
        .ok()
        .await;
    assert_eq!(upstream.requests().last().unwrap().messages().len(), 1);
    assert_eq!(upstream.faults(), [""; 0]);
}

async fn client_calls_are_returned_alongside_server_calls(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let session = create(&server, "/sessions").await;
    let search = Call::new("fs_search", r#"{"query":"x"}"#).id("c-1");
    upstream.script([
        Reply::calls([Call::from(increment_call()), search]),
        Reply::text("Found."),
    ]);
    let request = body("Look.", &["kv_increment", "fs.search"]);
    let request = with(request, "session_id", &*session);

    let first = run(&server, &request).ok().await.json();

    assert_eq!(first["stop_reason"], "tool_calls");
    let call = json!({
        "id": "c-1", "type": "function",
        "function": {"name": "fs.search", "arguments": r#"{"query":"x"}"#},
    });
    assert_eq!(first["output"][0]["tool_calls"], json!([call]));
    let shown = get(&server, &format!("/sessions/{session}")).ok().await;
    assert_eq!(shown.json()["metadata"]["modelrelay.kv"]["a/n"], "1");
    assert_eq!(shown.json()["message_count"], 0);

    let mut calling = message("assistant", "");
    calling["tool_calls"] = first["output"][0]["tool_calls"].clone();
    let mut result = message("tool", "seven");
    result["tool_call_id"] = "c-1".into();
    let input = json!([
        message("system", "Be brief."),
        message("user", "Look."),
        calling,
        result
    ]);
    let second = run(&server, &with(request, "input", input))
        .ok()
        .await
        .json();

    assert_eq!(text(&second), "Found.");
    let last = upstream.requests().pop().unwrap();
    assert_eq!(last.messages()[0]["role"], "system");
    assert_eq!(last.messages()[0]["content"], "Be brief.");
    assert_eq!(last.results(), ["seven"]);
    assert_eq!(upstream.faults(), [""; 0]);
}

async fn without_a_context_the_state_lasts_for_one_response(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let read = ("kv_read", r#"{"key":"a/n"}"#);
    upstream.script([
        Reply::calls([increment_call()]),
        Reply::calls([increment_call(), read]),
        Reply::text("two"),
        Reply::calls([read]),
        Reply::text("none"),
    ]);
    let request = body("Count.", &["kv_increment", "kv_read"]);

    run(&server, &request).ok().await;
    assert_eq!(
        last_results(&upstream),
        [
            r#"{"ok":true,"value":1}"#,
            r#"{"ok":true,"value":2}"#,
            r#"{"found":true,"value":"2"}"#
        ]
    );
    run(&server, &request).ok().await;
    assert_eq!(last_results(&upstream), [r#"{"found":false}"#]);
    assert_eq!(upstream.faults(), [""; 0]);
}

async fn a_response_in_a_run_appears_in_its_events(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let id = new_run(&server, "{}").await;
    let tasks = r#"{"tasks":[{"content":"look","status":"pending"}]}"#;
    upstream.script([
        Reply::calls([increment_call(), ("tasks_write", tasks)]),
        Reply::text("noted"),
    ]);
    let request = body("Plan.", &["kv_increment", "tasks_write"]);
    let request = with(request, "run_id", id.to_string());

    run(&server, &request).ok().await;

    let events = path(id, "/events?include=state&wait=0");
    let events = get(&server, &events).ok().await.text();
    let events: Vec<Value> = events
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let kinds: Vec<_> = events.iter().map(|event| &event["type"]).collect();
    assert_eq!(kinds, ["run_started", "kv_updated", "task_list_updated"]);
    assert_eq!(events[1]["keys"], json!(["a/n"]));
    let memory = get(&server, &path(id, "/artifacts/run_memory.v0"));
    assert_eq!(memory.ok().await.json(), json!({"kv": {"a/n": "1"}}));

    // after the run has ended, only repeated requests are answered
    upstream.script([Reply::text("last")]);
    let keyed = |text: &str| {
        let request = with(body(text, &[]), "run_id", id.to_string());
        run(&server, &request).header("idempotency-key", text)
    };
    let answer = keyed("known").ok().await;
    post(&server, &path(id, "/complete"), r#"{"status":"succeeded"}"#)
        .ok()
        .await;
    assert_eq!(keyed("known").ok().await.text(), answer.text());
    refused(keyed("new"), 409, "CONFLICT").await;
    assert_eq!(upstream.faults(), [""; 0]);
}

async fn either_header_makes_a_repeat_the_same_response(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    for header in ["idempotency-key", "x-modelrelay-request-id"] {
        upstream.script([Reply::calls([increment_call()]), Reply::text("once")]);
        let (before, key) = (upstream.count(), new_id());
        let ask = |text: &str| run(&server, &body(text, &["kv_increment"])).header(header, &key);

        let (first, second) = (ask("one").ok().await, ask("one").ok().await);
        let streamed = ask("one").header("accept", "application/x-ndjson");
        let streamed = streamed.ok().await;

        assert_eq!(first.header("idempotency-replayed"), None);
        assert_eq!(second.header("idempotency-replayed"), Some("true"));
        assert_eq!(streamed.header("idempotency-replayed"), Some("true"));
        assert_eq!(first.text(), second.text());
        let last = streamed.text();
        let last: Value = serde_json::from_str(last.lines().last().unwrap()).unwrap();
        assert_eq!(last["content"], text(&first.json()));
        refused(ask("two"), 409, "CONFLICT").await;
        assert_eq!(upstream.count() - before, 2);
    }
    // without an idempotency key, a repeated request creates a new response
    upstream.script([Reply::text("one"), Reply::text("two")]);
    let ask = async || run(&server, &body("again", &[])).ok().await.json();
    assert_ne!(ask().await["id"], ask().await["id"]);
}

async fn each_upstream_failure_has_its_error(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream)
        .set("THREADKEEP_UPSTREAM_TIMEOUT_MS", PATIENCE_MS)
        .start();
    for (reply, status, code) in [
        (
            Reply::status(400).message("much too long"),
            400,
            "VALIDATION_ERROR",
        ),
        (Reply::status(401), 502, "SERVICE_UNAVAILABLE"),
        (Reply::status(500), 502, "SERVICE_UNAVAILABLE"),
        (Reply::status(429).retry_after(7), 429, "RATE_LIMIT"),
        (Reply::garbage(), 502, "SERVICE_UNAVAILABLE"),
        (Reply::hang(), 504, "SERVICE_UNAVAILABLE"),
    ] {
        upstream.script([reply.clone(), reply]);
        let ask = || run(&server, &body("fails", &[]));
        let error = refused(ask(), status, code).await;
        let streamed = ask().header("accept", "application/x-ndjson").ok().await;
        let last = streamed.text();
        let last: Value = serde_json::from_str(last.lines().last().unwrap()).unwrap();

        assert_eq!(last["type"], "error");
        assert_eq!(last["status"], status);
        assert_eq!(last["code"], code);
        assert_eq!(last["message"], error["message"]);
        let error_text = error["message"].as_str().unwrap();
        assert_eq!(
            error_text.contains("much too long"),
            status == 400,
            "{error_text}"
        );
        assert!(!format!("{error}{last}").contains(PRIVATE_DETAIL));
    }
    upstream.script([Reply::status(429).retry_after(7)]);
    let limited = run(&server, &body("fails", &[])).send().await;
    assert_eq!(limited.header("retry-after"), Some("7"));
    assert!(!server.log().contains(PRIVATE_DETAIL));
    assert_eq!(upstream.faults(), [""; 0]);
}

async fn a_failed_response_resumes_when_it_is_repeated(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let handle = create(&server, "/state-handles").await;
    upstream.script([
        Reply::calls([increment_call()]),
        Reply::status(500),
        Reply::text("done"),
    ]);
    let request = with(body("Count.", &["kv_increment"]), "state_id", &*handle);
    let ask = || run(&server, &request).header("idempotency-key", &handle);

    refused(ask(), 502, "SERVICE_UNAVAILABLE").await;
    let answer = ask().ok().await.json();

    assert_eq!(text(&answer), "done");
    assert_eq!(last_results(&upstream), [r#"{"ok":true,"value":1}"#]);
    assert_eq!(upstream.count(), 3);
    assert_eq!(upstream.faults(), [""; 0]);
}

async fn invalid_requests_are_rejected_before_the_upstream_is_called(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let id = "7d3f4a50-8f8a-4f3e-9a39-0d3d1c2b1a00";
    for (name, value) in [
        ("model", Value::Null),
        ("input", json!([])),
        ("input", json!("hi")),
        ("input", json!([7])),
        ("input", json!([message("developer", "x")])),
        ("input", json!([message("tool", "x")])),
        ("input", json!([message("user", "")])),
        (
            "input",
            json!([{"type": "item", "role": "user", "content": []}]),
        ),
        (
            "input",
            json!([{"type": "message", "role": "user", "content": [{"type": "video"}]}]),
        ),
        (
            "input",
            json!([{"type": "message", "role": "user", "content": [], "tool_calls": [{"id": "c", "type": "function"}]}]),
        ),
        ("tools", json!([{"type": "web"}])),
        ("tools", json!([{"type": "x_search"}])),
        ("tools", json!([{"type": "code_execution"}])),
        ("tools", json!([tool("kv.read"), tool("kv_read")])),
        ("tool_choice", json!({"type": "required"})),
        ("tool_choice", json!({"type": "any"})),
        ("temperature", json!("hot")),
        ("max_output_tokens", json!(0)),
        ("stop", json!(vec!["x"; 9])),
        ("stop", json!(["x".repeat(129)])),
        ("stop", json!([""])),
        ("output_format", json!({"type": "xml"})),
        ("output_format", json!({"type": "json_schema"})),
        ("threadkeep", json!({"history": true})),
        ("threadkeep", json!({"other": true})),
        ("state_id", json!("x")),
        ("unknown", json!(1)),
    ] {
        let bad = with(body("hi", &[]), name, value);
        refused(run(&server, &bad), 400, "VALIDATION_ERROR").await;
    }
    let both = with(with(body("hi", &[]), "state_id", id), "run_id", id);
    refused(run(&server, &both), 400, "VALIDATION_ERROR").await;
    for name in ["state_id", "session_id", "run_id"] {
        let unknown = with(body("hi", &[]), name, id);
        refused(run(&server, &unknown), 404, "NOT_FOUND").await;
    }
    let unknown = with(body("hi", &[]), "model", "other");
    refused(run(&server, &unknown), 404, "NOT_FOUND").await;
    refused(post(&server, "/responses", "{"), 400, "INVALID_INPUT").await;
    let read = ask(&server, Method::GET, "/responses");
    refused(read, 405, "METHOD_NOT_ALLOWED").await;
    let anonymous = server.client().post("/api/v1/responses");
    refused(
        anonymous.json(&body("hi", &[]).to_string()),
        401,
        "UNAUTHORIZED",
    )
    .await;
    assert_eq!(upstream.count(), 0);
}

async fn without_models_the_path_does_not_exist(server: &Server) {
    refused(run(server, &body("hi", &[])), 404, "NOT_FOUND").await;
}

over_both_stores! {
    a_response_runs_the_servers_tools_and_returns_the_text,
    client_calls_are_returned_alongside_server_calls,
    without_a_context_the_state_lasts_for_one_response,
    a_response_in_a_run_appears_in_its_events,
    either_header_makes_a_repeat_the_same_response,
    each_upstream_failure_has_its_error,
    a_failed_response_resumes_when_it_is_repeated,
    invalid_requests_are_rejected_before_the_upstream_is_called,
    without_models_the_path_does_not_exist,
}

#[tokio::test]
async fn another_replica_takes_over_a_killed_or_stopped_replicas_response() {
    use crate::protocols::openai::responses::two_replicas;
    use crate::support::server::Backend;

    let shared = Server::start(Backend::Redis);
    let handle = create(&shared, "/state-handles").await;
    for (is_killed, context) in [(true, None), (false, None), (true, Some(&*handle))] {
        let upstream = Upstream::start().await;
        let [first, second] = two_replicas(&shared, &upstream);
        let key = new_id();
        let mut request = body("Count.", &["kv_increment", "kv_read"]);
        if let Some(handle) = context {
            request["state_id"] = handle.into();
        }
        upstream.script([
            Reply::calls([increment_call()]),
            Reply::hang(),
            Reply::calls([increment_call(), ("kv_read", r#"{"key":"a/n"}"#)]),
            Reply::text("two"),
        ]);
        let ask = |server: &Server| run(server, &request).header("idempotency-key", &key);

        let stuck = tokio::spawn(ask(&first).try_send());
        upstream.await_requests(2).await;
        match is_killed {
            true => first.kill(),
            false => drop(first.stop()),
        }
        drop(stuck.await);
        let answer = ask(&second).ok().await.json();

        assert_eq!(text(&answer), "two");
        let results = last_results(&upstream);
        assert_eq!(results[2], r#"{"found":true,"value":"2"}"#, "{results:?}");
        assert_eq!(upstream.faults(), [""; 0]);
    }
}
