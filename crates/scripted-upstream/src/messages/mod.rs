mod faults;

use serde_json::{Value, json};

use crate::reply::{Answer, Call};
use crate::wire::{Context, Event, Stage, Wire, pieces};

#[derive(Debug)]
pub(crate) struct Messages;

impl Wire for Messages {
    fn path(&self) -> &'static str {
        "/v1/messages"
    }

    fn key_header(&self) -> (&'static str, &'static str) {
        ("authorization", "Bearer ")
    }

    fn headers(&self) -> &'static [&'static str] {
        &["anthropic-version"]
    }

    fn faults(&self, body: &Value) -> Vec<String> {
        faults::faults(body)
    }

    fn messages<'a>(&self, body: &'a Value) -> &'a [Value] {
        body["messages"].as_array().map_or(&[], Vec::as_slice)
    }

    fn user_text(&self, body: &Value) -> String {
        let messages = self.messages(body).iter().rev();
        let users = messages.filter(|message| message["role"] == "user");
        let mut texts = users.map(|message| text(&message["content"]));
        texts.find(|text| !text.is_empty()).unwrap_or_default()
    }

    fn results(&self, body: &Value) -> Vec<String> {
        let last = self.messages(body).last();
        let blocks = last.and_then(|last| last["content"].as_array());
        let results = blocks
            .into_iter()
            .flatten()
            .filter(|block| block["type"] == "tool_result");
        results.map(|block| text(&block["content"])).collect()
    }

    fn whole(&self, context: Context<'_>, answer: &Answer) -> Value {
        let mut message = message(context, blocks(context, answer));
        message["stop_reason"] = json!(stop_reason(answer));
        message["usage"] = self.usage(context, answer);
        message
    }

    fn events(&self, context: Context<'_>, answer: &Answer) -> Vec<Event> {
        let mut start = message(context, Vec::new());
        start["usage"] = self.usage(context, &Answer::default());
        let mut events = vec![
            event("message_start", json!({"message": start}), Stage::Frame),
            event("ping", json!({}), Stage::Frame),
        ];
        for (index, block) in blocks(context, answer).into_iter().enumerate() {
            let delta = |delta: Value| {
                let body = json!({"index": index, "delta": delta});
                event("content_block_delta", body, Stage::Delta)
            };
            let (begin, deltas) = split_deltas(&block, answer, index);
            let begin = json!({"index": index, "content_block": begin});
            events.push(event("content_block_start", begin, Stage::Frame));
            events.extend(deltas.into_iter().map(delta));
            events.push(event(
                "content_block_stop",
                json!({"index": index}),
                Stage::Frame,
            ));
        }
        let usage = self.usage(context, answer);
        let delta = json!({"stop_reason": stop_reason(answer), "stop_sequence": null});
        let end = json!({
            "delta": delta,
            "usage": {
                "output_tokens": usage["output_tokens"],
                "output_tokens_details": usage["output_tokens_details"],
            },
        });
        events.push(event("message_delta", end, Stage::End));
        events.push(event("message_stop", json!({}), Stage::End));
        events
    }

    fn error(&self, status: u16, message: &str) -> Value {
        let kind = match status {
            400 => "invalid_request_error",
            401 => "authentication_error",
            403 => "permission_error",
            404 => "not_found_error",
            413 => "request_too_large",
            429 => "rate_limit_error",
            529 => "overloaded_error",
            _ => "api_error",
        };
        json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"})
    }

    fn error_event(&self, message: &str) -> String {
        format!("event: error\ndata: {}\n\n", self.error(500, message))
    }
}

impl Messages {
    /// Counts one input token per message, one output token per word and per call, and one cached token.
    fn usage(&self, context: Context<'_>, answer: &Answer) -> Value {
        let tokens = |count: usize| if answer.is_without_usage { 0 } else { count };
        json!({
            "input_tokens": tokens(self.messages(context.body).len()),
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": tokens(1),
            "output_tokens": tokens(answer.tokens()),
            "output_tokens_details": {"thinking_tokens": tokens(answer.reasoning_tokens())},
        })
    }
}

fn message(context: Context<'_>, content: Vec<Value>) -> Value {
    json!({
        "id": format!("msg_{}", context.number),
        "type": "message",
        "role": "assistant",
        "model": context.body["model"],
        "content": content,
        "stop_reason": null,
        "stop_sequence": null,
    })
}

fn event(kind: &str, mut body: Value, stage: Stage) -> Event {
    body["type"] = json!(kind);
    let text = format!("event: {kind}\ndata: {body}\n\n");
    Event { text, stage }
}

fn stop_reason(answer: &Answer) -> &str {
    match answer.finish_reason() {
        "stop" => "end_turn",
        "length" => "max_tokens",
        "content_filter" => "refusal",
        "tool_calls" => "tool_use",
        other => other,
    }
}

/// Returns the blocks of an answer. A refusal becomes text, because this API has no refusals.
fn blocks(context: Context<'_>, answer: &Answer) -> Vec<Value> {
    let thinking = answer.reasoning.iter().map(|text| {
        let signature = format!("signature-{}", context.number);
        json!({"type": "thinking", "thinking": text, "signature": signature})
    });
    let texts = answer.text.iter().chain(&answer.refusal);
    let texts = texts.map(|text| json!({"type": "text", "text": text, "citations": null}));
    let calls = answer.calls.iter().enumerate();
    let calls = calls.map(|(index, call)| tool_use(context, index, call));
    answer.in_order(thinking.chain(texts).collect(), calls.collect())
}

/// Renders a call. Arguments that are not an object become `{}`, because the API allows only objects.
fn tool_use(context: Context<'_>, index: usize, call: &Call) -> Value {
    let input = serde_json::from_str::<Value>(&call.arguments).ok();
    let input = input.filter(Value::is_object).unwrap_or(json!({}));
    let mut block = json!({"type": "tool_use", "name": call.name, "input": input});
    if let Some(id) = call.wire_id(context.number, index) {
        block["id"] = json!(id);
    }
    block
}

fn split_deltas(block: &Value, answer: &Answer, index: usize) -> (Value, Vec<Value>) {
    let mut begin = block.clone();
    let deltas = |kind: &str, name: &str, text: &str| -> Vec<Value> {
        let pieces = pieces(text).into_iter();
        pieces
            .map(|piece| json!({"type": kind, name: piece}))
            .collect()
    };
    match block["type"].as_str() {
        Some("thinking") => {
            begin["thinking"] = json!("");
            begin["signature"] = json!("");
            let thinking = block["thinking"].as_str().unwrap_or_default();
            let mut thinking_deltas = deltas("thinking_delta", "thinking", thinking);
            thinking_deltas
                .push(json!({"type": "signature_delta", "signature": block["signature"]}));
            (begin, thinking_deltas)
        }
        Some("text") => {
            begin["text"] = json!("");
            let text = block["text"].as_str().unwrap_or_default();
            (begin, deltas("text_delta", "text", text))
        }
        _ => {
            begin["input"] = json!({});
            let texts = [&answer.reasoning, &answer.text, &answer.refusal];
            let before = match answer.calls_first {
                true => 0,
                false => texts.into_iter().flatten().count(),
            };
            let arguments = &answer.calls[index - before].arguments;
            (begin, deltas("input_json_delta", "partial_json", arguments))
        }
    }
}

fn text(content: &Value) -> String {
    match content {
        Value::Array(blocks) => {
            let texts = blocks.iter().filter_map(|block| block["text"].as_str());
            texts.collect()
        }
        other => other.as_str().unwrap_or_default().to_owned(),
    }
}
