use reqwest::Method;
use serde_json::{Value, json};

use super::{PATIENCE_MS, STATE, increment_call, kinds, run, state_tools, with_models};
use crate::http::over_both_stores;
use crate::protocols::openai::{Api, missing, refused};
use crate::support::client::new_id;
use crate::support::server::{API_SECRET, Server};
use crate::support::upstream::{Call, PRIVATE_DETAIL, Reply, Upstream};

async fn a_response_runs_its_tools_and_can_be_read_again(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let api = Api::of(&server);
    let id = new_id();
    upstream.script([
        Reply::calls([increment_call()]),
        Reply::text("You have one."),
    ]);
    let body = json!({
        "model": "m",
        "instructions": "Count.",
        "conversation": id,
        "tools": state_tools(),
        "input": "Count one more.",
        "temperature": 0.50,
        "unknown": {"of": "tomorrow"},
    });

    let answer = run(&api, &body).ok().await.json();

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
    assert_eq!(api.ask(Method::GET, &path).ok().await.json(), answer);
    let other = server
        .client()
        .get(&format!("/openai/v1{path}"))
        .bearer(API_SECRET);
    assert_eq!(other.ok().await.json(), answer);
    let input = api
        .ask(Method::GET, &format!("{path}/input_items"))
        .ok()
        .await
        .json();
    assert_eq!(input["data"][0]["content"][0]["text"], "Count one more.");
    let cancelled = api
        .ask(Method::POST, &format!("{path}/cancel"))
        .ok()
        .await
        .json();
    assert_eq!(cancelled, answer);
    let items = api.conversation(conversation).list("order=asc").await;
    assert_eq!(kinds(&items["data"]), ["message", "mcp_call", "message"]);
    assert_eq!(items["data"][1], answer["output"][0]);

    upstream.script([Reply::text("Still one.")]);
    let previous =
        json!({"model": "any-of", "previous_response_id": answer["id"], "input": "And?"});
    run(&api, &previous).ok().await;
    let last = upstream.requests().pop().unwrap();
    assert_eq!(last.model(), "any-of");
    assert_eq!(last.messages().len(), 5, "{:?}", last.messages());

    api.ask(Method::DELETE, &path).ok().await;
    refused(
        api.ask(Method::GET, &path),
        404,
        Some("response_not_found"),
        None,
    )
    .await;
    assert_eq!(upstream.faults(), [""; 0]);
}

