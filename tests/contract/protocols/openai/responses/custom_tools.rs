use reqwest::Method;
use serde_json::{Value, json};

use super::{Events, increment_call, kinds, run, state_tools};
use crate::http::over_both_stores;
use crate::protocols::openai::kinds::with_kinds;
use crate::protocols::openai::{Api, refused};
use crate::support::client::new_id;
use crate::support::server::Server;
use crate::support::upstream::{Call, Reply, Upstream};

const KINDS: [&str; 2] = ["openai-chat", "openai-responses"];
/// Input of a custom tool, which is not JSON.
const PATCH: &str = "*** Begin\n+\"é\" 🙂\n";

fn grammar() -> Value {
    json!({"type": "grammar", "syntax": "lark", "definition": "start: \"*** Begin\""})
}

fn patch_tool() -> Value {
    json!({"type": "custom", "name": "patch", "description": "Changes files", "format": grammar()})
}

fn patch() -> Call {
    Call::custom("patch", PATCH)
}

fn offered(upstream: &Upstream) -> Value {
    upstream.requests().pop().unwrap().body["tools"].clone()
}

fn last_messages(upstream: &Upstream) -> Vec<Value> {
    upstream.requests().pop().unwrap().messages().to_vec()
}

async fn a_custom_tool_is_called_and_its_output_is_sent_back(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_kinds(server, &upstream).start();
    let api = Api::of(&server);
    for kind in KINDS {
        let id = new_id();
        let tools = json!([patch_tool(), {"type": "function", "name": "look"}, {"type": "custom", "name": "note"}]);
        let ask = |input: Value| {
            let body = json!({"model": kind, "conversation": id, "tools": tools, "input": input});
            run(&api, &body)
        };
        upstream.script([
            Reply::text("I change it.").and_calls([patch(), Call::custom("note", "")]),
            Reply::text("Changed."),
        ]);

        let answer = ask(json!("Change it.")).ok().await.json();

        assert_eq!(answer["status"], "completed", "{kind}: {answer}");
        let output = &answer["output"];
        let calls = ["message", "custom_tool_call", "custom_tool_call"];
        assert_eq!(kinds(output), calls);
        let (patch, note) = (&output[1], &output[2]);
        assert_eq!(
            [&patch["name"], &patch["input"], &patch["status"]],
            ["patch", PATCH, "completed"]
        );
        assert_eq!([&note["name"], &note["input"]], ["note", ""]);
        assert!(patch["id"].as_str().unwrap().starts_with("ctc_"));
        assert_eq!(patch["arguments"], Value::Null);
        assert_eq!(answer["tools"][0], tools[0]);
        assert_eq!(answer["tools"][2]["format"], json!({"type": "text"}));
        let path = format!("/responses/{}", answer["id"].as_str().unwrap());
        let stored = api.ask(Method::GET, &path).ok().await.json();
        assert_eq!(stored, answer);

        let result = |call: &Value, output: Value| json!({"type": "custom_tool_call_output", "call_id": call["call_id"], "output": output});
        let parts = json!([{"type": "input_text", "text": "Done."}]);
        let results = [result(patch, parts), result(note, json!("noted"))];
        let last = ask(results.into()).ok().await.json();

        assert_eq!(last["output"][0]["content"][0]["text"], "Changed.");
        let sent = last_messages(&upstream);
        let format = match kind {
            "openai-chat" => {
                json!({"type": "grammar", "grammar": {"syntax": "lark", "definition": grammar()["definition"]}})
            }
            _ => grammar(),
        };
        match kind {
            "openai-chat" => {
                assert_eq!(offered(&upstream)[0]["custom"]["format"], format);
                let call = &sent[1]["tool_calls"][0];
                assert_eq!(call["type"], "custom");
                assert_eq!(call["custom"], json!({"name": "patch", "input": PATCH}));
                assert_eq!([&sent[2]["role"], &sent[2]["content"]], ["tool", "Done."]);
            }
            _ => {
                assert_eq!(offered(&upstream)[0], patch_tool());
                assert_eq!(
                    [&sent[2]["type"], &sent[2]["input"]],
                    ["custom_tool_call", PATCH]
                );
                assert_eq!(sent[4]["type"], "custom_tool_call_output");
                assert_eq!(sent[4]["output"][0]["text"], "Done.");
            }
        }
    }
    assert_eq!(upstream.faults(), [""; 0]);
}

