use reqwest::Method;
use serde_json::{Value, json};

use super::streams::Events;
use super::{increment_call, kinds, run, state_tools, with_models};
use crate::http::over_both_stores;
use crate::protocols::openai::{Api, refusal, refused};
use crate::support::client::new_id;
use crate::support::server::{API_SECRET, Server};
use crate::support::until;
use crate::support::upstream::{Failure, Gate, Reply, Upstream};

async fn thread_count(server: &Server) -> usize {
    let list = server.client().get("/v1/threads?limit=100");
    let list = list.bearer(API_SECRET).ok().await.json();
    list["threads"].as_array().unwrap().len()
}

async fn an_unstored_response_leaves_nothing(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).apart().start();
    let api = Api::of(&server);
    let before = thread_count(&server).await;
    let body = json!({"model": "m", "input": "Mine.", "store": false, "tools": state_tools()});
    upstream.script([
        Reply::calls([increment_call()]),
        Reply::calls([increment_call()]),
        Reply::text("Two."),
        Reply::calls([increment_call()]),
        Reply::text("One."),
    ]);

    let key = new_id();
    let keyed = || run(&api, &body).header("idempotency-key", &key);
    let first = keyed().ok().await.json();
    let again = keyed().ok().await;
    let other = run(&api, &body).ok().await.json();

    assert_eq!(first["output"][1]["output"], r#"{"ok":true,"value":2}"#);
    assert_eq!(first["conversation"], Value::Null);
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!(again.json(), first);
    assert_eq!(other["output"][0]["output"], r#"{"ok":true,"value":1}"#);
    assert_eq!(thread_count(&server).await, before);
    let path = format!("/responses/{}", first["id"].as_str().unwrap());
    let read = api.ask(Method::GET, &path);
    refused(read, 404, Some("response_not_found"), None).await;
    for more in [
        json!({"conversation": new_id()}),
        json!({"previous_response_id": first["id"]}),
        json!({"background": true}),
        json!({"threadkeep": {"messages": {"key": "messages"}}}),
    ] {
        let mut body = body.clone();
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let refused = run(&api, &body).send().await;
        let error = &refused.json()["error"];
        let param = match more.get("previous_response_id") {
            // the previous response was not stored, so it cannot be continued
            Some(_) => "previous_response_id",
            None => "store",
        };
        assert_eq!(error["param"], param, "{more}: {error}");
    }
    // if a response with `store: false` fails, it is not stored, so it cannot be read
    upstream.script([Reply::status(503)]);
    let mut body = body;
    body["stream"] = json!(true);
    let mut events = Events::of(run(&api, &body)).await;
    let failed = events.until("response.failed").await;
    let path = format!("/responses/{}", failed["response"]["id"].as_str().unwrap());
    for below in ["", "/input_items"] {
        let read = api.ask(Method::GET, &format!("{path}{below}"));
        refused(read, 404, Some("response_not_found"), None).await;
    }
    assert_eq!(upstream.count(), 6);
    assert_eq!(upstream.faults(), [""; 0]);
}

async fn a_response_that_loses_its_lent_turn_fails_with_turn_lost(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream)
        .set("THREADKEEP_RESPONSE_LEASE_MS", 60_000)
        .start();
    let api = Api::of(&server);
    for is_streamed in [false, true] {
        let id = new_id();
        let take = async || {
            let path = format!("/v1/threads/{id}/turn");
            let take = server.client().post(&path).bearer(API_SECRET);
            take.json(r#"{"ttl_seconds":1}"#).send().await
        };
        let token = take().await.json()["token"].as_str().unwrap().to_owned();
        let gate = Gate::new();
        upstream.script([
            Reply::calls([increment_call()]),
            Reply::text("late").held_midway(&gate),
        ]);
        let body = json!({
            "model": "m", "conversation": id, "tools": state_tools(), "input": "hi", "stream": is_streamed,
        });
        let key = new_id();
        let request = run(&api, &body)
            .header("x-turn-token", &token)
            .header("idempotency-key", &key);
        let answer = match is_streamed {
            false => {
                let answer = tokio::spawn(request.send());
                gate.waiting(1).await;
                until(async || take().await.status == 201).await;
                let answer = answer.await.unwrap();
                assert_eq!(answer.status, 400, "{}", answer.text());
                answer.json()["error"].clone()
            }
            true => {
                let mut events = Events::of(request).await;
                gate.waiting(1).await;
                until(async || take().await.status == 201).await;
                events.until("response.failed").await["response"]["error"].clone()
            }
        };
        assert_eq!(answer["code"], "turn_lost");
        gate.open();
        assert_eq!(upstream.faults(), [""; 0]);
    }
}

async fn an_item_id_from_a_client_belongs_to_one_item(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let api = Api::of(&server);
    let id = new_id();
    upstream.answer_with(|request| Reply::text(request.user_text()));
    let body = |text: &str| {
        let item = json!({"type": "message", "role": "user", "id": "msg_x", "content": text});
        json!({"model": "m", "conversation": id, "input": [item]})
    };

    run(&api, &body("A")).ok().await;
    let other = run(&api, &body("B")).send().await;
    let mut again = body("A");
    again["input"][0]["status"] = Value::Null;
    let same = run(&api, &again).send().await;

    let (code, param) = (Some("item_id_reused"), Some("input[0].id"));
    refusal(&other, 400, code, param);
    assert_eq!(same.status, 200, "{}", same.text());
    assert_eq!(upstream.count(), 2);
    let conversation = api.conversation(&id.replace("thrd_", "conv_"));
    let items = conversation.list("order=asc").await;
    assert_eq!(kinds(&items["data"]), ["message"; 3]);
}

async fn input_that_no_prompt_can_contain_is_rejected(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).apart().start();
    let api = Api::of(&server);
    let id = new_id();
    upstream.script([Reply::calls([("look", "{}")])]);
    let functions = json!([{"type": "function", "name": "look", "parameters": {}}]);
    let body = |input: Value| json!({"model": "m", "conversation": id, "tools": functions, "input": input});
    let called = run(&api, &body(json!("hi"))).ok().await.json();
    let output =
        |call: &Value| json!({"type": "function_call_output", "call_id": call, "output": "x"});
    let message = |part: Value| json!([{"role": "user", "content": [{"type": "input_text", "text": "a"}, part]}]);
    let call = &called["output"][0]["call_id"];

    let unknown = output(&json!("call_unknown"));
    let of_call = output(call);
    for (input, code, param) in [
        (json!([unknown]), "invalid_value", "input[0].call_id"),
        (
            message(json!({"type": "input_image", "file_id": "file-1"})),
            "unsupported_value",
            "input[0].content[1]",
        ),
        (
            message(json!({"type": "input_image"})),
            "missing_required_parameter",
            "input[0].content[1].image_url",
        ),
        (
            message(json!({"type": "input_file", "file_url": "https://a.example/b"})),
            "unsupported_value",
            "input[0].content[1]",
        ),
    ] {
        refused(run(&api, &body(input)), 400, Some(code), Some(param)).await;
    }
    // if a request does not name a conversation, invalid input is rejected before a new conversation is created
    let before = thread_count(&server).await;
    let alone = json!({"model": "m", "input": [unknown]});
    let param = Some("input[0].call_id");
    refused(run(&api, &alone), 400, Some("invalid_value"), param).await;
    assert_eq!(thread_count(&server).await, before);
    // the members of other items are not validated
    let odd =
        json!([{"type": "reasoning", "summary": [], "content": [7, null, "a", [1]]}, of_call]);
    upstream.script([Reply::text("done"), Reply::text("again")]);
    run(&api, &body(odd)).ok().await;
    run(&api, &body(json!([of_call, of_call]))).ok().await;
    assert_eq!(upstream.count(), 3);
    assert_eq!(upstream.faults(), [""; 0]);
}

