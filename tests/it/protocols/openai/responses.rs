//! Turns of models over HTTP, with a scripted upstream: the wire, its errors, repeats and replicas.

use reqwest::Method;
use serde_json::{Value, json};

use super::streams::Events;
use super::{Program, missing, refused};
use crate::http::over_both_stores;
use crate::support::client::{Request, new_id};
use crate::support::server::{API_SECRET, Builder, Server};
use crate::support::until;
use crate::support::upstream::{Call, Gate, PRIVATE_DETAIL, Reply, Upstream};

const STATE: &str = "threadkeep:state";

/// A server on the same store that knows the models of an upstream.
pub(in crate::protocols) fn with_models(server: &Server, upstream: &Upstream) -> Builder {
    let (url, key) = (upstream.url(), upstream.key());
    server
        .settings()
        .set("THREADKEEP_UPSTREAMS", format!("main openai-chat {url}"))
        .set("THREADKEEP_UPSTREAM_KEYS", format!("main:{key}"))
        .set(
            "THREADKEEP_MODELS",
            "m main, named main its-name, any-* main",
        )
        .set("THREADKEEP_UPSTREAM_RETRIES", 0)
}

/// Two such servers, of which one soon goes on with the turns of the other when that is killed or stopped.
#[cfg(feature = "redis")]
pub(in crate::protocols) fn two_replicas(shared: &Server, upstream: &Upstream) -> [Server; 2] {
    [(); 2].map(|()| {
        with_models(shared, upstream)
            .set("THREADKEEP_TURN_LEASE_MS", 1_000)
            .set("THREADKEEP_SHUTDOWN_SECONDS", 1)
            .start()
    })
}

pub(super) fn state_tools() -> Value {
    json!([{"type": "mcp", "server_label": "memory", "server_url": STATE, "require_approval": "never"}])
}