async fn the_input_of_a_custom_tool_is_streamed(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_kinds(server, &upstream).start();
    let api = Api::of(&server);
    for kind in KINDS {
        upstream.script([Reply::calls([patch()])]);
        let body =
            json!({"model": kind, "input": "Change it.", "tools": [patch_tool()], "stream": true});

        let events = Events::of(run(&api, &body)).await.rest().await;

        let of_kind = |kind: &'static str| events.iter().filter(move |event| event["type"] == kind);
        let first = |kind| of_kind(kind).next().unwrap();
        let added = first("response.output_item.added");
        assert_eq!(added["item"]["type"], "custom_tool_call");
        assert_eq!(added["item"]["input"], "");
        let deltas = of_kind("response.custom_tool_call_input.delta");
        let deltas: String = deltas
            .map(|event| event["delta"].as_str().unwrap())
            .collect();
        assert_eq!(deltas, PATCH, "{kind}");
        let done = first("response.custom_tool_call_input.done");
        assert_eq!(
            [&done["input"], &done["item_id"]],
            [&json!(PATCH), &added["item"]["id"]]
        );
        let ended = events.last().unwrap();
        assert_eq!(ended["type"], "response.completed");
        let item = &first("response.output_item.done")["item"];
        assert_eq!(ended["response"]["output"], json!([item]));
        // every later reader gets the same events
        let path = format!(
            "/responses/{}?stream=true",
            ended["response"]["id"].as_str().unwrap()
        );
        let again = Events::of(api.ask(Method::GET, &path)).await.rest().await;
        assert_eq!(again, events);
    }
}

async fn a_client_may_send_its_own_history_of_custom_calls(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_kinds(server, &upstream).start();
    let api = Api::of(&server);
    let call = json!({"type": "custom_tool_call", "call_id": "c", "name": "patch", "input": PATCH});
    let output = json!({"type": "custom_tool_call_output", "call_id": "c", "output": "Done."});
    for kind in KINDS {
        upstream.script([Reply::text("Good.")]);
        let input = json!([{"role": "user", "content": "Change it."}, call, output]);
        let body = json!({"model": kind, "store": false, "input": input, "tools": [patch_tool()]});

        run(&api, &body).ok().await;

        let sent = Value::from(last_messages(&upstream)).to_string();
        assert!(sent.contains(&json!(PATCH).to_string()), "{sent}");
    }
    let mut without_input = call.clone();
    without_input.as_object_mut().unwrap().remove("input");
    let model = "openai-responses";
    let body = |input: Value| json!({"model": model, "input": input});
    for (input, code, param) in [
        (
            json!([without_input, output]),
            "missing_required_parameter",
            "input[0].input",
        ),
        (json!([output]), "invalid_value", "input[0].call_id"),
    ] {
        refused(run(&api, &body(input)), 400, Some(code), Some(param)).await;
    }
    assert_eq!(upstream.faults(), [""; 0]);
}

async fn a_tool_choice_may_name_a_custom_tool(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_kinds(server, &upstream).start();
    let api = Api::of(&server);
    let tools = json!([patch_tool(), {"type": "custom", "name": "note"}]);
    let named = json!({"type": "custom", "name": "patch"});
    for kind in KINDS {
        upstream.script([Reply::calls([patch()]), Reply::calls([patch()])]);
        let body = |choice: Value| json!({"model": kind, "input": "hi", "tools": tools, "tool_choice": choice});

        run(&api, &body(named.clone())).ok().await;

        let choice = &upstream.requests().pop().unwrap().body["tool_choice"];
        let expected = match kind {
            "openai-chat" => json!({"type": "custom", "custom": {"name": "patch"}}),
            _ => named.clone(),
        };
        assert_eq!(*choice, expected);
        let allowed = json!({"type": "allowed_tools", "mode": "auto", "tools": [named]});
        run(&api, &body(allowed)).ok().await;
        assert_eq!(offered(&upstream).as_array().unwrap().len(), 1);
    }
    assert_eq!(upstream.faults(), [""; 0]);
}

async fn a_response_runs_its_state_tools_alongside_a_clients_custom_call(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_kinds(server, &upstream).start();
    let api = Api::of(&server);
    let mut tools = state_tools();
    tools.as_array_mut().unwrap().push(patch_tool());
    for kind in KINDS {
        for is_streamed in [false, true] {
            upstream.script([Reply::calls([patch(), increment_call().into()])]);
            let body = json!({"model": kind, "input": "hi", "tools": tools, "stream": is_streamed});
            let request = run(&api, &body);

            let answer = match is_streamed {
                false => request.ok().await.json(),
                true => {
                    let events = Events::of(request).await.rest().await;
                    events.last().unwrap()["response"].clone()
                }
            };

            assert_eq!(kinds(&answer["output"]), ["custom_tool_call", "mcp_call"]);
            assert_eq!(answer["output"][1]["status"], "completed");
        }
    }
}