async fn too_many_calls_do_not_fail_a_response(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream)
        .set("THREADKEEP_RESPONSE_MAX_STEPS", 2)
        .start();
    let api = Api::of(&server);
    let mut body =
        json!({"model": "m", "input": "hi", "tools": state_tools(), "max_tool_calls": 1});
    // the model keeps sending calls, although it is offered no tools
    upstream.script([
        Reply::calls([increment_call(); 300]),
        Reply::calls([increment_call()]),
    ]);

    let answer = run(&api, &body).ok().await.json();

    assert_eq!(answer["status"], "incomplete");
    assert_eq!(answer["incomplete_details"]["reason"], "max_tool_calls");
    let output = answer["output"].as_array().unwrap();
    assert_eq!(output.len(), 300);
    assert_eq!(output[0]["output"], r#"{"ok":true,"value":1}"#);
    assert!(output[1..].iter().all(|call| call["status"] == "failed"));

    // calls of the client's tools are not validated
    body["tools"]
        .as_array_mut()
        .unwrap()
        .push(json!({"type": "function", "name": "look", "parameters": {}}));
    upstream.script([Reply::calls([
        increment_call(),
        ("look", "{}"),
        ("look", "{}"),
    ])]);
    let answer = run(&api, &body).ok().await.json();
    assert_eq!(answer["status"], "completed");
    assert_eq!(
        kinds(&answer["output"]),
        ["mcp_call", "function_call", "function_call"]
    );
    assert_eq!(upstream.faults(), [""; 0]);
}

