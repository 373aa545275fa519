use reqwest::Method;
use serde_json::{Value, json};

use super::{run, with_models};
use crate::http::over_both_stores;
use crate::protocols::openai::kinds::with_kinds;
use crate::protocols::openai::{Api, refused};
use crate::support::server::Server;
use crate::support::upstream::{Reply, Upstream};

/// Members that the schema `ResponseResource` of Open Responses requires.
const REQUIRED: [&str; 31] = [
    "id",
    "object",
    "created_at",
    "completed_at",
    "status",
    "incomplete_details",
    "model",
    "previous_response_id",
    "instructions",
    "output",
    "error",
    "tools",
    "tool_choice",
    "truncation",
    "parallel_tool_calls",
    "text",
    "top_p",
    "presence_penalty",
    "frequency_penalty",
    "top_logprobs",
    "temperature",
    "reasoning",
    "usage",
    "max_output_tokens",
    "max_tool_calls",
    "store",
    "background",
    "service_tier",
    "metadata",
    "safety_identifier",
    "prompt_cache_key",
];

async fn a_response_reports_the_settings_that_were_used(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let api = Api::of(&server);
    upstream.script([Reply::text("Hello.")]);
    let tools = json!([{"type": "function", "name": "f"}]);

    let body = json!({"model": "m", "input": "hi", "tools": tools});
    let answer = run(&api, &body).ok().await.json();

    for name in REQUIRED {
        assert!(answer.get(name).is_some(), "{name} is missing in {answer}");
    }
    for (name, value) in [
        ("temperature", json!(1)),
        ("top_p", json!(1)),
        ("presence_penalty", json!(0)),
        ("frequency_penalty", json!(0)),
        ("top_logprobs", json!(0)),
        ("service_tier", json!("default")),
        ("truncation", json!("disabled")),
        ("tool_choice", json!("auto")),
        ("text", json!({"format": {"type": "text"}})),
    ] {
        assert_eq!(answer[name], value, "{name}");
    }
    let function = json!({
        "type": "function", "name": "f", "description": null, "parameters": null, "strict": null,
    });
    assert_eq!(answer["tools"], json!([function]));
    let path = format!("/responses/{}", answer["id"].as_str().unwrap());
    let read = api.ask(Method::GET, &path).ok().await.json();
    assert_eq!(read, answer);
    // these settings are only echoed, not sent upstream
    let upstream_body = upstream.requests().pop().unwrap().body;
    for name in ["temperature", "top_p", "presence_penalty", "service_tier"] {
        assert_eq!(upstream_body.get(name), None::<&Value>, "{upstream_body}");
    }
    assert_eq!(upstream.faults(), [""; 0]);
}

async fn a_truncation_that_is_never_needed_is_accepted(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_kinds(server, &upstream).start();
    let api = Api::of(&server);
    upstream.answer_with(|_| Reply::text("Hello."));
    for (model, truncation, sent) in [
        ("openai-chat", "auto", Value::Null),
        ("anthropic", "auto", Value::Null),
        ("openai-responses", "auto", json!("auto")),
        ("openai-responses", "disabled", Value::Null),
    ] {
        let body = json!({"model": model, "input": "hi", "truncation": truncation});

        let answer = run(&api, &body).ok().await.json();

        assert_eq!(answer["truncation"], truncation);
        let upstream_body = upstream.requests().pop().unwrap().body;
        assert_eq!(upstream_body["truncation"], sent, "{model}");
    }
    assert_eq!(upstream.faults(), [""; 0]);
}

fn details() -> Value {
    json!({
        "include": ["message.output_text.logprobs", "reasoning.encrypted_content"],
        "top_logprobs": 2,
        "presence_penalty": 0.50,
        "frequency_penalty": -2,
    })
}

fn with_details(body: &Value, details: &Value) -> Value {
    let mut body = body.clone();
    let details = details.as_object().unwrap().clone();
    body.as_object_mut().unwrap().extend(details);
    body
}

fn last_event(stream: &str) -> Value {
    let mut data = stream
        .lines()
        .filter_map(|line| line.strip_prefix("data: "));
    let last = data.rfind(|data| data.starts_with('{')).unwrap();
    serde_json::from_str(last).unwrap()
}

