mod faults;

use serde_json::{Value, json};

use crate::reply::{Answer, Call};
use crate::wire::{Context, Event, Stage, Wire, logprobs, pieces};

#[derive(Debug)]
pub(crate) struct Responses;

const CREATED: u64 = 1_790_000_000;

impl Wire for Responses {
    fn path(&self) -> &'static str {
        "/v1/responses"
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
        body["input"].as_array().map_or(&[], Vec::as_slice)
    }

    fn user_text(&self, body: &Value) -> String {
        if let Some(text) = body["input"].as_str() {
            return text.to_owned();
        }
        let mut items = self.messages(body).iter().rev();
        let last = items.find(|item| item["role"] == "user");
        last.map(|item| text(&item["content"])).unwrap_or_default()
    }

    fn results(&self, body: &Value) -> Vec<String> {
        let items = self.messages(body);
        let is_call = |item: &Value| {
            let kind = item["type"].as_str().unwrap_or_default();
            !["function_call_output", "custom_tool_call_output"].contains(&kind)
        };
        let begin = items.iter().rposition(is_call).map_or(0, |last| last + 1);
        let results = items[begin..].iter();
        results.map(|item| text(&item["output"])).collect()
    }

    fn whole(&self, context: Context<'_>, answer: &Answer) -> Value {
        self.response(context, answer, items(context, answer))
    }

    fn events(&self, context: Context<'_>, answer: &Answer) -> Vec<Event> {
        let mut begun = object(context, "in_progress", Vec::new());
        begun["usage"] = Value::Null;
        let mut events = Events(Vec::new());
        for kind in ["response.created", "response.in_progress"] {
            events.push(kind, json!({"response": begun}), Stage::Frame);
        }
        for (index, item) in items(context, answer).into_iter().enumerate() {
            events.item(index, &item);
        }
        let response = self.whole(context, answer);
        let kind = match response["status"].as_str() {
            Some("incomplete") => "response.incomplete",
            _ => "response.completed",
        };
        events.push(kind, json!({"response": response}), Stage::End);
        events.0
    }

    fn error(&self, status: u16, message: &str) -> Value {
        let (kind, code) = match status {
            401 => ("invalid_request_error", json!("invalid_api_key")),
            429 => ("requests", json!("rate_limit_exceeded")),
            500.. => ("server_error", json!("server_error")),
            _ => ("invalid_request_error", Value::Null),
        };
        json!({"error": {"message": message, "type": kind, "param": null, "code": code}})
    }

    fn error_event(&self, message: &str) -> String {
        let event = json!({
            "type": "error", "code": "server_error", "message": message, "param": null, "sequence_number": 9,
        });
        format!("event: error\ndata: {event}\n\n")
    }
}

impl Responses {
    fn response(&self, context: Context<'_>, answer: &Answer, items: Vec<Value>) -> Value {
        let (status, reason) = match answer.finish_reason() {
            "length" => ("incomplete", Some("max_output_tokens")),
            "content_filter" => ("incomplete", Some("content_filter")),
            _ => ("completed", None),
        };
        let mut response = object(context, status, items);
        if let Some(reason) = reason {
            response["incomplete_details"] = json!({"reason": reason});
        }
        if !answer.is_without_usage {
            response["usage"] = self.usage(context, answer);
        }
        response
    }

    /// Counts one token per item and per word.
    fn usage(&self, context: Context<'_>, answer: &Answer) -> Value {
        let read = self.messages(context.body).len();
        let written = answer.tokens();
        json!({
            "input_tokens": read,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": written,
            "output_tokens_details": {"reasoning_tokens": answer.reasoning_tokens()},
            "total_tokens": read + written,
        })
    }
}

fn object(context: Context<'_>, status: &str, output: Vec<Value>) -> Value {
    json!({
        "id": format!("resp_{}", context.number),
        "object": "response",
        "created_at": CREATED,
        "status": status,
        "error": null,
        "incomplete_details": null,
        "model": context.body["model"],
        "output": output,
        "parallel_tool_calls": true,
        "tool_choice": "auto",
        "tools": [],
    })
}

/// Returns the items of an answer. Includes encrypted reasoning if the request asks for it.
fn items(context: Context<'_>, answer: &Answer) -> Vec<Value> {
    let number = context.number;
    let mut items = Vec::new();
    let includes = context.body["include"].as_array();
    let includes = |name| includes.is_some_and(|names| names.contains(&json!(name)));
    if let Some(reasoning) = &answer.reasoning {
        let is_encrypted = includes("reasoning.encrypted_content");
        let encrypted = is_encrypted.then(|| format!("encrypted-{number}"));
        items.push(json!({
            "type": "reasoning",
            "id": format!("rs_{number}"),
            "summary": [{"type": "summary_text", "text": reasoning}],
            "encrypted_content": encrypted,
        }));
    }
    let annotations = answer.source.iter().map(|url| {
        json!({"type": "url_citation", "url": url, "title": "", "start_index": 0, "end_index": 1})
    });
    let annotations: Vec<_> = annotations.collect();
    let text = answer.text.iter().map(|text| {
        let logprobs = match includes("message.output_text.logprobs") {
            true => logprobs(text, &context.body["top_logprobs"]),
            false => Vec::new(),
        };
        json!({"type": "output_text", "text": text, "annotations": annotations, "logprobs": logprobs})
    });
    let refusal = answer.refusal.iter();
    let refusal = refusal.map(|refusal| json!({"type": "refusal", "refusal": refusal}));
    let content: Vec<Value> = text.chain(refusal).collect();
    if !content.is_empty() {
        let mut message = json!({
            "type": "message",
            "id": format!("msg_{number}"),
            "role": "assistant",
            "status": "completed",
            "content": content,
        });
        if let Some(phase) = &answer.phase {
            message["phase"] = json!(phase);
        }
        items.push(message);
    }
    let calls = answer.calls.iter().enumerate();
    let calls = calls.map(|(index, call)| call_item(context, index, call));
    answer.in_order(items, calls.collect())
}

