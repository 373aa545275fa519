use std::ops::ControlFlow;

use super::answer::{finish_of, texts, usage};
use super::calls::{Calls, id_of, name_of, tool_of};
use super::logprobs::Logprobs;
use super::reasoning::{self, Field};
use crate::client::Failure;
use crate::codec::{EventReader, parse_event};
use crate::draft::Draft;
use crate::json::{escaped, escaped_member, text_member};
use threadkeep_domain::{CallForm, Json, Usage, given, member, member_elements, quoted};
use threadkeep_responses::{Finish, ModelAnswer, Piece, TextKind};

#[derive(Debug)]
pub(super) struct ChatStream {
    draft: Draft,
    message: Option<usize>,
    reasoning: Option<usize>,
    field: Option<Field>,
    logprobs: Logprobs,
    calls: Calls,
    /// The call in the older field `function_call`.
    older_call: Option<usize>,
    /// Set by the last chunk of the choice. A stream that ends without a finish reason was cut off.
    finish: Option<Finish>,
    usage: Usage,
}

impl ChatStream {
    pub(super) fn new(max_bytes: u64) -> Self {
        Self {
            draft: Draft::new(max_bytes),
            message: None,
            reasoning: None,
            field: None,
            logprobs: Logprobs::default(),
            calls: Calls::default(),
            older_call: None,
            finish: None,
            usage: Usage::default(),
        }
    }
}

impl EventReader for ChatStream {
    fn event(&mut self, name: Option<&str>, data: &str) -> Result<ControlFlow<()>, Failure> {
        if data.trim() == "[DONE]" {
            return Ok(ControlFlow::Break(()));
        }
        let chunk = parse_event(data)?;
        let chunk = chunk.as_str();
        if let Some(error) = given(chunk, "error") {
            return Err(Failure::of_error(error));
        }
        if name == Some("error") {
            return Err(Failure::of_error(chunk));
        }
        if member(chunk, "usage").is_some_and(|usage| usage.starts_with('{')) {
            self.usage = usage(chunk);
        }
        // ignores further choices, which were not requested
        let mut choices = member_elements(chunk, "choices");
        let first = choices.find(|choice| matches!(member(choice, "index"), None | Some("0")));
        if let Some(choice) = first {
            self.delta(member(choice, "delta").unwrap_or_default())?;
            self.draft.count(self.logprobs.add(choice))?;
            if let Some(finish) = finish_of(choice)? {
                self.finish = Some(finish);
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn pieces(&mut self) -> &mut Vec<Piece> {
        self.draft.pieces()
    }

    fn end(mut self) -> Result<(ModelAnswer, Vec<Piece>), Failure> {
        let finish = self.finish.ok_or_else(Failure::malformed)?;
        self.end_reasoning()?;
        let (mut answer, pieces) = self.draft.end(finish, self.usage)?;
        self.logprobs.put_into(&mut answer.parts);
        Ok((answer, pieces))
    }
}

impl ChatStream {
    fn delta(&mut self, delta: &str) -> Result<(), Failure> {
        self.reason(delta)?;
        for text in texts(delta) {
            let part = self.message()?;
            let kind_and_index = (TextKind::Text, None);
            self.draft.text(part, kind_and_index, text)?;
        }
        if let Some(refusal) = escaped_member(delta, "refusal") {
            let part = self.message()?;
            let kind_and_index = (TextKind::Refusal, None);
            self.draft.text(part, kind_and_index, refusal)?;
        }
        for call in member_elements(delta, "tool_calls") {
            let (form, tool) = tool_of(call).unwrap_or_default();
            let part = match self.calls.part_of(call) {
                Some(part) => part,
                None => {
                    self.end_reasoning()?;
                    self.draft.count(Calls::bytes_of(call))?;
                    let part = self.draft.add_call(form)?;
                    self.calls.begin(part, call);
                    part
                }
            };
            if let Some(name) = name_of(call) {
                self.draft.name(part, id_of(call), name)?;
            }
            match form {
                CallForm::Function => self.arguments(part, tool)?,
                CallForm::Custom => {
                    let input = escaped_member(tool, "input").unwrap_or_default();
                    self.draft.arguments(part, input)?;
                }
            }
        }
        match member(delta, "function_call") {
            Some(function) if function.starts_with('{') && self.calls.is_empty() => {
                self.older_call(function)
            }
            _ => Ok(()),
        }
    }

    /// Adds reasoning only from the field that the stream used first, because servers that send both fields repeat the
    /// same text in each.
    fn reason(&mut self, delta: &str) -> Result<(), Failure> {
        let found = self.field.map_or_else(
            || Field::find(delta),
            |field| Some((field, field.read(delta)?)),
        );
        let Some((field, text)) = found else {
            return Ok(());
        };
        self.field = Some(field);
        let part = match self.reasoning {
            Some(part) => part,
            None => {
                let begun = reasoning::item(field, "");
                *self.reasoning.insert(self.draft.begin_item(begun)?)
            }
        };
        let kind_and_index = (TextKind::Reasoning, Some(0));
        self.draft.text(part, kind_and_index, text)
    }

    fn end_reasoning(&mut self) -> Result<(), Failure> {
        match (self.reasoning.take(), self.field) {
            (Some(part), Some(field)) => {
                let item = reasoning::item(field, self.draft.text_of(part));
                self.draft.end_item(part, item)
            }
            _ => Ok(()),
        }
    }

    fn message(&mut self) -> Result<usize, Failure> {
        if let Some(part) = self.message {
            return Ok(part);
        }
        self.end_reasoning()?;
        let part = self.draft.begin_message(Json::from_compact("[]"))?;
        Ok(*self.message.insert(part))
    }

    /// Adds arguments. Some servers send them as an object instead of a string.
    fn arguments(&mut self, part: usize, function: &str) -> Result<(), Failure> {
        match member(function, "arguments") {
            None | Some("null") => Ok(()),
            Some(arguments) => match escaped(arguments) {
                Some(text) => self.draft.arguments(part, text),
                None => {
                    let text = quoted(arguments);
                    self.draft
                        .arguments(part, escaped(&text).unwrap_or_default())
                }
            },
        }
    }

    fn older_call(&mut self, function: &str) -> Result<(), Failure> {
        let part = match self.older_call {
            Some(part) => part,
            None => *self
                .older_call
                .insert(self.draft.add_call(CallForm::Function)?),
        };
        if let Some(name) = text_member(function, "name") {
            self.draft.name(part, None, name.into())?;
        }
        self.arguments(part, function)
    }
}

#[cfg(test)]
mod tests;