async fn an_upstream_without_custom_tools_gets_earlier_calls_as_function_calls(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_kinds(server, &upstream).start();
    let api = Api::of(&server);
    let id = new_id();
    upstream.script([Reply::calls([patch()])]);
    let tools = json!([patch_tool()]);
    let body =
        json!({"model": "openai-responses", "conversation": id, "tools": tools, "input": "hi"});
    let answer = run(&api, &body).ok().await.json();
    let call_id = &answer["output"][0]["call_id"];
    let output = json!({"type": "custom_tool_call_output", "call_id": call_id, "output": "Done."});

    let refusing =
        json!({"model": "anthropic", "conversation": id, "tools": tools, "input": [output]});
    for path in ["/responses", "/responses/input_tokens"] {
        let mut refusing = refusing.clone();
        if path != "/responses" {
            refusing["input"] = json!("hi");
        }
        let request = api.post(path, &refusing);
        let answer = refused(request, 400, Some("unsupported_tool"), Some("tools")).await;
        assert!(answer.contains("'patch'"), "{answer}");
    }
    let mut input = vec![output];
    for kind in ["anthropic", "openai-chat"] {
        upstream.script([Reply::text("Good.")]);
        let body = json!({"model": kind, "conversation": id, "input": input});
        run(&api, &body).ok().await;
        input = vec![json!({"role": "user", "content": "And?"})];

        let sent = last_messages(&upstream);
        let arguments = json!({"input": PATCH});
        match kind {
            "anthropic" => assert_eq!(sent[1]["content"][0]["input"], arguments),
            _ => {
                let function = &sent[1]["tool_calls"][0]["function"];
                assert_eq!(function["arguments"], arguments.to_string());
            }
        }
    }
    assert_eq!(upstream.faults(), [""; 0]);
}

async fn invalid_custom_tools_are_rejected(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_kinds(server, &upstream).start();
    let api = Api::of(&server);
    let tool =
        |name: &str, format: Value| json!({"type": "custom", "name": name, "format": format});
    for (tools, code, param) in [
        (
            json!([{"type": "custom"}]),
            "missing_required_parameter",
            "tools[0].name",
        ),
        (
            json!([tool("a b", Value::Null)]),
            "invalid_value",
            "tools[0].name",
        ),
        (
            json!([tool("a", json!("text"))]),
            "invalid_type",
            "tools[0].format",
        ),
        (
            json!([tool("a", json!({"type": "regex"}))]),
            "unsupported_tool",
            "tools[0].format.type",
        ),
        (
            json!([tool("a", json!({"type": "grammar", "syntax": "lark"}))]),
            "missing_required_parameter",
            "tools[0].format.definition",
        ),
        (
            json!([tool("a", Value::Null), {"type": "function", "name": "a"}]),
            "duplicate_tool",
            "tools[1]",
        ),
    ] {
        let body = json!({"model": "openai-responses", "input": "hi", "tools": tools});
        refused(run(&api, &body), 400, Some(code), Some(param)).await;
    }
}

over_both_stores! {
    a_custom_tool_is_called_and_its_output_is_sent_back,
    the_input_of_a_custom_tool_is_streamed,
    a_client_may_send_its_own_history_of_custom_calls,
    a_tool_choice_may_name_a_custom_tool,
    a_response_runs_its_state_tools_alongside_a_clients_custom_call,
    an_upstream_without_custom_tools_gets_earlier_calls_as_function_calls,
    invalid_custom_tools_are_rejected,
}

#[tokio::test]
async fn another_replica_requests_an_interrupted_custom_call_again() {
    use super::two_replicas;
    use crate::support::server::Backend;
    use crate::support::upstream::Gate;

    let shared = Server::start(Backend::Redis);
    let upstream = Upstream::start().await;
    let [first, second] = two_replicas(&shared, &upstream);
    let gate = Gate::new();
    upstream.script([
        Reply::calls([patch()]).held_after(2, &gate),
        Reply::calls([patch()]),
    ]);
    let body = json!({"model": "m", "tools": [patch_tool()], "input": "hi", "stream": true});
    let key = new_id();
    let ask = |server: &Server| {
        let request = run(&Api::of(server), &body);
        request.header("idempotency-key", &key)
    };

    let mut broken = Events::of(ask(&first)).await;
    let seen = broken.until("response.custom_tool_call_input.delta").await;
    first.kill();
    let whole = Events::of(ask(&second)).await.rest().await;

    let number = seen["sequence_number"].as_u64().unwrap();
    assert_eq!(whole[number as usize], seen);
    let done = |event: &&Value| event["type"] == "response.output_item.done";
    let items = whole.iter().filter(done).map(|event| &event["item"]);
    let items: Vec<_> = items.collect();
    let [incomplete, complete] = items[..] else {
        panic!("{items:?}");
    };
    assert_eq!(incomplete["status"], "incomplete");
    assert!(PATCH.starts_with(incomplete["input"].as_str().unwrap()));
    assert_eq!(complete["input"], PATCH);
    let output = &whole.last().unwrap()["response"]["output"];
    assert_eq!(*output, json!([complete]));
    assert_eq!(upstream.faults(), [""; 0]);
}
