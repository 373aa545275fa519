use serde_json::{Value, json};

use super::Api;
use super::responses::PATIENCE_MS;
use crate::http::over_both_stores;
use crate::support::client::new_id;
use crate::support::server::{Builder, Server};
use crate::support::upstream::{Call, Failure, PRIVATE_DETAIL, Reply, Upstream};

pub(super) const KINDS: [&str; 3] = ["openai-chat", "openai-responses", "anthropic"];

pub(super) fn with_kinds(server: &Server, upstream: &Upstream) -> Builder {
    let (url, root, key) = (upstream.url(), upstream.root_url(), upstream.key());
    let upstreams = format!("c openai-chat {url}, r openai-responses {url}, a anthropic {root}");
    server
        .settings()
        .set("THREADKEEP_UPSTREAMS", upstreams)
        .set(
            "THREADKEEP_UPSTREAM_KEYS",
            format!("c:{key},r:{key},a:{key}"),
        )
        .set(
            "THREADKEEP_MODELS",
            "openai-chat c, openai-responses r, anthropic a",
        )
        .set("THREADKEEP_UPSTREAM_RETRIES", 0)
}

fn state_tools() -> Value {
    json!([{"type": "mcp", "server_label": "memory", "server_url": "threadkeep:memory"}])
}

pub(super) fn kinds_of(items: &Value) -> Vec<&str> {
    let items = items.as_array().unwrap().iter();
    items.map(|item| item["type"].as_str().unwrap()).collect()
}

