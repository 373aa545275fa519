mod faults;

use serde_json::{Map, Value, json};

use crate::reply::{Answer, Call};
use crate::wire::{Context, Event, Stage, Wire, logprobs, pieces};

#[derive(Debug)]
pub(crate) struct Chat;

const CREATED: u64 = 1_790_000_000;

impl Wire for Chat {
    fn path(&self) -> &'static str {
        "/v1/chat/completions"
    }

    fn key_header(&self) -> (&'static str, &'static str) {
        ("authorization", "Bearer ")
    }

    fn headers(&self) -> &'static [&'static str] {
        &[]
    }

    fn faults(&self, body: &Value) -> Vec<String> {
        faults::faults(body)
    }

    fn messages<'a>(&self, body: &'a Value) -> &'a [Value] {
        body["messages"].as_array().map_or(&[], Vec::as_slice)
    }

    fn user_text(&self, body: &Value) -> String {
        let mut messages = self.messages(body).iter().rev();
        let last = messages.find(|message| message["role"] == "user");
        last.map(|message| text(&message["content"]))
            .unwrap_or_default()
    }

    fn results(&self, body: &Value) -> Vec<String> {
        let messages = self.messages(body);
        let is_call = |message: &Value| message["role"] != "tool";
        let begin = messages
            .iter()
            .rposition(is_call)
            .map_or(0, |last| last + 1);
        let results = messages[begin..].iter();
        results.map(|message| text(&message["content"])).collect()
    }

    fn whole(&self, context: Context<'_>, answer: &Answer) -> Value {
        let mut message =
            json!({"role": "assistant", "content": answer.text, "refusal": answer.refusal});
        if let Some(reasoning) = &answer.reasoning {
            message["reasoning_content"] = json!(reasoning);
        }
        if !answer.calls.is_empty() {
            let calls = answer.calls.iter().enumerate();
            let calls = calls.map(|(index, call)| whole_call(context, index, call));
            message["tool_calls"] = calls.collect();
        }
        let choice = json!({
            "index": 0,
            "message": message,
            "logprobs": text_logprobs(context, answer.text.as_deref()),
            "finish_reason": answer.finish_reason(),
        });
        let mut body = object(context, "chat.completion", json!([choice]));
        if !answer.is_without_usage {
            body["usage"] = self.usage(context, answer);
        }
        body
    }

    fn events(&self, context: Context<'_>, answer: &Answer) -> Vec<Event> {
        let wants_usage = context.body["stream_options"]["include_usage"] == true;
        // with `include_usage`, every chunk has a `usage` member, which is null in all chunks except the last
        let event = |choices: Value, usage: Value, stage: Stage| {
            let mut chunk = object(context, "chat.completion.chunk", choices);
            if wants_usage {
                chunk["usage"] = usage;
            }
            let text = format!("data: {chunk}\n\n");
            Event { text, stage }
        };
        let with = |delta: Value, logprobs: Value, stage: Stage| {
            let choice =
                json!({"index": 0, "delta": delta, "logprobs": logprobs, "finish_reason": null});
            event(json!([choice]), Value::Null, stage)
        };
        let staged = |delta: Value, stage: Stage| with(delta, Value::Null, stage);
        let delta = |delta: Value| staged(delta, Stage::Delta);
        let begin = json!({"role": "assistant", "content": ""});
        let begin = staged(begin, Stage::Frame);
        let mut texts = Vec::new();
        for (name, text) in [
            ("reasoning_content", &answer.reasoning),
            ("content", &answer.text),
            ("refusal", &answer.refusal),
        ] {
            let pieces = pieces(text.as_deref().unwrap_or_default());
            texts.extend(pieces.into_iter().map(|piece| {
                let text = (name == "content").then_some(piece.as_str());
                let logprobs = text_logprobs(context, text);
                with(json!({name: piece}), logprobs, Stage::Delta)
            }));
        }
        let mut calls = Vec::new();
        for (index, call) in answer.calls.iter().enumerate() {
            let begin = json!({"tool_calls": [call_begin(context, index, call)]});
            calls.push(staged(begin, Stage::Frame));
            let arguments = pieces(&call.arguments).into_iter();
            calls.extend(arguments.map(|piece| {
                let (kind, member) = kind_of(call);
                let part = json!({"index": index, kind: {member: piece}});
                delta(json!({"tool_calls": [part]}))
            }));
        }
        let mut events = vec![begin];
        events.extend(answer.in_order(texts, calls));
        let reason = answer.finish_reason();
        let end = json!([{"index": 0, "delta": {}, "logprobs": null, "finish_reason": reason}]);
        events.push(event(end, Value::Null, Stage::End));
        if wants_usage && !answer.is_without_usage {
            events.push(event(json!([]), self.usage(context, answer), Stage::End));
        }
        events.push(Event {
            text: "data: [DONE]\n\n".into(),
            stage: Stage::End,
        });
        events
    }

    fn error(&self, status: u16, message: &str) -> Value {
        let (kind, code) = match status {
            401 => ("invalid_request_error", json!("invalid_api_key")),
            429 => ("requests", json!("rate_limit_exceeded")),
            500.. => ("server_error", Value::Null),
            _ => ("invalid_request_error", Value::Null),
        };
        json!({"error": {"message": message, "type": kind, "param": null, "code": code}})
    }
}

impl Chat {
    /// Counts one token per message and per word.
    fn usage(&self, context: Context<'_>, answer: &Answer) -> Value {
        let read = self.messages(context.body).len();
        let written = answer.tokens();
        json!({
            "prompt_tokens": read,
            "completion_tokens": written,
            "total_tokens": read + written,
            "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": answer.reasoning_tokens(), "audio_tokens": 0},
        })
    }
}

/// Returns the log probabilities of `text` if the request asks for them.
fn text_logprobs(context: Context<'_>, text: Option<&str>) -> Value {
    match text.filter(|_| context.body["logprobs"] == true) {
        Some(text) => {
            let content = logprobs(text, &context.body["top_logprobs"]);
            json!({"content": content, "refusal": null})
        }
        None => Value::Null,
    }
}

fn object(context: Context<'_>, kind: &str, choices: Value) -> Value {
    json!({
        "id": format!("chatcmpl-{}", context.number),
        "object": kind,
        "created": CREATED,
        "model": context.body["model"],
        "choices": choices,
    })
}

fn whole_call(context: Context<'_>, index: usize, call: &Call) -> Value {
    let mut whole = Map::new();
    if let Some(id) = call.wire_id(context.number, index) {
        whole.insert("id".into(), id.into());
    }
    let (kind, member) = kind_of(call);
    whole.insert("type".into(), kind.into());
    whole.insert(
        kind.into(),
        json!({"name": call.name, member: call.arguments}),
    );
    whole.into()
}

fn kind_of(call: &Call) -> (&'static str, &'static str) {
    match call.is_custom {
        true => ("custom", "input"),
        false => ("function", "arguments"),
    }
}

/// Renders a call with its id and name but without its arguments, which follow in later deltas.
fn call_begin(context: Context<'_>, index: usize, call: &Call) -> Value {
    let empty = Call {
        arguments: String::new(),
        ..call.clone()
    };
    let mut first = whole_call(context, index, &empty);
    first["index"] = index.into();
    first
}

fn text(content: &Value) -> String {
    match content {
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|part| part["text"].as_str());
            texts.collect()
        }
        other => other.as_str().unwrap_or_default().to_owned(),
    }
}
