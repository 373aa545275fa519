//! Renders the parts of answers.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::{Value, json};

use super::body::Echo;
use threadkeep_domain::{
    Incomplete, Item, ItemCall, ItemKind, Json, Outcome, Status, Usage, member, member_elements,
    member_text, text_of,
};
use threadkeep_responses::EndedResponse;
use threadkeep_service::tools::StatelessTool;

pub(super) struct Call<'a> {
    call: ItemCall<'a>,
    /// Base64.
    image: Option<Cow<'a, str>>,
}

impl<'a> Call<'a> {
    pub(super) fn of(item: &'a Json) -> Option<Self> {
        match Item::read(item.as_str())? {
            Item::Call(call) => Some(Self {
                call,
                image: member_text(item.as_str(), "result"),
            }),
            _ => None,
        }
    }

    /// Returns whether the client must run the call.
    pub(super) fn is_for_client(&self) -> bool {
        self.call.result.is_none()
    }

    /// Returns the result if the server has run the call.
    pub(super) fn result(&self) -> Option<Value> {
        let output = text_of(&self.call.result.as_ref()?.output).unwrap_or("null".into());
        let mut result = serde_json::from_str(&output).unwrap_or_else(|_| json!(output));
        if let Some(image) = &self.image
            && let Some(data) = result.pointer_mut("/data/0")
        {
            data["b64_json"] = image.as_ref().into();
        }
        Some(result)
    }

    pub(super) fn to_json(&self, echo: &Echo) -> Value {
        json!({
            "id": self.call.id,
            "type": "function",
            "function": {"name": echo.client_name(&self.call.name), "arguments": self.arguments()},
        })
    }

    /// Renders the call as a stream delta. `index` is the position among the calls that the client must run.
    pub(super) fn to_delta(&self, echo: &Echo, index: usize, arguments: &str) -> Value {
        json!({
            "index": index,
            "id": self.call.id,
            "type": "function",
            "function": {"name": echo.client_name(&self.call.name), "arguments": arguments},
        })
    }

    pub(super) fn arguments(&self) -> &str {
        &self.call.arguments
    }
}

pub(super) fn of_ended(ended: &EndedResponse) -> String {
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

/// Returns the pages that a response's searches found, without duplicates.
fn citations(outcome: &Outcome) -> Vec<Value> {
    let searches = outcome.output.iter().filter_map(Call::of);
    let name = StatelessTool::WebSearch.as_str();
    let searches = searches.filter(|call| call.call.name == name);
    let mut seen = HashSet::new();
    let mut citations = Vec::new();
    for result in searches.filter_map(|call| call.result()) {
        let pages = result["results"].as_array();
        for page in pages.into_iter().flatten() {
            if seen.insert(page["url"].to_string()) {
                citations.push(json!({"title": page["title"], "url": page["url"]}));
            }
        }
    }
    citations
}

/// Returns the calls that the client must run.
pub(super) fn calls_for_client(outcome: &Outcome, echo: &Echo) -> Vec<Value> {
    let calls = outcome.output.iter().filter_map(Call::of);
    let calls = calls.filter(Call::is_for_client);
    calls.map(|call| call.to_json(echo)).collect()
}

/// Returns the text of a message item, or `None` if the item is not a message.
pub(super) fn text_of_message(item: &Json) -> Option<String> {
    let item = item.as_str();
    if ItemKind::of(item) != Some(ItemKind::Message) {
        return None;
    }
    let texts = member_elements(item, "content").filter_map(|part| {
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

/// Returns the stop reason of a response that did not fail.
pub(super) fn stop_reason(outcome: &Outcome) -> &'static str {
    let is_call = |item: &Json| Call::of(item).is_some_and(|call| call.is_for_client());
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