async fn a_model_with_tool_choice_none_calls_no_tools(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let api = Api::of(&server);
    let mut tools = state_tools();
    tools
        .as_array_mut()
        .unwrap()
        .push(json!({"type": "function", "name": "look", "parameters": {}}));
    for is_streamed in [false, true] {
        let id = new_id();
        let body = json!({
            "model": "m", "conversation": id, "input": "hi", "tools": tools, "tool_choice": "none", "stream": is_streamed,
        });
        upstream.script([Reply::calls([increment_call(), ("look", "{}")])]);

        let answer = run(&api, &body).ok().await.text();

        assert!(answer.contains(r#""status":"completed""#), "{answer}");
        let calls = ["mcp_call", "function_call"].map(|kind| format!(r#""type":"{kind}""#));
        assert!(calls.iter().all(|call| !answer.contains(call)), "{answer}");
        let read_body =
            json!({"scope": format!("thread:{id}"), "arguments": {"key": "a/n"}}).to_string();
        let read = server.client().post("/v1/tools/kv_read").bearer(API_SECRET);
        let read = read.json(&read_body).ok().await.text();
        assert!(read.contains(r#""found":false"#), "{read}");
    }
}

async fn a_response_over_its_time_limit_is_incomplete(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream)
        .set("THREADKEEP_RESPONSE_MAX_SECONDS", 1)
        .set("THREADKEEP_UPSTREAM_TIMEOUT_MS", 60_000)
        .start();
    let api = Api::of(&server);
    upstream.answer_with(|request| match request.results().is_empty() {
        true => Reply::calls([increment_call()]),
        false => Reply::hang(),
    });
    let body = json!({"model": "m", "input": "hi", "tools": state_tools()});

    let (mut with_a_call, mut without) = (0, 0);
    while with_a_call < 5 {
        let answer = run(&api, &body).ok().await.json();
        assert_eq!(answer["status"], "incomplete", "{answer}");
        assert_eq!(answer["incomplete_details"]["reason"], "time_limit");
        match &kinds(&answer["output"])[..] {
            [] => without += 1,
            kinds => {
                assert_eq!(kinds, ["mcp_call"]);
                with_a_call += 1;
            }
        }
        // allow responses without a call, because on a busy machine the time limit may expire before the first call
        assert!(without < 20, "{answer}");
    }
}

async fn a_failed_response_stays_failed(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let api = Api::of(&server);
    let key = new_id();
    let id = new_id();
    let body = json!({"model": "m", "conversation": id, "input": "hi"});
    let keyed = || run(&api, &body).header("idempotency-key", &key);
    upstream.script([Reply::status(400)]);
    let first = keyed().send().await;
    let again = keyed().send().await;
    assert_eq!((first.status, again.status), (400, 400));
    assert_eq!(first.header("idempotency-replayed"), None);
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!(upstream.count(), 1);

    // a repeated request can resume this failed response
    let mut body = body;
    body["stream"] = json!(true);
    upstream.script([Reply::text("a").fails(Failure::CutOff)]);
    let mut events = Events::of(run(&api, &body)).await;
    let failed = events.until("response.failed").await["response"].clone();
    let path = format!("/responses/{}", failed["id"].as_str().unwrap());
    let cancelled = api.post(&format!("{path}/cancel"), &json!({}));
    let cancelled = cancelled.ok().await.json();
    assert_eq!(cancelled["status"], "failed");
    assert_eq!(cancelled["error"], failed["error"]);
    let read = api.ask(Method::GET, &path).ok().await.json();
    assert_eq!(read, cancelled);
}

async fn modelrelay_responses_are_not_openai_responses(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let api = Api::of(&server);
    let gate = upstream.hold();
    upstream.script([Reply::text("mine")]);
    let input =
        json!([{"type": "message", "role": "user", "content": [{"type": "text", "text": "hi"}]}]);
    let request = server.client().post("/api/v1/responses").bearer(API_SECRET);
    let request = request
        .header("accept", "application/x-ndjson")
        .json(&json!({"model": "m", "input": input}).to_string());
    let mut answer = request.begin().await;
    gate.waiting(1).await;
    let line = answer.chunk().await.unwrap().unwrap();
    let start: Value = serde_json::from_slice(&line).unwrap();
    let path = format!("/responses/{}", start["request_id"].as_str().unwrap());

    for (method, below) in [
        (Method::GET, ""),
        (Method::GET, "?stream=true"),
        (Method::GET, "/input_items"),
        (Method::POST, "/cancel"),
        (Method::DELETE, ""),
    ] {
        let request = api.ask(method, &format!("{path}{below}"));
        refused(request, 404, Some("response_not_found"), None).await;
    }
    gate.open();
    let mut rest = Vec::new();
    while let Some(chunk) = answer.chunk().await.unwrap() {
        rest.extend_from_slice(&chunk);
    }
    assert!(
        String::from_utf8(rest)
            .unwrap()
            .contains(r#""content":"mine""#)
    );
}

#[tokio::test]
async fn readers_are_disconnected_from_a_response_that_no_replica_runs() {
    use super::two_replicas;
    use crate::support::server::Backend;

    let shared = Server::start(Backend::Redis);
    let upstream = Upstream::start().await;
    let [first, second] = two_replicas(&shared, &upstream);
    let gate = Gate::new();
    upstream.script([
        Reply::text("one two three four").held_after(2, &gate),
        Reply::text("one two three four"),
    ]);
    let body = json!({"model": "m", "input": "hi", "stream": true});
    let key = new_id();
    let ask = |server: &Server| run(&Api::of(server), &body).header("idempotency-key", &key);
    let mut broken = Events::of(ask(&first)).await;
    let created = broken.until("response.created").await;
    broken.until("response.output_text.delta").await;
    let path = format!(
        "/responses/{}?stream=true",
        created["response"]["id"].as_str().unwrap()
    );
    let api = Api::of(&second);
    let mut events = Events::of(api.ask(Method::GET, &path)).await;
    events.until("response.output_text.delta").await;

    first.kill();

    // the stream has no final event, because another replica may resume the response
    let rest = events.read_until_cut().await;
    assert!(!rest.contains("response.failed"), "{rest}");
    let whole = Events::of(ask(&second)).await.rest().await;
    assert_eq!(whole.last().unwrap()["type"], "response.completed");
}

over_both_stores! {
    an_unstored_response_leaves_nothing,
    a_response_that_loses_its_lent_turn_fails_with_turn_lost,
    an_item_id_from_a_client_belongs_to_one_item,
    input_that_no_prompt_can_contain_is_rejected,
    too_many_calls_do_not_fail_a_response,
    a_model_with_tool_choice_none_calls_no_tools,
    a_response_over_its_time_limit_is_incomplete,
    a_failed_response_stays_failed,
    modelrelay_responses_are_not_openai_responses,
}
