//! The settings of a request: those that its response repeats, and those that reach the upstream.

use reqwest::Method;
use serde_json::{Value, json};

use super::{run, with_models};
use crate::http::over_both_stores;
use crate::protocols::openai::Program;
use crate::protocols::openai::kinds::with_kinds;
use crate::support::server::Server;
use crate::support::upstream::{Reply, Upstream};

/// The members that the schema `ResponseResource` of Open Responses requires.
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

async fn a_response_has_the_settings_that_were_used(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let program = Program::of(&server);
    upstream.script([Reply::text("Hello.")]);
    let tools = json!([{"type": "function", "name": "f"}]);

    let body = json!({"model": "m", "input": "hi", "tools": tools});
    let answer = run(&program, &body).ok().await.json();

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
    let read = program.ask(Method::GET, &path).ok().await.json();
    assert_eq!(read, answer);
    // they are the server's, and no wish for the upstream
    let asked = upstream.requests().pop().unwrap().body;
    for name in ["temperature", "top_p", "presence_penalty", "service_tier"] {
        assert_eq!(asked.get(name), None::<&Value>, "{asked}");
    }
    assert_eq!(upstream.faults(), [""; 0]);
}

async fn a_truncation_that_is_never_needed_is_accepted(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_kinds(server, &upstream).start();
    let program = Program::of(&server);
    upstream.answer_with(|_| Reply::text("Hello."));
    for (model, truncation, sent) in [
        ("openai-chat", "auto", Value::Null),
        ("anthropic", "auto", Value::Null),
        ("openai-responses", "auto", json!("auto")),
        ("openai-responses", "disabled", Value::Null),
    ] {
        let body = json!({"model": model, "input": "hi", "truncation": truncation});

        let answer = run(&program, &body).ok().await.json();

        assert_eq!(answer["truncation"], truncation);
        let asked = upstream.requests().pop().unwrap().body;
        assert_eq!(asked["truncation"], sent, "{model}");
    }
    assert_eq!(upstream.faults(), [""; 0]);
}

over_both_stores! {
    a_truncation_that_is_never_needed_is_accepted,
    a_response_has_the_settings_that_were_used,
}