async fn requested_details_are_sent_upstream_and_returned(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_kinds(server, &upstream).start();
    let api = Api::of(&server);
    upstream.answer_with(|_| Reply::text("It is two.").reasoning("One, two."));
    for (kind, sent) in [
        (
            "openai-chat",
            json!({"logprobs": true, "top_logprobs": 2, "presence_penalty": 0.5, "frequency_penalty": -2}),
        ),
        (
            "openai-responses",
            json!({
                "include": ["reasoning.encrypted_content", "message.output_text.logprobs"],
                "top_logprobs": 2, "presence_penalty": 0.5, "frequency_penalty": -2,
            }),
        ),
    ] {
        for is_streamed in [false, true] {
            let body = json!({"model": kind, "input": "hi", "stream": is_streamed});
            let body = with_details(&body, &details());

            let answer = run(&api, &body).ok().await;

            let answer = match is_streamed {
                true => last_event(&answer.text())["response"].clone(),
                false => answer.json(),
            };
            let upstream_body = upstream.requests().pop().unwrap().body;
            for (name, value) in sent.as_object().unwrap() {
                assert_eq!(upstream_body[name], *value, "{kind}: {name}");
            }
            let message = &answer["output"][1]["content"][0];
            assert_eq!(message["text"], "It is two.", "{answer}");
            let tokens = message["logprobs"].as_array().unwrap();
            let text: String = tokens
                .iter()
                .map(|token| token["token"].as_str().unwrap())
                .collect();
            assert_eq!(text, "It is two.");
            assert_eq!(tokens[0]["logprob"], -0.25);
            assert_eq!(tokens[0]["bytes"], json!(b"It i"));
            assert_eq!(tokens[0]["top_logprobs"].as_array().unwrap().len(), 2);
            assert_eq!(answer["top_logprobs"], 2);
            assert_eq!(answer["frequency_penalty"], -2);
        }
    }
    // `include` works without `reasoning` if the model reasons by default, and `top_logprobs` works without `include`
    let body = json!({
        "model": "openai-responses", "input": "hi", "include": ["reasoning.encrypted_content"],
    });
    let answer = run(&api, &body).ok().await.json();
    assert!(answer["output"][0]["encrypted_content"].is_string());
    let body = json!({"model": "openai-chat", "input": "hi", "top_logprobs": 1});
    let answer = run(&api, &body).ok().await.json();
    assert_ne!(answer["output"][1]["content"][0]["logprobs"], json!([]));
    assert_eq!(upstream.faults(), [""; 0]);
}

async fn details_that_an_upstream_cannot_provide_are_rejected(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_kinds(server, &upstream).start();
    let api = Api::of(&server);
    let body = json!({"model": "anthropic", "input": "hi"});
    for (name, value) in [
        ("include", json!(["message.output_text.logprobs"])),
        ("top_logprobs", json!(1)),
        ("presence_penalty", json!(0.1)),
        ("frequency_penalty", json!(-0.1)),
    ] {
        let body = with_details(&body, &json!({name: value}));
        let code = Some("unsupported_parameter");
        refused(run(&api, &body), 400, code, Some(name)).await;
    }
    for (details, code, param) in [
        (json!({"top_logprobs": 21}), "invalid_value", "top_logprobs"),
        (json!({"top_logprobs": -1}), "invalid_type", "top_logprobs"),
        (
            json!({"presence_penalty": 2.01}),
            "invalid_value",
            "presence_penalty",
        ),
        (
            json!({"frequency_penalty": -1e300}),
            "invalid_value",
            "frequency_penalty",
        ),
        (
            json!({"frequency_penalty": "much"}),
            "invalid_type",
            "frequency_penalty",
        ),
        (
            json!({"include": ["reasoning.encrypted_content", "everything"]}),
            "invalid_value",
            "include[1]",
        ),
        (json!({"include": [7]}), "invalid_type", "include[0]"),
    ] {
        let body = json!({"model": "openai-chat", "input": "hi"});
        let body = with_details(&body, &details);
        refused(run(&api, &body), 400, Some(code), Some(param)).await;
    }
    assert_eq!(upstream.count(), 0);
}

/// Clients request these details from every model, even if the request uses none of the related tools.
async fn details_without_effect_are_accepted_with_each_upstream_kind(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_kinds(server, &upstream).start();
    let api = Api::of(&server);
    upstream.answer_with(|_| Reply::text("Hello."));
    for kind in ["openai-chat", "openai-responses", "anthropic"] {
        let body = json!({
            "model": kind,
            "input": "hi",
            "include": [
                "reasoning.encrypted_content",
                "web_search_call.action.sources",
                "web_search_call.results",
                "file_search_call.results",
                "code_interpreter_call.outputs",
                "computer_call_output.output.image_url",
                "message.input_image.image_url",
            ],
            "top_logprobs": 0,
            "presence_penalty": 0.0,
            "frequency_penalty": -0,
        });

        run(&api, &body).ok().await;

        let upstream_body = upstream.requests().pop().unwrap().body;
        for name in ["top_logprobs", "presence_penalty", "frequency_penalty"] {
            assert_eq!(upstream_body.get(name), None, "{kind}");
        }
    }
    assert_eq!(upstream.faults(), [""; 0]);
}

over_both_stores! {
    requested_details_are_sent_upstream_and_returned,
    details_that_an_upstream_cannot_provide_are_rejected,
    details_without_effect_are_accepted_with_each_upstream_kind,
    a_truncation_that_is_never_needed_is_accepted,
    a_response_reports_the_settings_that_were_used,
}
