use serde_json::{Value, json};

use super::{increment_call, kinds, run, state_tools, with_models};
use crate::http::over_both_stores;
use crate::protocols::openai::{Api, refused};
use crate::support::client::new_id;
use crate::support::server::{API_SECRET, Server};
use crate::support::upstream::{Reply, Upstream};

fn all_tools() -> Value {
    let mut tools = state_tools();
    let more = [
        json!({"type": "function", "name": "look", "parameters": {"type": "object"}}),
        json!({"type": "function", "name": "hide"}),
        json!({"type": "web_search_preview", "search_context_size": "low"}),
        json!({"type": "image_generation"}),
    ];
    tools.as_array_mut().unwrap().extend(more);
    tools
}

fn allowed(mode: &str, tools: &Value) -> Value {
    json!({"type": "allowed_tools", "mode": mode, "tools": tools})
}

fn offered(upstream: &Upstream) -> Vec<String> {
    let body = upstream.requests().pop().unwrap().body;
    let tools = body["tools"].as_array().unwrap().iter();
    let name = |tool: &Value| tool["function"]["name"].as_str().unwrap().to_owned();
    tools.map(name).collect()
}

async fn disallowed_tools_are_neither_offered_nor_run(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let api = Api::of(&server);
    let choice = allowed(
        "auto",
        &json!([
            {"type": "mcp", "server_label": "memory", "name": "kv_read"},
            {"type": "function", "name": "look"},
        ]),
    );
    for is_streamed in [false, true] {
        let id = new_id();
        let body = json!({
            "model": "m", "conversation": id, "input": "hi", "tools": all_tools(), "tool_choice": choice,
            "stream": is_streamed,
        });
        let forbidden = [
            increment_call(),
            ("hide", "{}"),
            ("web_search", r#"{"query":"a"}"#),
            ("image_generation", r#"{"prompt":"a"}"#),
        ];
        upstream.script([Reply::calls(forbidden), Reply::calls([("look", "{}")])]);

        let answer = run(&api, &body).ok().await;

        let answer = match is_streamed {
            false => answer.json(),
            true => {
                let text = answer.text();
                let mut last = text.lines().filter_map(|line| line.strip_prefix("data: "));
                let last = last.rfind(|data| data.starts_with('{')).unwrap();
                serde_json::from_str::<Value>(last).unwrap()["response"].clone()
            }
        };
        assert_eq!(offered(&upstream), ["kv_read", "look"]);
        let output = answer["output"].as_array().unwrap();
        let mut expected = vec!["mcp_call"; 4];
        expected.push("function_call");
        assert_eq!(kinds(&answer["output"]), expected);
        for call in &output[..4] {
            assert_eq!(call["status"], "failed");
            let error = call["error"].as_str().unwrap();
            assert!(error.contains("there is no such tool"), "{error}");
            assert!(error.contains("kv_read, look"), "{error}");
        }
        assert_eq!(output[4]["name"], "look");
        assert_eq!(answer["tool_choice"], choice);
        // the response lists all tools in the request, although the model was offered only some of them
        let shown = answer["tools"].as_array().unwrap().iter();
        let shown: Vec<_> = shown.filter_map(|tool| tool["name"].as_str()).collect();
        assert_eq!(shown, ["look", "hide"]);
        assert_eq!(answer["tools"][2]["strict"], Value::Null);
        let scope = json!({"scope": format!("thread:{id}"), "arguments": {"key": "a/n"}});
        let read = server.client().post("/v1/tools/kv_read").bearer(API_SECRET);
        let read = read.json(&scope.to_string()).ok().await.text();
        assert!(read.contains(r#""found":false"#), "{read}");
    }
    assert_eq!(upstream.faults(), [""; 0]);
}

async fn one_of_the_allowed_tools_can_be_required_in_the_first_step(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let api = Api::of(&server);
    let server_alone = json!([{"type": "mcp", "server_label": "memory"}]);
    let body = |choice: Value| json!({"model": "m", "input": "hi", "tools": all_tools(), "tool_choice": choice});
    upstream.script([Reply::calls([increment_call()]), Reply::text("One.")]);

    let answer = run(&api, &body(allowed("required", &server_alone)));
    let answer = answer.ok().await.json();

    assert_eq!(kinds(&answer["output"]), ["mcp_call", "message"]);
    assert_eq!(answer["output"][0]["status"], "completed");
    assert_eq!(offered(&upstream).len(), 8);
    let requests = upstream.requests();
    let choices: Vec<_> = requests
        .iter()
        .map(|request| &request.body["tool_choice"])
        .collect();
    assert_eq!(choices, [&json!("required"), &Value::Null]);

    // a tool choice may name the type of a tool, and that type may include a date
    upstream.script([Reply::text("No search."), Reply::text("None at all.")]);
    let mut choice = allowed("auto", &json!([{"type": "web_search_preview_2025_03_11"}]));
    choice.as_object_mut().unwrap().remove("mode");
    let answer = run(&api, &body(choice)).ok().await.json();
    assert_eq!(offered(&upstream), ["web_search"]);
    assert_eq!(answer["tool_choice"]["mode"], "auto");
    let none = allowed("none", &json!([{"type": "image_generation"}]));
    run(&api, &body(none)).ok().await;
    let last = upstream.requests().pop().unwrap();
    assert_eq!(last.body["tool_choice"], "none");
    assert_eq!(upstream.faults(), [""; 0]);
}

async fn allowed_tools_must_be_tools_of_the_request(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let api = Api::of(&server);
    for (choice, code, param) in [
        (
            json!({"type": "allowed_tools"}),
            "missing_required_parameter",
            "tool_choice.tools",
        ),
        (
            json!({"type": "allowed_tools", "tools": {}}),
            "invalid_type",
            "tool_choice.tools",
        ),
        (
            allowed("auto", &json!([])),
            "invalid_value",
            "tool_choice.tools",
        ),
        (
            allowed(
                "auto",
                &json!(vec![json!({"type": "image_generation"}); 129]),
            ),
            "invalid_value",
            "tool_choice.tools",
        ),
        (
            allowed("sometimes", &json!([{"type": "image_generation"}])),
            "invalid_value",
            "tool_choice.mode",
        ),
        (
            allowed("auto", &json!([{"type": "image_generation"}, "look"])),
            "invalid_type",
            "tool_choice.tools[1]",
        ),
        (
            allowed("auto", &json!([{"type": "function"}])),
            "missing_required_parameter",
            "tool_choice.tools[0].name",
        ),
        (
            allowed("auto", &json!([{"type": "function", "name": "kv_read"}])),
            "invalid_value",
            "tool_choice.tools[0]",
        ),
        (
            allowed("auto", &json!([{"type": "mcp", "server_label": "other"}])),
            "invalid_value",
            "tool_choice.tools[0]",
        ),
        (
            allowed(
                "auto",
                &json!([{"type": "mcp", "server_label": "memory", "name": "look"}]),
            ),
            "invalid_value",
            "tool_choice.tools[0]",
        ),
        (
            allowed("auto", &json!([{"type": "code_interpreter"}])),
            "invalid_value",
            "tool_choice.tools[0].type",
        ),
    ] {
        let body =
            json!({"model": "m", "input": "hi", "tools": all_tools(), "tool_choice": choice});
        refused(run(&api, &body), 400, Some(code), Some(param)).await;
    }
    assert_eq!(upstream.count(), 0);
}

over_both_stores! {
    disallowed_tools_are_neither_offered_nor_run,
    one_of_the_allowed_tools_can_be_required_in_the_first_step,
    allowed_tools_must_be_tools_of_the_request,
}