async fn a_client_call_ends_the_response_and_is_answered_in_the_next(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let api = Api::of(&server);
    let id = new_id();
    let mut tools = state_tools();
    let own = json!({"type": "function", "name": "weather", "parameters": {"type": "object"}});
    tools.as_array_mut().unwrap().push(own);
    let weather = Call::new("weather", r#"{"city":"Oslo"}"#);
    let mixed = [Call::from(increment_call()), weather.clone()];
    upstream.script([Reply::calls(mixed), Reply::text("Cold.")]);
    let body = |input: Value| json!({"model": "named", "conversation": id, "tools": tools, "input": input});

    let first = run(&api, &body(json!("How is it in Oslo?")))
        .ok()
        .await
        .json();
    assert_eq!(kinds(&first["output"]), ["mcp_call", "function_call"]);
    let call_id = &first["output"][1]["call_id"];
    let result = json!([{"type": "function_call_output", "call_id": call_id, "output": "-5"}]);
    let second = run(&api, &body(result)).ok().await.json();
    assert_eq!(second["output"][0]["content"][0]["text"], "Cold.");

    // a tool call that the client never answers does not block the conversation
    upstream.script([Reply::calls([weather]), Reply::text("Never mind.")]);
    run(&api, &body(json!("And tomorrow?"))).ok().await;
    run(&api, &body(json!("Forget it."))).ok().await;
    let last = upstream.requests().pop().unwrap();
    assert_eq!(last.model(), "its-name");
    assert!(
        last.body
            .to_string()
            .contains("no output was given for this call")
    );
    assert_eq!(upstream.faults(), [""; 0]);
}

async fn the_models_errors_are_returned_to_it(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let api = Api::of(&server);
    upstream.script([
        Reply::calls([("kv_write", r#"{"key":"bad key","value":"x"}"#)]),
        Reply::calls([("no_such_tool", "{")]),
        Reply::calls([("kv_write", r#"{"key":"a/b","value":"x"}"#)]),
        Reply::text("done"),
    ]);
    let body = json!({"model": "m", "tools": state_tools(), "input": "go"});

    let answer = run(&api, &body).ok().await.json();

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

async fn each_upstream_failure_has_its_error_and_the_next_response_works(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream)
        .set("THREADKEEP_UPSTREAM_TIMEOUT_MS", PATIENCE_MS)
        .set("THREADKEEP_LOG", "debug")
        .start();
    let api = Api::of(&server);
    let id = new_id();
    let body = |text: &str| json!({"model": "m", "conversation": id, "input": text});
    for (reply, status, code) in [
        (
            Reply::status(400).message("said: hello"),
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
        let answer = run(&api, &body("fails")).send().await;
        let text = answer.text();
        assert_eq!(answer.status, status, "{code}: {text}");
        assert_eq!(answer.json()["error"]["code"], code, "{text}");
        assert!(!text.contains(PRIVATE_DETAIL), "{text}");
        // a client may retry, because repeating a request in a conversation resumes its response
        assert_eq!(answer.header("x-should-retry"), None);
        let alone = json!({"model": "m", "input": "fails"});
        upstream.script([Reply::status(500)]);
        let alone = run(&api, &alone).send().await;
        assert_eq!(alone.header("x-should-retry"), Some("false"));
        match code {
            "upstream_refused" => assert!(text.contains("said: hello"), "{text}"),
            "rate_limit_exceeded" => assert_eq!(answer.header("retry-after"), Some("7")),
            _ => {}
        }
        upstream.script([Reply::text("works")]);
        let next = run(&api, &body("works")).ok().await.json();
        assert_eq!(next["status"], "completed");
    }
    let log = server.log();
    assert!(!log.contains(PRIVATE_DETAIL) && !log.contains("said: hello"));
    let address = upstream.root_url().replace("http://", "");
    assert!(!log.contains(&address), "{log}");
    assert!(log.contains(r#""status":400,"duration_ms":"#), "{log}");
    assert_eq!(upstream.faults(), [""; 0]);
}

async fn invalid_requests_are_rejected_before_the_upstream_is_called(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let api = Api::of(&server);
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
            json!({"truncation": "middle"}),
            400,
            "invalid_value",
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
        (
            json!({"input": [{"role": "user", "content": []}]}),
            400,
            "invalid_value",
            "input[0].content",
        ),
        (
            json!({"input": [{"role": "user", "content": [{"type": "input_text"}]}]}),
            400,
            "missing_required_parameter",
            "input[0].content[0].text",
        ),
        (
            json!({"input": [{"role": "user", "content": [{"type": "input_text", "text": 5}]}]}),
            400,
            "invalid_type",
            "input[0].content[0].text",
        ),
        (
            json!({"input": [{"role": "user", "content": [{"type": "input_image"}]}]}),
            400,
            "missing_required_parameter",
            "input[0].content[0].image_url",
        ),
        (
            json!({"input": [{"role": "user", "content": [{"type": "input_file"}]}]}),
            400,
            "missing_required_parameter",
            "input[0].content[0].file_data",
        ),
        (json!({"include": "all"}), 400, "invalid_type", "include"),
        (json!({"text": "plain"}), 400, "invalid_type", "text"),
        (json!({"text": 5}), 400, "invalid_type", "text"),
        (json!({"text": [1]}), 400, "invalid_type", "text"),
        (
            json!({"text": {"format": {"type": "poem"}}}),
            400,
            "unsupported_value",
            "text.format.type",
        ),
        (
            json!({"text": {"format": {"type": "json_schema", "name": "x"}}}),
            400,
            "missing_required_parameter",
            "text.format.schema",
        ),
        (
            json!({"tools": [{"type": "mcp", "server_label": "x", "connector_id": "mail"}]}),
            400,
            "unsupported_tool",
            "tools[0].connector_id",
        ),
        (
            json!({"tools": [{"type": "mcp", "server_label": "x", "server_url": STATE, "allowed_tools": {"read_only": true}}]}),
            400,
            "unsupported_tool",
            "tools[0].allowed_tools.read_only",
        ),
        (
            json!({"tools": [{"type": "function", "name": "f"}], "tool_choice": {"type": "shell"}}),
            400,
            "invalid_value",
            "tool_choice.type",
        ),
        (
            json!({"tools": [{"type": "web_search_2025_8_26"}]}),
            400,
            "unsupported_tool",
            "tools[0].type",
        ),
    ] {
        let mut body = json!({"model": "m", "input": "hi"});
        let change = change.as_object().unwrap().clone();
        body.as_object_mut().unwrap().extend(change);
        refused(run(&api, &body), status, Some(code), Some(param)).await;
    }
    let broken = api.0.post("/v1/responses").bearer(API_SECRET);
    refused(broken.json("{"), 400, Some("invalid_json"), None).await;
    let unknown = "conv_00000000000000000000000000000000";
    let body = json!({"model": "m", "input": "hi", "conversation": unknown});
    missing(run(&api, &body)).await;
    let anonymous = server
        .client()
        .post("/v1/responses")
        .json(r#"{"model":"m","input":"hi"}"#);
    refused(anonymous, 401, Some("invalid_api_key"), None).await;
    assert_eq!(upstream.count(), 0);
}

async fn without_models_the_paths_do_not_exist(server: &Server) {
    let api = Api::of(server);
    let body = json!({"model": "m", "input": "hi"});

    refused(run(&api, &body), 404, Some("unknown_url"), None).await;
    let other = server.client().post("/openai/v1/responses");
    let other = other.bearer(API_SECRET).json(&body.to_string());
    refused(other, 404, Some("unknown_url"), None).await;
}

over_both_stores! {
    a_response_runs_its_tools_and_can_be_read_again,
    a_client_call_ends_the_response_and_is_answered_in_the_next,
    the_models_errors_are_returned_to_it,
    each_upstream_failure_has_its_error_and_the_next_response_works,
    invalid_requests_are_rejected_before_the_upstream_is_called,
    without_models_the_paths_do_not_exist,
}
