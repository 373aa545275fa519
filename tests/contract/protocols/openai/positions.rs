//! Tests the indices of items in streamed responses. Items are numbered in the order in which they begin in the
//! upstream's stream.

use serde_json::{Value, json};

use super::Api;
use super::kinds::{KINDS, with_kinds};
use super::responses::{Events, kinds as kinds_of, state_tools};
use crate::http::over_both_stores;
use crate::support::server::Server;
use crate::support::upstream::{Call, Reply, Upstream};

async fn events(api: &Api, body: &Value) -> Vec<Value> {
    let mut body = body.clone();
    body["stream"] = json!(true);
    Events::of(api.post("/responses", &body)).await.rest().await
}

/// Assembles a response from its events as clients do: items by `output_index`, and an item's parts by their own index.
fn rebuilt(events: &[Value]) -> Vec<Value> {
    let mut output: Vec<Value> = Vec::new();
    for event in events {
        let number = |name: &str| event[name].as_u64().map(|number| number as usize);
        let index = number("output_index");
        let kind = event["type"].as_str().unwrap();
        match kind {
            "response.output_item.added" => {
                assert_eq!(index, Some(output.len()), "{event}");
                output.push(event["item"].clone());
            }
            "response.content_part.added" => {
                let content = output[index.unwrap()]["content"].as_array_mut().unwrap();
                assert_eq!(number("content_index"), Some(content.len()), "{event}");
                content.push(event["part"].clone());
            }
            "response.reasoning_summary_part.added" => {
                let summary = output[index.unwrap()]["summary"].as_array_mut().unwrap();
                assert_eq!(number("summary_index"), Some(summary.len()), "{event}");
                summary.push(event["part"].clone());
            }
            "response.output_text.delta"
            | "response.reasoning_text.delta"
            | "response.reasoning_summary_text.delta" => {
                let (list, index_in_list) = match number("summary_index") {
                    Some(index_in_list) => ("summary", index_in_list),
                    None => ("content", number("content_index").unwrap()),
                };
                let item = &mut output[index.unwrap()];
                assert_eq!(item["id"], event["item_id"]);
                let text = &mut item[list][index_in_list]["text"];
                *text = json!(text.as_str().unwrap().to_owned() + event["delta"].as_str().unwrap());
            }
            "response.output_text.annotation.added" => {
                let part = &mut output[index.unwrap()]["content"][number("content_index").unwrap()];
                let annotations = part["annotations"].as_array_mut().unwrap();
                assert_eq!(number("annotation_index"), Some(annotations.len()));
                annotations.push(event["annotation"].clone());
            }
            "response.function_call_arguments.delta" | "response.mcp_call_arguments.delta" => {
                let arguments = &mut output[index.unwrap()]["arguments"];
                let delta = event["delta"].as_str().unwrap();
                *arguments = json!(arguments.as_str().unwrap().to_owned() + delta);
            }
            _ => {}
        }
    }
    output
}

fn content_of(item: &Value) -> Value {
    json!([
        item["type"],
        item["id"],
        item["summary"],
        item["content"],
        item["arguments"],
    ])
}

fn position(events: &[Value], kind: &str, index: u64) -> usize {
    let matches = |event: &Value| event["type"] == kind && event["output_index"] == index;
    events
        .iter()
        .position(matches)
        .unwrap_or_else(|| panic!("{kind} {index}"))
}

#[track_caller]
fn output(events: &[Value]) -> Value {
    let last = events.last().unwrap();
    assert_eq!(last["type"], "response.completed", "{last}");
    let output = last["response"]["output"].clone();
    let whole: Vec<_> = output.as_array().unwrap().iter().map(content_of).collect();
    let streamed: Vec<_> = rebuilt(events).iter().map(content_of).collect();
    assert_eq!(streamed, whole);
    for (index, item) in (0..).zip(output.as_array().unwrap()) {
        let done = &events[position(events, "response.output_item.done", index)];
        assert_eq!(done["item"], *item);
    }
    output
}

