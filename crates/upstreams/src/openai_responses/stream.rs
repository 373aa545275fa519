use std::ops::ControlFlow;

use super::output::{Output, TextRef};
use crate::client::Failure;
use crate::codec::{EventReader, kind_of_event, parse_event};
use crate::json::escaped;
use crate::names::Names;
use threadkeep_domain::{Json, given, member};
use threadkeep_responses::{ModelAnswer, Piece, TextKind};

#[derive(Debug)]
pub(super) struct ResponseStream<'a> {
    output: Output<'a>,
    /// Set by the last event. A stream that ends without this event was cut off.
    response: Option<Json>,
}

impl<'a> ResponseStream<'a> {
    pub(super) fn new(names: &'a Names, max_bytes: u64) -> Self {
        Self {
            output: Output::new(names, max_bytes),
            response: None,
        }
    }
}

impl EventReader for ResponseStream<'_> {
    fn event(&mut self, name: Option<&str>, data: &str) -> Result<ControlFlow<()>, Failure> {
        if data.trim() == "[DONE]" {
            return Ok(ControlFlow::Break(()));
        }
        let event = parse_event(data)?;
        let event = event.as_str();
        let index = member(event, "output_index").unwrap_or_default();
        let item = member(event, "item").unwrap_or_default();
        let delta = member(event, "delta").and_then(escaped).unwrap_or_default();
        let text_ref = |kind| {
            let list = match kind {
                TextKind::Summary => "summary_index",
                _ => "content_index",
            };
            let text_index = member(event, list).unwrap_or_default();
            TextRef {
                index,
                kind,
                text_index,
            }
        };
        let mut text = |kind| self.output.text(text_ref(kind), delta);
        match kind_of_event(name, event) {
            Some("response.output_item.added") => {
                self.output.begin(index, item)?;
            }
            Some("response.output_item.done") => self.output.end_item(index, item)?,
            Some("response.output_text.delta") => text(TextKind::Text)?,
            Some("response.refusal.delta") => text(TextKind::Refusal)?,
            Some("response.reasoning_text.delta") => text(TextKind::Reasoning)?,
            Some("response.reasoning_summary_text.delta") => text(TextKind::Summary)?,
            Some("response.output_text.annotation.added") => {
                let annotation = member(event, "annotation").ok_or_else(Failure::malformed)?;
                self.output.annotate(text_ref(TextKind::Text), annotation)?;
            }
            Some(
                "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta",
            ) => self.output.arguments(index, delta)?,
            Some("response.completed" | "response.incomplete" | "response.failed") => {
                let response = member(event, "response").ok_or_else(Failure::malformed)?;
                self.response = Some(Json::from_compact(response));
                return Ok(ControlFlow::Break(()));
            }
            Some("error") => {
                let error = given(event, "error");
                return Err(Failure::of_error(error.unwrap_or(event)));
            }
            // other events are checked only for errors, because an item or the response repeats their contents
            _ => {
                if let Some(error) = given(event, "error") {
                    return Err(Failure::of_error(error));
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn pieces(&mut self) -> &mut Vec<Piece> {
        self.output.pieces()
    }

    fn end(self) -> Result<(ModelAnswer, Vec<Piece>), Failure> {
        let response = self.response.ok_or_else(Failure::malformed)?;
        self.output.end(response.as_str())
    }
}

#[cfg(test)]
mod tests;