pub(in crate::protocols) fn count() -> (&'static str, &'static str) {
    ("kv_increment", r#"{"key":"a/n"}"#)
}

pub(super) fn run(program: &Program, body: &Value) -> Request {
    program.post("/responses", body)
}

pub(super) fn kinds(items: &Value) -> Vec<String> {
    let items = items.as_array().unwrap().iter();
    items
        .map(|item| item["type"].as_str().unwrap().to_owned())
        .collect()
}

async fn a_response_runs_its_tools_and_can_be_read_again(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let program = Program::of(&server);
    let id = new_id();
    upstream.script([Reply::calls([count()]), Reply::text("You have one.")]);
    let body = json!({
        "model": "m",
        "instructions": "Count.",
        "conversation": id,
        "tools": state_tools(),
        "input": "Count one more.",
        "temperature": 0.50,
        "unknown": {"of": "tomorrow"},
    });

    let answer = run(&program, &body).ok().await.json();

    assert_eq!(answer["status"], "completed", "{answer}");
    assert_eq!(kinds(&answer["output"]), ["mcp_call", "message"]);
    let call = &answer["output"][0];
    assert_eq!(
        (&call["name"], &call["error"]),
        (&json!("kv_increment"), &Value::Null)
    );
    assert_eq!(call["output"], r#"{"ok":true,"value":1}"#);
    assert_eq!(answer["output"][1]["content"][0]["text"], "You have one.");
    assert!(answer["usage"]["total_tokens"].as_u64() > Some(0));
    let conversation = answer["conversation"]["id"].as_str().unwrap();
    assert_eq!(conversation, id.replace("thrd_", "conv_"));

    let path = format!("/responses/{}", answer["id"].as_str().unwrap());
    assert_eq!(program.ask(Method::GET, &path).ok().await.json(), answer);
    // the same below the other base URL
    let other = server
        .client()
        .get(&format!("/v1{path}"))
        .bearer(API_SECRET);
    assert_eq!(other.ok().await.json(), answer);
    let input = program
        .ask(Method::GET, &format!("{path}/input_items"))
        .ok()
        .await
        .json();
    assert_eq!(input["data"][0]["content"][0]["text"], "Count one more.");
    let cancelled = program
        .ask(Method::POST, &format!("{path}/cancel"))
        .ok()
        .await
        .json();
    assert_eq!(cancelled, answer);
    let items = program.conversation(conversation).list("order=asc").await;
    assert_eq!(kinds(&items["data"]), ["message", "mcp_call", "message"]);
    assert_eq!(items["data"][1], answer["output"][0]);

    upstream.script([Reply::text("Still one.")]);
    let previous =
        json!({"model": "any-of", "previous_response_id": answer["id"], "input": "And?"});
    run(&program, &previous).ok().await;
    let last = upstream.requests().pop().unwrap();
    assert_eq!(last.model(), "any-of");
    assert_eq!(last.messages().len(), 5, "{:?}", last.messages());

    program.ask(Method::DELETE, &path).ok().await;
    refused(
        program.ask(Method::GET, &path),
        404,
        Some("response_not_found"),
        None,
    )
    .await;
    assert_eq!(upstream.faults(), [""; 0]);
}

async fn a_call_of_the_client_ends_the_turn_and_is_answered_in_the_next(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let program = Program::of(&server);
    let id = new_id();
    let mut tools = state_tools();
    let own = json!({"type": "function", "name": "weather", "parameters": {"type": "object"}});
    tools.as_array_mut().unwrap().push(own);
    let weather = Call::new("weather", r#"{"city":"Oslo"}"#);
    let mixed = [Call::from(count()), weather.clone()];
    upstream.script([Reply::calls(mixed), Reply::text("Cold.")]);
    let body = |input: Value| json!({"model": "named", "conversation": id, "tools": tools, "input": input});

    let first = run(&program, &body(json!("How is it in Oslo?")))
        .ok()
        .await
        .json();
    assert_eq!(kinds(&first["output"]), ["mcp_call", "function_call"]);
    let call_id = &first["output"][1]["call_id"];
    let result = json!([{"type": "function_call_output", "call_id": call_id, "output": "-5"}]);
    let second = run(&program, &body(result)).ok().await.json();
    assert_eq!(second["output"][0]["content"][0]["text"], "Cold.");

    // a call that is never answered does not poison the conversation
    upstream.script([Reply::calls([weather]), Reply::text("Never mind.")]);
    run(&program, &body(json!("And tomorrow?"))).ok().await;
    run(&program, &body(json!("Forget it."))).ok().await;
    let last = upstream.requests().pop().unwrap();
    assert_eq!(last.model(), "its-name");
    assert!(
        last.body
            .to_string()
            .contains("no output was given for this call")
    );
    assert_eq!(upstream.faults(), [""; 0]);
}

async fn mistakes_of_the_model_are_results_for_it(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let program = Program::of(&server);
    upstream.script([
        Reply::calls([("kv_write", r#"{"key":"bad key","value":"x"}"#)]),
        Reply::calls([("no_such_tool", "{")]),
        Reply::calls([("kv_write", r#"{"key":"a/b","value":"x"}"#)]),
        Reply::text("done"),
    ]);
    let body = json!({"model": "m", "tools": state_tools(), "input": "go"});

    let answer = run(&program, &body).ok().await.json();

    let errors: Vec<_> = (0..3)
        .map(|at| answer["output"][at]["error"].as_str())
        .collect();
    assert!(
        errors[0]
            .unwrap()
            .starts_with("kv.write key must be namespaced"),
        "{errors:?}"
    );
    assert!(errors[1].unwrap().contains("kv_increment"), "{errors:?}");
    assert_eq!(errors[2], None);
    assert_eq!(answer["status"], "completed");
    assert_eq!(upstream.faults(), [""; 0]);
}

async fn each_failure_of_the_upstream_has_its_error_and_the_next_turn_works(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream)
        .set("THREADKEEP_UPSTREAM_TIMEOUT_MS", 500)
        .start();
    let program = Program::of(&server);
    let id = new_id();
    let body = |text: &str| json!({"model": "m", "conversation": id, "input": text});
    for (reply, status, code) in [
        (
            Reply::status(400).message("too long"),
            400,
            "upstream_refused",
        ),
        (Reply::status(401), 502, "upstream_error"),
        (Reply::status(500), 502, "upstream_error"),
        (
            Reply::status(429).retry_after(7),
            429,
            "rate_limit_exceeded",
        ),
        (Reply::disconnect(), 502, "upstream_error"),
        (Reply::garbage(), 502, "upstream_malformed"),
        (Reply::cut_off(), 502, "upstream_malformed"),
        (Reply::empty(), 502, "upstream_malformed"),
        (Reply::hang(), 504, "upstream_timeout"),
    ] {
        upstream.script([reply]);
        let answer = run(&program, &body("fails")).send().await;
        let text = answer.text();
        assert_eq!(answer.status, status, "{code}: {text}");
        assert_eq!(answer.json()["error"]["code"], code, "{text}");
        assert!(!text.contains(PRIVATE_DETAIL), "{text}");
        // a repeat in the conversation goes on with the turn
        assert_eq!(answer.header("x-should-retry"), None);
        let alone = json!({"model": "m", "input": "fails"});
        upstream.script([Reply::status(500)]);
        let alone = run(&program, &alone).send().await;
        assert_eq!(alone.header("x-should-retry"), Some("false"));
        match code {
            "upstream_refused" => assert!(text.contains("too long"), "{text}"),
            "rate_limit_exceeded" => assert_eq!(answer.header("retry-after"), Some("7")),
            _ => {}
        }
        upstream.script([Reply::text("works")]);
        let next = run(&program, &body("works")).ok().await.json();
        assert_eq!(next["status"], "completed");
    }
    assert!(!server.log().contains(PRIVATE_DETAIL));
    assert_eq!(upstream.faults(), [""; 0]);
}

async fn wrong_requests_are_refused_before_the_upstream_is_asked(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let program = Program::of(&server);
    let url = json!([{"type": "mcp", "server_label": "x", "server_url": "https://mcp.example"}]);
    let twice = json!([
        {"type": "function", "name": "kv_read"},
        {"type": "mcp", "server_label": "x", "server_url": STATE},
    ]);
    for (change, status, code, param) in [
        (
            json!({"model": null}),
            400,
            "missing_required_parameter",
            "model",
        ),
        (json!({"model": "other"}), 404, "model_not_found", "model"),
        (
            json!({"input": null}),
            400,
            "missing_required_parameter",
            "input",
        ),
        (json!({"input": []}), 400, "invalid_value", "input"),
        (
            json!({"input": [{"role": "user", "content": "a", "id": "x"}, {"role": "user", "content": "b", "id": "x"}]}),
            400,
            "invalid_value",
            "input[1].id",
        ),
        (
            json!({"input": [{"type": "of_tomorrow"}]}),
            400,
            "invalid_value",
            "input[0].type",
        ),
        (
            json!({"input": [{"role": "tool", "content": "x"}]}),
            400,
            "invalid_value",
            "input[0].role",
        ),
        (
            json!({"input": [{"role": "user", "content": [{"type": "video"}]}]}),
            400,
            "invalid_value",
            "input[0].content[0].type",
        ),
        (
            json!({"conversation": "x", "previous_response_id": "y"}),
            400,
            "invalid_value",
            "previous_response_id",
        ),
        (
            json!({"previous_response_id": "y"}),
            400,
            "invalid_value",
            "previous_response_id",
        ),
        (
            json!({"prompt": {"id": "x"}}),
            400,
            "unsupported_parameter",
            "prompt",
        ),
        (
            json!({"truncation": "auto"}),
            400,
            "unsupported_parameter",
            "truncation",
        ),
        (
            json!({"tools": [{"type": "computer"}]}),
            400,
            "unsupported_tool",
            "tools[0].type",
        ),
        (
            json!({"tools": url}),
            400,
            "unsupported_tool",
            "tools[0].server_url",
        ),
        (json!({"tools": twice}), 400, "duplicate_tool", "tools[1]"),
        (
            json!({"tool_choice": "required"}),
            400,
            "invalid_value",
            "tool_choice",
        ),
        (
            json!({"temperature": "hot"}),
            400,
            "invalid_type",
            "temperature",
        ),
        (
            json!({"max_output_tokens": -1}),
            400,
            "invalid_type",
            "max_output_tokens",
        ),
        (
            json!({"store": false, "conversation": new_id()}),
            400,
            "invalid_value",
            "store",
        ),
        (
            json!({"metadata": {"a": 7}}),
            400,
            "invalid_type",
            "metadata.a",
        ),
        (json!({"threadkeep": 7}), 400, "invalid_type", "threadkeep"),
        (
            json!({"threadkeep": {"messages": "messages"}}),
            400,
            "invalid_type",
            "threadkeep.messages",
        ),
        (
            json!({"threadkeep": {"messages": {"max_records": 5}}}),
            400,
            "missing_required_parameter",
            "threadkeep.messages.key",
        ),
        (
            json!({"threadkeep": {"messages": {"key": ""}}}),
            400,
            "invalid_value",
            "threadkeep.messages.key",
        ),
        (
            json!({"threadkeep": {"messages": {"key": "m", "max_records": 0}}}),
            400,
            "invalid_value",
            "threadkeep.messages.max_records",
        ),
    ] {
        let mut body = json!({"model": "m", "input": "hi"});
        let change = change.as_object().unwrap().clone();
        body.as_object_mut().unwrap().extend(change);
        refused(run(&program, &body), status, Some(code), Some(param)).await;
    }
    let unknown = "conv_00000000000000000000000000000000";
    let body = json!({"model": "m", "input": "hi", "conversation": unknown});
    missing(run(&program, &body)).await;
    let stranger = server
        .client()
        .post("/v1/responses")
        .json(r#"{"model":"m","input":"hi"}"#);
    refused(stranger, 401, Some("invalid_api_key"), None).await;
    assert_eq!(upstream.count(), 0);
}

async fn a_repeat_with_a_key_is_replayed_and_the_key_is_for_one_request(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let program = Program::of(&server);
    upstream.script([Reply::text("once"), Reply::text("then")]);
    let key = new_id();
    let ask = |text: &str| {
        let body = json!({"model": "m", "input": text});
        run(&program, &body).header("idempotency-key", &key)
    };

    let (first, second) = (ask("one").ok().await, ask("one").ok().await);

    assert_eq!(first.header("idempotency-replayed"), None);
    assert_eq!(second.header("idempotency-replayed"), Some("true"));
    assert_eq!(first.text(), second.text());
    refused(ask("two"), 422, Some("idempotency_key_reused"), None).await;
    assert_eq!(upstream.count(), 1);
    let id = first.json()["id"].clone();
    let next = json!({"model": "m", "previous_response_id": id, "input": "two"});
    let next = || run(&program, &next).header("idempotency-key", "next");
    let (first, second) = (next().ok().await, next().ok().await);
    assert_eq!(first.text(), second.text());
    assert_eq!(upstream.count(), 2);
}

async fn an_earlier_response_is_followed_in_a_copy(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let program = Program::of(&server);
    upstream.script([
        Reply::calls([count()]),
        Reply::text("One."),
        Reply::text("Two."),
        Reply::calls([count()]),
        Reply::text("Another two."),
        Reply::text("Three."),
        Reply::text("Another three."),
    ]);
    let body = |previous: &Value, text: &str| {
        json!({
            "model": "m",
            "previous_response_id": previous["id"],
            "tools": state_tools(),
            "input": text,
        })
    };
    let first = run(&program, &body(&Value::Null, "One?")).ok().await.json();
    let second = run(&program, &body(&first, "Two?")).ok().await.json();
    let other = || run(&program, &body(&first, "Other?")).header("idempotency-key", "other");

    let forked = other().ok().await.json();
    let third = run(&program, &body(&second, "Three?")).ok().await.json();
    let further = run(&program, &body(&forked, "Further?")).ok().await.json();
    let repeat = other().ok().await;

    assert_eq!(second["conversation"], first["conversation"]);
    assert_eq!(third["conversation"], first["conversation"]);
    assert_ne!(forked["conversation"], first["conversation"]);
    assert_eq!(further["conversation"], forked["conversation"]);
    assert_eq!(repeat.header("idempotency-replayed"), Some("true"));
    assert_eq!(repeat.json(), forked);
    assert_eq!(upstream.count(), 7);
    // keys come along, and then go their own way
    assert_eq!(forked["output"][0]["output"], r#"{"ok":true,"value":2}"#);
    let list = async |response: &Value| {
        let conversation = response["conversation"]["id"].as_str().unwrap();
        let items = program.conversation(conversation).list("order=asc").await;
        items["data"].clone()
    };
    let (source, copy) = (list(&first).await, list(&forked).await);
    let whole = ["message", "mcp_call", "message"];
    assert_eq!(kinds(&source), [&whole[..], &["message"; 4]].concat());
    assert_eq!(
        kinds(&copy),
        [&whole[..], &whole[..], &["message"; 2]].concat()
    );
    assert_eq!(
        copy.as_array().unwrap()[..3],
        source.as_array().unwrap()[..3]
    );

    // what a response has left has to be there still
    let conversation = first["conversation"]["id"].as_str().unwrap();
    let last = source[2]["id"].as_str().unwrap();
    let path = format!("/conversations/{conversation}/items/{last}");
    program.ask(Method::DELETE, &path).ok().await;
    let gone = run(&program, &body(&first, "Once more?"));
    let name = Some("previous_response_id");
    refused(gone, 400, Some("unsupported_value"), name).await;
    assert_eq!(upstream.faults(), [""; 0]);
}

async fn the_state_keeps_a_window_of_messages_for_pages(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let program = Program::of(&server);
    let id = new_id();
    let value = |key: &str| {
        let path = format!("/v1/threads/{id}/state/{key}");
        server.client().get(&path).bearer(API_SECRET)
    };
    let body = |text: &str, key: &str| {
        json!({
            "model": "m",
            "conversation": id,
            "tools": state_tools(),
            "input": text,
            "threadkeep": {"messages": {"key": key, "max_records": 3}},
        })
    };
    upstream.script([
        Reply::calls([count()]),
        Reply::text("One."),
        Reply::text("Two."),
    ]);

    let first = run(&program, &body("Count.", "messages")).ok().await.json();
    let said = value("messages").ok().await.json();
    let second = run(&program, &body("Again.", "messages")).ok().await.json();

    let input = program.ask(
        Method::GET,
        &format!("/responses/{}/input_items", first["id"].as_str().unwrap()),
    );
    let asked = input.ok().await.json()["data"][0]["id"].clone();
    let answered = &first["output"][1]["id"];
    let [asked, answered] = [
        json!({"role": "user", "content": "Count.", "id": asked}),
        json!({"role": "assistant", "content": "One.", "id": answered}),
    ];
    assert_eq!(said, json!([asked, answered]));
    let window = value("messages").ok().await.json();
    assert_eq!(window[0], answered);
    assert_eq!(window[1]["content"], "Again.");
    assert_eq!(window[2]["id"], second["output"][0]["id"]);

    // a value that is no array is refused before the upstream is asked
    let path = format!("/v1/threads/{id}/state/title");
    let put = |path: &str, json: &str| {
        let request = server.client().request(Method::PUT, path);
        request.bearer(API_SECRET).json(json)
    };
    put(&path, r#""A title""#).ok().await;
    let wrong = run(&program, &body("More.", "title"));
    refused(
        wrong,
        400,
        Some("invalid_value"),
        Some("threadkeep.messages.key"),
    )
    .await;
    assert_eq!(upstream.count(), 3);

    // and one without room is an error after the turn, whose items stay
    let path = format!("/v1/threads/{id}/state/filling");
    let filling = format!(r#""{}""#, "x".repeat(1_048_576 - 700));
    put(&path, &filling).ok().await;
    upstream.script([Reply::text("Too much.".repeat(100))]);
    let full = run(&program, &body("More.", "messages"));
    refused(full, 413, Some("conversation_too_large"), None).await;
    let conversation = program.conversation(&id.replace("thrd_", "conv_"));
    let items = conversation.list("order=asc").await;
    assert_eq!(kinds(&items["data"]).len(), 7);
    assert_eq!(value("messages").ok().await.json(), window);
}

/// The response to a repeat of a request whose model has yet to answer. As a stream, it shows when it has reached the turn:
/// the answer that nobody waits for any more may count as written if the turn ends before.
async fn sent_again(program: &Program, mut body: Value, gate: &Gate) -> Value {
    body["stream"] = json!(true);
    let again = run(program, &body).header("x-stainless-retry-count", "1");
    let mut events = Events::of(again).await;
    events.until("response.created").await;
    gate.open();
    events.until("response.completed").await["response"].clone()
}

async fn a_client_that_sends_a_request_again_by_itself_gets_the_same_turn(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let program = Program::of(&server);
    let id = new_id();
    let texts = ["one", "two", "three", "four"];
    upstream.script(texts.map(Reply::text));
    let body = |text: &str| json!({"model": "m", "conversation": id, "input": text});
    let ask = |text: &str, count: &str| {
        run(&program, &body(text)).header("x-stainless-retry-count", count)
    };
    let gate = upstream.hold();
    // the connection breaks before the answer
    let lost = tokio::spawn(ask("yes", "0").try_send());
    gate.waiting(1).await;
    lost.abort();
    drop(lost.await);
    let again = sent_again(&program, body("yes"), &gate).await;
    assert_eq!(again["output"][0]["content"][0]["text"], "one");
    // after a complete answer, it is said twice
    until(async || {
        let next = ask("yes", "1").ok().await;
        next.json()["output"][0]["content"][0]["text"] != "one"
    })
    .await;
    let count = upstream.count();
    assert_eq!(count, 2);
    let other = ask("no", "1").ok().await;
    assert_eq!(other.json()["output"][0]["content"][0]["text"], "three");
    let elsewhere = json!({"model": "m", "input": "no"});
    let elsewhere = run(&program, &elsewhere).header("x-stainless-retry-count", "1");
    let elsewhere = elsewhere.ok().await.json();
    assert_eq!(elsewhere["output"][0]["content"][0]["text"], "four");
}

async fn a_request_sent_again_that_follows_a_response_is_the_same_turn(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let program = Program::of(&server);
    upstream.script(["one", "two", "three"].map(Reply::text));
    let first = json!({"model": "m", "input": "first"});
    let first = run(&program, &first).ok().await.json();
    let body = json!({"model": "m", "previous_response_id": first["id"], "input": "yes"});
    let ask = |count: &str| run(&program, &body).header("x-stainless-retry-count", count);
    let gate = upstream.hold();
    let lost = tokio::spawn(ask("0").try_send());
    gate.waiting(1).await;
    lost.abort();
    drop(lost.await);
    let again = sent_again(&program, body.clone(), &gate).await;

    assert_eq!(again["output"][0]["content"][0]["text"], "two");
    assert_eq!(again["conversation"], first["conversation"]);
    // its answer has arrived, so another request goes on from the first response in a copy
    until(async || {
        let next = ask("1").ok().await.json();
        next["conversation"] != first["conversation"]
    })
    .await;
    assert_eq!(upstream.count(), 3);
}

async fn items_of_others_do_not_come_between_a_response_and_the_next(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let program = Program::of(&server);
    upstream.script(["one", "two", "three"].map(Reply::text));
    let window = json!({"messages": {"key": "messages"}});
    let body = |previous: &Value, input: &Value| {
        json!({
            "model": "m",
            "previous_response_id": previous["id"],
            "input": input,
            "threadkeep": window,
        })
    };
    let first = run(&program, &body(&Value::Null, &json!("one")))
        .ok()
        .await
        .json();
    let conversation = first["conversation"]["id"].as_str().unwrap();
    let path = format!("/conversations/{conversation}/items");
    let items = json!({"items": [{"type": "message", "role": "user", "content": "aside"}]});
    program.post(&path, &items).ok().await;
    let listed = program.conversation(conversation).list("order=asc").await;

    // items that the conversation has already are no new messages
    let again = json!([listed["data"][0], {"role": "user", "content": "two"}]);
    let second = run(&program, &body(&first, &again)).ok().await.json();

    assert_eq!(second["conversation"], first["conversation"]);
    let path = format!(
        "/v1/threads/{}/state/messages",
        conversation.replace("conv_", "thrd_")
    );
    let messages = server
        .client()
        .get(&path)
        .bearer(API_SECRET)
        .ok()
        .await
        .json();
    let said: Vec<_> = messages
        .as_array()
        .unwrap()
        .iter()
        .map(|said| &said["content"])
        .collect();
    assert_eq!(said, ["one", "one", "two", "two"]);
    // a request that is wrong in other ways makes no copy
    let mut wrong = body(&first, &json!("three"));
    wrong["model"] = json!("other");
    refused(
        run(&program, &wrong),
        404,
        Some("model_not_found"),
        Some("model"),
    )
    .await;
}

async fn a_response_that_is_deleted_while_it_runs_is_not_run_again(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let program = Program::of(&server);
    let id = new_id();
    upstream.script([Reply::calls([count()]), Reply::hang(), Reply::text("next")]);
    let body = json!({"model": "m", "conversation": id, "tools": state_tools(), "input": "hi"});
    let first = tokio::spawn(run(&program, &body).send());
    upstream.await_requests(2).await;
    let locked = run(&program, &body).send().await.json();
    let path = format!(
        "/responses/{}",
        locked["error"]["response_id"].as_str().unwrap()
    );

    program.ask(Method::DELETE, &path).ok().await;
    let answer = first.await.unwrap();
    let next = json!({"model": "m", "conversation": id, "input": "next"});
    run(&program, &next).ok().await;

    assert!([200, 404].contains(&answer.status), "{}", answer.text());
    assert_eq!(upstream.count(), 3);
    let conversation = program.conversation(&id.replace("thrd_", "conv_"));
    let items = conversation.list("order=asc").await;
    assert_eq!(
        kinds(&items["data"]),
        ["message", "mcp_call", "message", "message"]
    );
}

async fn a_caller_that_holds_the_turn_lends_it_to_the_model(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let program = Program::of(&server);
    let id = new_id();
    let path = format!("/v1/threads/{id}/turn");
    let take = server.client().post(&path).bearer(API_SECRET);
    let take = take
        .json(r#"{"ttl_seconds":60,"exclusive":true}"#)
        .ok()
        .await
        .json();
    let token = take["token"].as_str().unwrap().to_owned();
    upstream.script([Reply::calls([count()]), Reply::text("done")]);
    let body = json!({"model": "m", "conversation": id, "tools": state_tools(), "input": "hi"});

    let without = run(&program, &body).send().await;
    let with = run(&program, &body)
        .header("x-turn-token", token)
        .ok()
        .await
        .json();

    assert_eq!(without.json()["error"]["code"], "conversation_locked");
    assert_eq!(with["output"][0]["output"], r#"{"ok":true,"value":1}"#);
    assert_eq!(with["status"], "completed");
}

async fn turns_of_one_conversation_come_one_after_the_other(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let program = Program::of(&server);
    let id = new_id();
    let conversation = id.replace("thrd_", "conv_");
    let gate = upstream.hold();
    upstream.answer_with(|request| match request.results().is_empty() {
        true => Reply::calls([count()]),
        false => Reply::text(request.user_text()),
    });
    let body = json!({"model": "m", "conversation": id, "tools": state_tools(), "input": "hi"});
    let first = tokio::spawn(run(&program, &body).send());
    gate.waiting(1).await;

    let locked = run(&program, &body).send().await;
    let later =
        [(); 7].map(|()| tokio::spawn(run(&program, &body).header("prefer", "wait=60").ok()));
    gate.open();

    assert_eq!(locked.status, 400, "{}", locked.text());
    assert_eq!(locked.header("x-should-retry"), Some("true"));
    assert_eq!(locked.header("retry-after"), Some("1"));
    let error = locked.json();
    assert_eq!(error["error"]["code"], "conversation_locked");
    assert_eq!(
        first.await.unwrap().json()["id"],
        error["error"]["response_id"]
    );
    for turn in later {
        assert_eq!(turn.await.unwrap().json()["status"], "completed");
    }
    let items = program
        .conversation(&conversation)
        .list("order=asc&limit=100")
        .await;
    let eight = ["message", "mcp_call", "message"].repeat(8);
    assert_eq!(kinds(&items["data"]), eight);
    assert_eq!(items["data"][22]["output"], r#"{"ok":true,"value":8}"#);
    assert_eq!(upstream.faults(), [""; 0]);
}

async fn a_process_runs_no_more_turns_than_it_may(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream)
        .set("THREADKEEP_TURNS_MAX", 2)
        .start();
    let program = Program::of(&server);
    let gate = upstream.hold();
    upstream.answer_with(|request| Reply::text(request.user_text()));
    let body = |text: &str| json!({"model": "m", "input": text});
    let running = ["one", "two"].map(|text| tokio::spawn(run(&program, &body(text)).ok()));
    gate.waiting(2).await;

    let third = run(&program, &body("three")).send().await;
    gate.open();
    for turn in running {
        assert_eq!(turn.await.unwrap().json()["status"], "completed");
    }

    assert_eq!(third.status, 503, "{}", third.text());
    assert_eq!(third.json()["error"]["code"], "too_many_turns");
    assert!(third.header("retry-after").is_some());
    run(&program, &body("again")).ok().await;
}

async fn without_models_there_are_no_such_paths(server: &Server) {
    let program = Program::of(server);
    let body = json!({"model": "m", "input": "hi"});

    refused(run(&program, &body), 404, Some("unknown_url"), None).await;
    let other = server.client().post("/v1/responses").bearer(API_SECRET);
    other
        .json(&body.to_string())
        .refused(404, "not_found")
        .await;
}

over_both_stores! {
    a_response_runs_its_tools_and_can_be_read_again,
    a_call_of_the_client_ends_the_turn_and_is_answered_in_the_next,
    mistakes_of_the_model_are_results_for_it,
    each_failure_of_the_upstream_has_its_error_and_the_next_turn_works,
    wrong_requests_are_refused_before_the_upstream_is_asked,
    a_repeat_with_a_key_is_replayed_and_the_key_is_for_one_request,
    an_earlier_response_is_followed_in_a_copy,
    the_state_keeps_a_window_of_messages_for_pages,
    turns_of_one_conversation_come_one_after_the_other,
    a_client_that_sends_a_request_again_by_itself_gets_the_same_turn,
    a_request_sent_again_that_follows_a_response_is_the_same_turn,
    items_of_others_do_not_come_between_a_response_and_the_next,
    a_response_that_is_deleted_while_it_runs_is_not_run_again,
    a_caller_that_holds_the_turn_lends_it_to_the_model,
    a_process_runs_no_more_turns_than_it_may,
    without_models_there_are_no_such_paths,
}

#[cfg(feature = "redis")]
#[tokio::test]
async fn a_replica_that_is_killed_or_stopped_leaves_its_turn_to_another() {
    use crate::support::server::Backend;

    let shared = Server::start(Backend::Redis);
    for is_killed in [true, false] {
        let upstream = Upstream::start().await;
        let [first, second] = two_replicas(&shared, &upstream);
        let id = new_id();
        let conversation = id.replace("thrd_", "conv_");
        let body = json!({"model": "m", "conversation": id, "tools": state_tools(), "input": "hi"});
        upstream.script([Reply::calls([count()]), Reply::hang(), Reply::text("done")]);
        let ask = |server: &Server| {
            let program = Program::of(server);
            run(&program, &body).header("idempotency-key", &id)
        };

        let stuck = tokio::spawn(ask(&first).try_send());
        upstream.await_requests(2).await;
        match is_killed {
            true => first.kill(),
            false => drop(first.stop()),
        }
        drop(stuck.await);
        let answer = ask(&second).ok().await.json();

        assert_eq!(answer["status"], "completed");
        assert_eq!(kinds(&answer["output"]), ["mcp_call", "message"]);
        assert_eq!(answer["output"][0]["output"], r#"{"ok":true,"value":1}"#);
        let program = Program::of(&second);
        let items = program.conversation(&conversation).list("order=asc").await;
        assert_eq!(kinds(&items["data"]), ["message", "mcp_call", "message"]);
        assert_eq!(upstream.faults(), [""; 0]);
    }
}