async fn a_response_runs_state_tools_with_each_upstream_kind(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_kinds(server, &upstream).start();
    let api = Api::of(&server);
    for kind in KINDS {
        let id = new_id();
        let increment = || Call::new("kv_increment", r#"{"key":"a/n"}"#);
        let wrong = Call::new("kv_write", r#"{"key":"bad key","value":"x"}"#);
        upstream.script([
            Reply::text("I count.")
                .reasoning("Once.")
                .and_calls([increment().id("call:1|x"), wrong]),
            Reply::calls([increment()]).reasoning("Twice."),
            Reply::text("It is two."),
            Reply::text("Still two."),
        ]);
        let ask = |input: &str| {
            let body = json!({
                "model": kind,
                "instructions": "Count.",
                "conversation": id,
                "tools": state_tools(),
                "reasoning": {"effort": "low"},
                "input": input,
            });
            api.post("/responses", &body)
        };

        let answer = ask("Count.").ok().await.json();
        let second = ask("And now?").ok().await.json();

        assert_eq!(answer["status"], "completed", "{kind}: {answer}");
        let expected = [
            "reasoning",
            "message",
            "mcp_call",
            "mcp_call",
            "reasoning",
            "mcp_call",
            "message",
        ];
        assert_eq!(kinds_of(&answer["output"]), expected, "{kind}");
        assert_eq!(answer["output"][5]["output"], r#"{"ok":true,"value":2}"#);
        assert_eq!(answer["output"][6]["content"][0]["text"], "It is two.");
        assert!(answer["usage"]["output_tokens"].as_u64() > Some(0));
        assert_eq!(
            answer["usage"]["output_tokens_details"]["reasoning_tokens"],
            2
        );
        assert_eq!(second["output"][0]["content"][0]["text"], "Still two.");
        let last = upstream.requests().pop().unwrap();
        assert_eq!(last.user_text(), "And now?");
        let sent = last.body.to_string();
        assert!(
            sent.contains("Once.") && sent.contains("kv_increment"),
            "{sent}"
        );
        assert_eq!(upstream.faults(), [""; 0], "{kind}");
    }
}

async fn the_last_step_offers_no_tools_with_each_upstream_kind(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_kinds(server, &upstream)
        .set("THREADKEEP_RESPONSE_MAX_STEPS", 2)
        .start();
    let api = Api::of(&server);
    for kind in KINDS {
        upstream.script([
            Reply::calls([("kv_increment", r#"{"key":"a/n"}"#)]),
            Reply::text("One."),
        ]);
        let body = json!({
            "model": kind, "tools": state_tools(), "tool_choice": "required", "input": "Count.",
        });

        let answer = api.post("/responses", &body).ok().await.json();

        assert_eq!(
            answer["incomplete_details"]["reason"], "max_tool_calls",
            "{answer}"
        );
        assert_eq!(kinds_of(&answer["output"]), ["mcp_call", "message"]);
        assert_eq!(upstream.faults(), [""; 0], "{kind}");
    }
}

/// A model may return no text after it receives the results of its tool calls.
async fn an_empty_answer_after_calls_completes_the_response(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_kinds(server, &upstream).start();
    let api = Api::of(&server);
    for kind in KINDS {
        for is_streamed in [false, true] {
            let id = new_id();
            upstream.script([
                Reply::calls([Call::new("kv_increment", r#"{"key":"n"}"#)]),
                Reply::empty(),
                Reply::text("One."),
            ]);
            let ask = |input: &str, is_streamed: bool| {
                let body = json!({
                    "model": kind, "conversation": id, "tools": state_tools(), "input": input, "stream": is_streamed,
                });
                api.post("/responses", &body)
            };

            let answer = ask("Count.", is_streamed).ok().await.text();
            let answer: Value = match is_streamed {
                false => serde_json::from_str(&answer).unwrap(),
                true => {
                    let last = answer
                        .lines()
                        .rfind(|line| line.starts_with("data: {"))
                        .unwrap();
                    let event: Value = serde_json::from_str(&last[6..]).unwrap();
                    assert_eq!(event["type"], "response.completed", "{kind}");
                    event["response"].clone()
                }
            };

            assert_eq!(answer["status"], "completed", "{kind}: {answer}");
            assert_eq!(kinds_of(&answer["output"]), ["mcp_call", "message"]);
            assert_eq!(answer["output"][1]["content"][0]["text"], "");
            let next = ask("How many?", false).ok().await.json();
            assert_eq!(next["status"], "completed", "{kind}: {next}");
            let conversation = next["conversation"]["id"].as_str().unwrap();
            let items = api.conversation(conversation).list("order=asc").await;
            let all = ["message", "mcp_call", "message", "message", "message"];
            assert_eq!(kinds_of(&items["data"]), all, "{kind}");
        }
        // the same applies after results of calls that the client executed
        upstream.script([Reply::empty()]);
        let body = json!({"model": kind, "input": [
            {"role": "user", "content": "Look it up."},
            {"type": "function_call", "call_id": "a", "name": "look", "arguments": ""},
            {"type": "function_call_output", "call_id": "a", "output": "nothing"},
        ]});
        let answer = api.post("/responses", &body).ok().await.json();
        assert_eq!(answer["status"], "completed", "{kind}: {answer}");
    }
    assert_eq!(upstream.faults(), [""; 0]);
}

async fn a_call_without_arguments_has_an_empty_object(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_kinds(server, &upstream).start();
    let api = Api::of(&server);
    for kind in KINDS {
        for is_streamed in [false, true] {
            upstream.script([Reply::calls([Call::new("look", "")])]);
            let look =
                json!({"type": "function", "name": "look", "parameters": {"type": "object"}});
            let body =
                json!({"model": kind, "input": "Look.", "tools": [look], "stream": is_streamed});

            let answer = api.post("/responses", &body).ok().await.text();

            let arguments = match is_streamed {
                false => serde_json::from_str::<Value>(&answer).unwrap()["output"][0]["arguments"]
                    .clone(),
                true => {
                    let done = answer
                        .lines()
                        .find(|line| {
                            line.contains("response.function_call_arguments.done")
                                && line.starts_with("data: ")
                        })
                        .unwrap();
                    serde_json::from_str::<Value>(&done[6..]).unwrap()["arguments"].clone()
                }
            };
            assert_eq!(arguments, "{}", "{kind} {is_streamed}: {answer}");
        }
    }
}

async fn each_failure_has_its_error_with_each_upstream_kind(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_kinds(server, &upstream)
        .set("THREADKEEP_UPSTREAM_TIMEOUT_MS", PATIENCE_MS)
        .start();
    let api = Api::of(&server);
    for kind in KINDS {
        for (reply, status, code) in [
            (
                Reply::status(400).message("too long"),
                400,
                "upstream_refused",
            ),
            (Reply::status(401), 502, "upstream_error"),
            (Reply::status(529), 502, "upstream_error"),
            (Reply::status(429), 429, "rate_limit_exceeded"),
            (Reply::failing(Failure::Error), 502, "upstream_error"),
            (
                Reply::failing(Failure::EndsEarly),
                502,
                "upstream_malformed",
            ),
            (Reply::garbage(), 502, "upstream_malformed"),
            (Reply::empty(), 502, "upstream_malformed"),
            (Reply::hang(), 504, "upstream_timeout"),
        ] {
            upstream.script([reply]);
            let body = json!({"model": kind, "input": "hi"});
            let answer = api.post("/responses", &body).send().await;
            let text = answer.text();
            assert_eq!(answer.status, status, "{kind} {code}: {text}");
            assert_eq!(answer.json()["error"]["code"], code, "{text}");
            assert!(!text.contains(PRIVATE_DETAIL), "{text}");
        }
        for (reason, expected) in [
            ("length", "max_output_tokens"),
            ("content_filter", "content_filter"),
        ] {
            upstream.script([Reply::finish(reason)]);
            let body = json!({"model": kind, "input": "hi"});
            let answer = api.post("/responses", &body).ok().await.json();
            assert_eq!(answer["incomplete_details"]["reason"], expected, "{kind}");
        }
        assert_eq!(upstream.faults(), [""; 0], "{kind}");
    }
}

async fn a_conversation_continues_at_another_upstream_kind(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_kinds(server, &upstream).start();
    let api = Api::of(&server);
    let id = new_id();
    for kind in KINDS.into_iter().chain(KINDS) {
        upstream.script([
            Reply::calls([("kv_increment", r#"{"key":"a/n"}"#)]).reasoning("Again."),
            Reply::text("done"),
        ]);
        let body = json!({
            "model": kind, "conversation": id, "tools": state_tools(), "input": "Count.",
        });

        let answer = api.post("/responses", &body).ok().await.json();

        assert_eq!(answer["status"], "completed", "{kind}: {answer}");
    }
    let last = upstream.requests().pop().unwrap();
    assert_eq!(last.results(), [r#"{"ok":true,"value":6}"#]);
    assert_eq!(upstream.faults(), [""; 0]);
}

over_both_stores! {
    a_response_runs_state_tools_with_each_upstream_kind,
    the_last_step_offers_no_tools_with_each_upstream_kind,
    an_empty_answer_after_calls_completes_the_response,
    a_call_without_arguments_has_an_empty_object,
    each_failure_has_its_error_with_each_upstream_kind,
    a_conversation_continues_at_another_upstream_kind,
}