fn call_item(context: Context<'_>, index: usize, call: &Call) -> Value {
    let (kind, prefix, member) = match call.is_custom {
        true => ("custom_tool_call", "ctc", "input"),
        false => ("function_call", "fc", "arguments"),
    };
    let mut item = json!({
        "type": kind,
        "id": format!("{prefix}_{}_{index}", context.number),
        "status": "completed",
        "name": call.name,
        member: call.arguments,
    });
    if let Some(id) = call.wire_id(context.number, index) {
        item["call_id"] = json!(id);
    }
    item
}

struct Events(Vec<Event>);

impl Events {
    fn push(&mut self, kind: &str, mut body: Value, stage: Stage) {
        body["type"] = json!(kind);
        body["sequence_number"] = json!(self.0.len());
        let text = format!("event: {kind}\ndata: {body}\n\n");
        self.0.push(Event { text, stage });
    }

    fn item(&mut self, index: usize, item: &Value) {
        let mut begin = item.clone();
        match item["type"].as_str() {
            Some("message") => begin["content"] = json!([]),
            Some("function_call") => begin["arguments"] = json!(""),
            Some("custom_tool_call") => begin["input"] = json!(""),
            _ => {
                begin["summary"] = json!([]);
                begin["encrypted_content"] = Value::Null;
            }
        }
        begin["status"] = json!("in_progress");
        let body = json!({"output_index": index, "item": begin});
        self.push("response.output_item.added", body, Stage::Frame);
        match item["type"].as_str() {
            Some("message") => self.content(index, item),
            Some("function_call") => {
                let location = json!({"output_index": index, "item_id": item["id"]});
                let name = "response.function_call_arguments";
                self.deltas(name, &location, "arguments", &item["arguments"]);
            }
            Some("custom_tool_call") => {
                let location = json!({"output_index": index, "item_id": item["id"]});
                let name = "response.custom_tool_call_input";
                self.deltas(name, &location, "input", &item["input"]);
            }
            _ => self.summary(index, item),
        }
        let body = json!({"output_index": index, "item": item});
        self.push("response.output_item.done", body, Stage::Frame);
    }

    fn summary(&mut self, index: usize, item: &Value) {
        let parts = item["summary"].as_array().map_or(&[][..], Vec::as_slice);
        for (number, part) in parts.iter().enumerate() {
            let location =
                json!({"output_index": index, "summary_index": number, "item_id": item["id"]});
            let with_part = |part: &Value| {
                let mut body = location.clone();
                body["part"] = part.clone();
                body
            };
            let event = "response.reasoning_summary_part";
            let begin = json!({"type": "summary_text", "text": ""});
            self.push(&format!("{event}.added"), with_part(&begin), Stage::Frame);
            let text = "response.reasoning_summary_text";
            self.deltas(text, &location, "text", &part["text"]);
            self.push(&format!("{event}.done"), with_part(part), Stage::Frame);
        }
    }

    fn content(&mut self, index: usize, item: &Value) {
        let parts = item["content"].as_array().map_or(&[][..], Vec::as_slice);
        for (number, part) in parts.iter().enumerate() {
            let location =
                json!({"output_index": index, "content_index": number, "item_id": item["id"]});
            let (event, member) = match part["type"].as_str() {
                Some("refusal") => ("response.refusal", "refusal"),
                _ => ("response.output_text", "text"),
            };
            let mut begin = part.clone();
            begin[member] = json!("");
            let with_part = |part: &Value| {
                let mut body = location.clone();
                body["part"] = part.clone();
                body
            };
            self.push(
                "response.content_part.added",
                with_part(&begin),
                Stage::Frame,
            );
            self.deltas(event, &location, member, &part[member]);
            let annotations = part["annotations"].as_array().into_iter().flatten();
            for (number, annotation) in annotations.enumerate() {
                let mut body = location.clone();
                body["annotation_index"] = json!(number);
                body["annotation"] = annotation.clone();
                let event = "response.output_text.annotation.added";
                self.push(event, body, Stage::Frame);
            }
            self.push("response.content_part.done", with_part(part), Stage::Frame);
        }
    }

    fn deltas(&mut self, event: &str, location: &Value, member: &str, text: &Value) {
        for piece in pieces(text.as_str().unwrap_or_default()) {
            let mut body = location.clone();
            body["delta"] = json!(piece);
            body["logprobs"] = json!([]);
            self.push(&format!("{event}.delta"), body, Stage::Delta);
        }
        let mut body = location.clone();
        body[member] = text.clone();
        body["logprobs"] = json!([]);
        self.push(&format!("{event}.done"), body, Stage::Frame);
    }
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
