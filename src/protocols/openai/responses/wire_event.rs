//! Events of a turn as the wire has them.

use serde_json::{Value, json};

use super::object;
use crate::domain::{ResponseId, Status};
use crate::protocols::openai::OpenAiError;
use crate::service::responses::{StreamItem, TextKind, TurnEvent, TurnRequest};

/// An event of OpenAI's Responses API.
pub(super) struct WireEvent {
    /// Its `type`.
    pub(super) kind: &'static str,
    /// A JSON object in one line.
    pub(super) data: String,
}

impl WireEvent {
    /// The event of that number.
    pub(super) fn of(
        number: u64,
        item: &StreamItem,
        id: &ResponseId,
        request: &TurnRequest,
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
                    // no event has the name of a response that was cancelled
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

fn running(id: &ResponseId, request: &TurnRequest) -> (&'static str, String) {
    let response = object::of_running(id, request, false);
    ("response.in_progress", format!(r#""response":{response}"#))
}

/// The type of an event, and its members.
fn of_event(event: &TurnEvent, id: &ResponseId, request: &TurnRequest) -> (&'static str, String) {
    match event {
        TurnEvent::Resumed => running(id, request),
        TurnEvent::ItemAdded { index, item } => (
            "response.output_item.added",
            format!(r#""output_index":{index},"item":{}"#, item.as_str()),
        ),
        TurnEvent::PartAdded {
            index,
            id,
            part,
            kind,
        } => (
            "response.content_part.added",
            format!(r#"{},"part":{}"#, place(*index, id, *part), kind.part("")),
        ),
        TurnEvent::TextDelta {
            index,
            id,
            part,
            kind,
            delta,
        } => {
            let (place, delta) = (place(*index, id, *part), quoted(delta));
            match kind {
                TextKind::Text => (
                    "response.output_text.delta",
                    format!(r#"{place},"delta":{delta},"logprobs":[]"#),
                ),
                TextKind::Refusal => (
                    "response.refusal.delta",
                    format!(r#"{place},"delta":{delta}"#),
                ),
            }
        }
        TurnEvent::TextDone {
            index,
            id,
            part,
            kind,
            text,
        } => {
            let (place, text) = (place(*index, id, *part), quoted(text));
            match kind {
                TextKind::Text => (
                    "response.output_text.done",
                    format!(r#"{place},"text":{text},"logprobs":[]"#),
                ),
                TextKind::Refusal => (
                    "response.refusal.done",
                    format!(r#"{place},"refusal":{text}"#),
                ),
            }
        }
        TurnEvent::PartDone {
            index,
            id,
            part,
            json,
        } => (
            "response.content_part.done",
            format!(r#"{},"part":{}"#, place(*index, id, *part), json.as_str()),
        ),
        TurnEvent::ArgumentsDelta { index, id, delta } => (
            "response.function_call_arguments.delta",
            format!(r#"{},"delta":{}"#, item_place(*index, id), quoted(delta)),
        ),
        TurnEvent::ArgumentsDone {
            index,
            id,
            name,
            arguments,
        } => (
            "response.function_call_arguments.done",
            format!(
                r#"{},"name":{},"arguments":{}"#,
                item_place(*index, id),
                quoted(name),
                quoted(arguments)
            ),
        ),
        TurnEvent::ItemDone { index, item } => (
            "response.output_item.done",
            format!(r#""output_index":{index},"item":{}"#, item.as_str()),
        ),
    }
}

fn item_place(index: u64, id: &str) -> String {
    format!(r#""item_id":{},"output_index":{index}"#, quoted(id))
}

fn place(index: u64, id: &str, part: usize) -> String {
    format!(r#"{},"content_index":{part}"#, item_place(index, id))
}

fn quoted(text: &str) -> Value {
    json!(text)
}
