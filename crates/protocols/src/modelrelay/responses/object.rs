//! Parts of answers as the wire has them.

use std::collections::HashSet;

use serde::Deserialize;
use serde_json::{Value, json};

use super::body::Echo;
use threadkeep_domain::{Incomplete, Json, Outcome, Status, Usage, elements, member};
use threadkeep_responses::EndedTurn;
use threadkeep_service::tools::StatelessTool;

/// The type of the items of generated images.
const IMAGE_CALL: &str = "image_generation_call";

/// A call of a function, as an item has it.
#[derive(Deserialize)]
pub(super) struct CallItem {
    #[serde(rename = "type")]
    kind: String,
    call_id: String,
    /// None of a tool with a type of its own.
    name: Option<String>,
    arguments: String,
    output: Option<String>,
    error: Option<String>,
    code: Option<String>,
    /// An image in base64.
    #[serde(rename = "result")]
    image: Option<String>,
}

impl CallItem {
    /// The call of an item.
    pub(super) fn of(item: &Json) -> Option<Self> {
        serde_json::from_str(item.as_str()).ok()
    }

    /// Whether the client has to run it.
    pub(super) fn is_for_client(&self) -> bool {
        self.kind == "function_call"
    }

    /// The result, if the server has run it.
    pub(super) fn result(&self) -> Option<Value> {
        if !matches!(self.kind.as_str(), "mcp_call" | IMAGE_CALL) {
            return None;
        }
        let mut result = match (&self.error, &self.output) {
            (Some(error), _) => match &self.code {
                Some(code) => json!({"error": error, "code": code}),
                None => json!({ "error": error }),
            },
            (None, Some(output)) => serde_json::from_str(output).unwrap_or_else(|_| json!(output)),
            (None, None) => Value::Null,
        };
        if let Some(image) = &self.image
            && let Some(data) = result.pointer_mut("/data/0")
        {
            data["b64_json"] = image.as_str().into();
        }
        Some(result)
    }

    fn name<'a>(&'a self, echo: &'a Echo) -> &'a str {
        let name = self.name.as_deref();
        echo.name_here(name.unwrap_or(StatelessTool::ImageGeneration.as_str()))
    }

    /// It as the wire has it.
    pub(super) fn to_json(&self, echo: &Echo) -> Value {
        json!({
            "id": self.call_id,
            "type": "function",
            "function": {"name": self.name(echo), "arguments": self.arguments},
        })
    }

    /// It as a part of a stream, at that place among the calls for the client.
    pub(super) fn to_delta(&self, echo: &Echo, index: usize, arguments: &str) -> Value {
        json!({
            "index": index,
            "id": self.call_id,
            "type": "function",
            "function": {"name": self.name(echo), "arguments": arguments},
        })
    }

    pub(super) fn arguments(&self) -> &str {
        &self.arguments
    }
}

/// A turn that has ended with an answer.
pub(super) fn of_ended(ended: &EndedTurn) -> String {
    let echo = Echo::of(&ended.request);
    let outcome = &ended.outcome;
    let text: String = outcome.output.iter().filter_map(text_of_message).collect();
    let content = json!([{"type": "text", "text": text}]);
    let mut message = json!({"type": "message", "role": "assistant", "content": content});
    let calls = calls_for_client(outcome, &echo);
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    let mut answer = json!({
        "id": ended.id.to_string(),
        "model": ended.request.model,
        "output": [message],
        "usage": of_usage(&outcome.usage),
        "stop_reason": stop_reason(outcome),
    });
    let citations = citations(outcome);
    if !citations.is_empty() {
        answer["citations"] = citations.into();
    }
    answer.to_string()
}

/// The pages that searches of a turn have found, each once.
fn citations(outcome: &Outcome) -> Vec<Value> {
    let searches = outcome.output.iter().filter_map(CallItem::of);
    let name = StatelessTool::WebSearch.as_str();
    let searches = searches.filter(|call| call.name.as_deref() == Some(name));
    let mut known = HashSet::new();
    let mut citations = Vec::new();
    for result in searches.filter_map(|call| call.result()) {
        let pages = result["results"].as_array();
        for page in pages.into_iter().flatten() {
            if known.insert(page["url"].to_string()) {
                citations.push(json!({"title": page["title"], "url": page["url"]}));
            }
        }
    }
    citations
}

/// The calls that the client has to run.
pub(super) fn calls_for_client(outcome: &Outcome, echo: &Echo) -> Vec<Value> {
    let calls = outcome.output.iter().filter_map(CallItem::of);
    let calls = calls.filter(CallItem::is_for_client);
    calls.map(|call| call.to_json(echo)).collect()
}

/// The text of a message of the model; none of another item.
pub(super) fn text_of_message(item: &Json) -> Option<String> {
    let item = item.as_str();
    if member(item, "type") != Some(r#""message""#) {
        return None;
    }
    let parts = elements(member(item, "content").unwrap_or("[]"));
    let texts = parts.filter_map(|part| {
        let text = member(part, "text").or_else(|| member(part, "refusal"))?;
        serde_json::from_str::<String>(text).ok()
    });
    Some(texts.collect())
}

pub(super) fn of_usage(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens(),
    })
}

/// Why a turn has ended, unless it has failed.
pub(super) fn stop_reason(outcome: &Outcome) -> &'static str {
    let is_call = |item: &Json| CallItem::of(item).is_some_and(|call| call.is_for_client());
    match outcome.status {
        Status::Completed if outcome.output.iter().any(is_call) => "tool_calls",
        Status::Completed => "end_turn",
        Status::Incomplete(Incomplete::MaxOutputTokens) => "max_tokens",
        Status::Incomplete(Incomplete::ContentFilter) => "content_filter",
        Status::Incomplete(Incomplete::TimeLimit) => "time_limit",
        Status::Incomplete(Incomplete::MaxToolCalls) | Status::Cancelled | Status::Failed(_) => {
            "incomplete"
        }
    }
}
