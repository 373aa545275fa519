//! Renders the events of a response.

use super::object;
use crate::openai::OpenAiError;
use threadkeep_domain::{ResponseId, Status, quoted};
use threadkeep_responses::{
    CallEvent, CallKind, ResponseEvent, ResponseRequest, StreamItem, TextKind, TextRef,
};

/// An event of OpenAI's Responses API.
pub(super) struct WireEvent {
    pub(super) kind: &'static str,
    /// A JSON object in one line.
    pub(super) data: String,
}

impl WireEvent {
    pub(super) fn of(
        number: u64,
        item: &StreamItem,
        id: &ResponseId,
        request: &ResponseRequest,
    ) -> Self {
        let is_queued = request.is_background;
        let (kind, rest) = match item {
            StreamItem::Created => {
                let response = object::of_running(id, request, is_queued);
                ("response.created", format!(r#""response":{response}"#))
            }
            StreamItem::Running => running(id, request),
            StreamItem::Event(event) => of_event(event, id, request),
            StreamItem::Ended(ended) => {
                let kind = match ended.outcome.status {
                    Status::Completed => "response.completed",
                    // the API has no event for cancelled responses
                    Status::Incomplete(_) | Status::Cancelled => "response.incomplete",
                    Status::Failed(_) => "response.failed",
                };
                let response = object::of_ended(ended);
                (kind, format!(r#""response":{response}"#))
            }
            StreamItem::Failed(error, so_far) => {
                let error = OpenAiError::from(std::sync::Arc::clone(error));
                let (code, message) = error.code_and_message();
                let response = object::of_stopped(id, request, so_far, (code, &message));
                ("response.failed", format!(r#""response":{response}"#))
            }
        };
        Self {
            kind,
            data: format!(r#"{{"type":"{kind}","sequence_number":{number},{rest}}}"#),
        }
    }
}

fn running(id: &ResponseId, request: &ResponseRequest) -> (&'static str, String) {
    let response = object::of_running(id, request, false);
    ("response.in_progress", format!(r#""response":{response}"#))
}

/// Returns the type of an event, and its members.
fn of_event(
    event: &ResponseEvent,
    id: &ResponseId,
    request: &ResponseRequest,
) -> (&'static str, String) {
    match event {
        ResponseEvent::Resumed => running(id, request),
        ResponseEvent::ItemAdded { index, item } => (
            "response.output_item.added",
            format!(r#""output_index":{index},"item":{}"#, item.as_str()),
        ),
        ResponseEvent::PartAdded(at) => (
            names(at.kind).part_added,
            format!(r#"{},"part":{}"#, text_position(at), at.kind.part("")),
        ),
        ResponseEvent::TextDelta {
            text_ref: at,
            delta,
        } => {
            let (position, delta, logprobs) = (text_position(at), quoted(delta), logprobs(at.kind));
            let rest = format!(r#"{position},"delta":{delta}{logprobs}"#);
            (names(at.kind).delta, rest)
        }
        ResponseEvent::TextDone { text_ref: at, text } => {
            let (position, text, logprobs) = (text_position(at), quoted(text), logprobs(at.kind));
            let Names {
                done, text: name, ..
            } = names(at.kind);
            (done, format!(r#"{position},"{name}":{text}{logprobs}"#))
        }
        ResponseEvent::Annotation {
            index,
            id,
            part,
            number,
            json,
        } => {
            let (item, json) = (item_position(*index, id), json.as_str());
            let rest = format!(
                r#"{item},"content_index":{part},"annotation_index":{number},"annotation":{json}"#
            );
            ("response.output_text.annotation.added", rest)
        }
        ResponseEvent::PartDone { text_ref: at, json } => (
            names(at.kind).part_done,
            format!(r#"{},"part":{}"#, text_position(at), json.as_str()),
        ),
        ResponseEvent::ArgumentsDelta {
            index,
            id,
            call,
            delta,
        } => (
            match call {
                CallKind::Mcp => "response.mcp_call_arguments.delta",
                CallKind::Custom => "response.custom_tool_call_input.delta",
                _ => "response.function_call_arguments.delta",
            },
            format!(r#"{},"delta":{}"#, item_position(*index, id), quoted(delta)),
        ),
        ResponseEvent::ArgumentsDone {
            index,
            id,
            call,
            name,
            arguments,
        } => {
            let (position, arguments) = (item_position(*index, id), quoted(arguments));
            let name = quoted(name);
            let named = || format!(r#"{position},"name":{name},"arguments":{arguments}"#);
            match call {
                CallKind::Mcp => ("response.mcp_call_arguments.done", named()),
                CallKind::Custom => (
                    "response.custom_tool_call_input.done",
                    format!(r#"{position},"input":{arguments}"#),
                ),
                _ => ("response.function_call_arguments.done", named()),
            }
        }
        ResponseEvent::Call { index, id, event } => (
            match event {
                CallEvent::McpBegun => "response.mcp_call.in_progress",
                CallEvent::McpCompleted => "response.mcp_call.completed",
                CallEvent::McpFailed => "response.mcp_call.failed",
                CallEvent::SearchBegun => "response.web_search_call.in_progress",
                CallEvent::Searching => "response.web_search_call.searching",
                CallEvent::SearchCompleted => "response.web_search_call.completed",
                CallEvent::ImageBegun => "response.image_generation_call.in_progress",
                CallEvent::ImageGenerating => "response.image_generation_call.generating",
                CallEvent::ImageCompleted => "response.image_generation_call.completed",
            },
            item_position(*index, id),
        ),
        ResponseEvent::ItemDone { index, item, .. } => (
            "response.output_item.done",
            format!(r#""output_index":{index},"item":{}"#, item.as_str()),
        ),
    }
}

/// The names of the events for one kind of text.
struct Names {
    part_added: &'static str,
    delta: &'static str,
    done: &'static str,
    part_done: &'static str,
    /// The member of the `done` event that contains the text.
    text: &'static str,
}

const TEXT: Names = Names {
    part_added: "response.content_part.added",
    delta: "response.output_text.delta",
    done: "response.output_text.done",
    part_done: "response.content_part.done",
    text: "text",
};
const REFUSAL: Names = Names {
    delta: "response.refusal.delta",
    done: "response.refusal.done",
    text: "refusal",
    ..TEXT
};
const REASONING: Names = Names {
    delta: "response.reasoning_text.delta",
    done: "response.reasoning_text.done",
    ..TEXT
};
const SUMMARY: Names = Names {
    part_added: "response.reasoning_summary_part.added",
    delta: "response.reasoning_summary_text.delta",
    done: "response.reasoning_summary_text.done",
    part_done: "response.reasoning_summary_part.done",
    ..TEXT
};

fn names(kind: TextKind) -> &'static Names {
    match kind {
        TextKind::Text => &TEXT,
        TextKind::Refusal => &REFUSAL,
        TextKind::Reasoning => &REASONING,
        TextKind::Summary => &SUMMARY,
    }
}

/// Returns an empty `logprobs` member for answer text, and an empty string for all other kinds of text.
fn logprobs(kind: TextKind) -> &'static str {
    match kind {
        TextKind::Text => r#","logprobs":[]"#,
        _ => "",
    }
}

fn item_position(index: u64, id: &str) -> String {
    format!(r#""item_id":{},"output_index":{index}"#, quoted(id))
}

fn text_position(at: &TextRef) -> String {
    let list = match at.kind {
        TextKind::Summary => "summary_index",
        _ => "content_index",
    };
    let (item, part) = (item_position(at.index, &at.id), at.part);
    format!(r#"{item},"{list}":{part}"#)
}