async fn reasoning_is_streamed_at_its_own_index_with_each_upstream_kind(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_kinds(server, &upstream).start();
    let api = Api::of(&server);
    for kind in KINDS {
        upstream.script([Reply::text("One, two.")
            .reasoning("I count \"slowly\".")
            .and_calls([("weather", r#"{"city":"Oslo"}"#)])]);
        let body = json!({
            "model": kind, "input": "Count.", "reasoning": {"effort": "low", "summary": "auto"},
            "tools": [{"type": "function", "name": "weather", "parameters": {"type": "object"}}],
        });

        let events = events(&api, &body).await;

        let output = output(&events);
        assert_eq!(
            kinds_of(&output),
            ["reasoning", "message", "function_call"],
            "{kind}"
        );
        let thought = &output[0];
        assert_eq!(thought["status"], "completed");
        let delta = match kind {
            "openai-chat" => {
                assert_eq!(thought["content"][0]["text"], "I count \"slowly\".");
                "response.reasoning_text.delta"
            }
            _ => {
                assert_eq!(thought["summary"][0]["text"], "I count \"slowly\".");
                "response.reasoning_summary_text.delta"
            }
        };
        // the reasoning item ends before the answer begins
        let positions = [
            position(&events, "response.output_item.added", 0),
            position(&events, delta, 0),
            position(&events, "response.output_item.done", 0),
            position(&events, "response.output_item.added", 1),
            position(&events, "response.output_text.delta", 1),
            position(&events, "response.output_item.added", 2),
        ];
        assert!(positions.is_sorted(), "{kind} {positions:?}");
        assert_eq!(upstream.faults(), [""; 0], "{kind}");
    }
}

async fn calls_that_come_first_stay_first_with_each_upstream_kind(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_kinds(server, &upstream).start();
    let api = Api::of(&server);
    for kind in KINDS {
        let count = || Call::new("kv_increment", r#"{"key":"a/n"}"#);
        upstream.script([
            Reply::text("Meanwhile.")
                .reasoning("Hm.")
                .and_calls([count()])
                .calls_first(),
            Reply::calls([count()]).reasoning("Again."),
            Reply::text("Two."),
            Reply::text("Still two."),
        ]);
        let id = crate::support::client::new_id();
        let body = json!({
            "model": kind, "conversation": id, "input": "Count.", "tools": state_tools(),
            "reasoning": {"effort": "low"},
        });

        let streamed = events(&api, &body).await;
        let next = api.post("/responses", &body).ok().await.json();

        let output = output(&streamed);
        // `OpenAI`'s chat API does not define the order of items, so the server uses the order in the upstream's stream
        let expected = [
            "mcp_call",
            "reasoning",
            "message",
            "reasoning",
            "mcp_call",
            "message",
        ];
        assert_eq!(kinds_of(&output), expected, "{kind}");
        for kind in ["in_progress", "completed"] {
            let kind = format!("response.mcp_call.{kind}");
            position(&streamed, &kind, 0);
            position(&streamed, &kind, 4);
        }
        assert_eq!(next["status"], "completed", "{kind}: {next}");
        assert_eq!(upstream.faults(), [""; 0], "{kind}");
    }
}

async fn a_message_keeps_its_phase_and_sources_in_both_directions(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_kinds(server, &upstream).start();
    let api = Api::of(&server);
    let id = crate::support::client::new_id();
    let ask = json!({"model": "openai-responses", "conversation": id, "input": [
        {"role": "user", "content": "Hi."},
        {"role": "assistant", "content": "Wait.", "phase": "commentary"},
        {"role": "user", "content": "Accepting?"},
    ]});
    let answer = || {
        Reply::text("Here.")
            .phase("final_answer")
            .source("https://example.com/a")
    };
    upstream.script([answer(), answer()]);

    let streamed = events(&api, &ask).await;
    let again = json!({"model": "openai-responses", "conversation": id, "input": "And?"});
    let whole = api.post("/responses", &again).ok().await.json();

    let added = &streamed[position(&streamed, "response.output_item.added", 0)];
    assert_eq!(added["item"]["phase"], "final_answer");
    for output in [&output(&streamed), &whole["output"]] {
        assert_eq!(output[0]["phase"], "final_answer");
        let sources = &output[0]["content"][0]["annotations"];
        assert_eq!(sources[0]["url"], "https://example.com/a");
    }
    let sent = upstream.requests().pop().unwrap().body;
    let phases = sent["input"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["phase"].as_str());
    let expected = [None, Some("commentary"), None, Some("final_answer"), None];
    assert_eq!(phases.collect::<Vec<_>>(), expected, "{sent}");
    assert_eq!(upstream.faults(), [""; 0]);
}

async fn an_item_cut_by_a_limit_is_incomplete_and_last(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_kinds(server, &upstream).start();
    let api = Api::of(&server);
    for kind in KINDS {
        let cut = || {
            Reply::text("It never")
                .reasoning("Long.")
                .finish_reason("length")
        };
        upstream.script([cut(), cut()]);
        let body = json!({"model": kind, "input": "Write.", "max_output_tokens": 16});

        let whole = api.post("/responses", &body).ok().await.json();
        let streamed = events(&api, &body).await;

        let last = streamed.last().unwrap();
        assert_eq!(last["type"], "response.incomplete");
        for response in [&whole, &last["response"]] {
            let statuses = response["output"].as_array().unwrap().iter();
            let statuses: Vec<_> = statuses.map(|item| &item["status"]).collect();
            assert_eq!(statuses, ["completed", "incomplete"], "{kind}");
        }
        let done = &streamed[position(&streamed, "response.output_item.done", 1)];
        assert_eq!(done["item"], last["response"]["output"][1]);
    }
}

fn with_reasoning(model: &str, input: Value) -> Value {
    json!({"model": model, "input": input, "reasoning": {"effort": "low"}})
}

fn sent_reasoning(upstream: &Upstream) -> Vec<Value> {
    let body = upstream.requests().pop().unwrap().body;
    let items = body["input"].as_array().unwrap().iter();
    let thoughts = items.filter(|item| item["type"] == "reasoning");
    thoughts
        .map(|item| json!([item["id"], item["encrypted_content"]]))
        .collect()
}

async fn a_reference_to_an_upstream_item_is_sent_with_its_upstream_id(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_kinds(server, &upstream).start();
    let api = Api::of(&server);
    upstream.script([
        Reply::text("Ada.").reasoning("Hm."),
        Reply::text("Ada, again."),
    ]);
    let first = with_reasoning("openai-responses", json!("Who am I?"));
    let first = api.post("/responses", &first).ok().await.json();
    let reference =
        |index: usize| json!({"type": "item_reference", "id": first["output"][index]["id"]});

    let input = json!([{"role": "user", "content": "Who am I?"}, reference(0), reference(1), {"role": "user", "content": "Sure?"}]);
    let second = api
        .post("/responses", &with_reasoning("openai-responses", input))
        .ok()
        .await
        .json();

    assert_eq!(second["status"], "completed");
    assert_eq!(sent_reasoning(&upstream), [json!(["rs_1", "encrypted-1"])]);
    assert_eq!(upstream.faults(), [""; 0]);
}

async fn an_upstream_id_that_the_input_also_has_does_not_fail_the_response(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_kinds(server, &upstream).start();
    let api = Api::of(&server);
    upstream.script([Reply::text("Yes.").reasoning("Hm.")]);
    // some clients add a member, such as `status`, to a reasoning item when they send it back
    let input = json!([
        {"type": "reasoning", "id": "rs_1", "summary": [], "status": null},
        {"role": "user", "content": "Accepting?"},
    ]);
    let mut body = with_reasoning("openai-responses", input);
    body["conversation"] = json!(crate::support::client::new_id());

    let answer = api.post("/responses", &body).ok().await.json();

    assert_eq!(answer["status"], "completed", "{answer}");
    let id = answer["output"][0]["id"].as_str().unwrap();
    assert!(id.starts_with("rs_1_"), "{id}");
    assert_eq!(upstream.faults(), [""; 0]);
}

over_both_stores! {
    reasoning_is_streamed_at_its_own_index_with_each_upstream_kind,
    calls_that_come_first_stay_first_with_each_upstream_kind,
    a_message_keeps_its_phase_and_sources_in_both_directions,
    an_item_cut_by_a_limit_is_incomplete_and_last,
    a_reference_to_an_upstream_item_is_sent_with_its_upstream_id,
    an_upstream_id_that_the_input_also_has_does_not_fail_the_response,
}
