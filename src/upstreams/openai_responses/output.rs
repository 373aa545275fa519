//! The items of an answer.

use std::collections::HashMap;

use crate::domain::{Json, Usage};
use crate::service::responses::{Finish, ModelAnswer, Piece};
use crate::upstreams::client::Failure;
use crate::upstreams::draft::Draft;
use crate::upstreams::json::{elements, find, inside, inside_member, text};
use crate::upstreams::names::Names;

/// Reads items, whole or in deltas.
#[derive(Debug)]
pub(super) struct Output<'a> {
    names: &'a Names,
    draft: Draft,
    /// The parts of the items so far, by their index as JSON. A message has none before its first text.
    items: HashMap<String, Option<usize>>,
}

impl<'a> Output<'a> {
    pub(super) fn new(names: &'a Names, max_bytes: u64) -> Self {
        Self {
            names,
            draft: Draft::new(max_bytes),
            items: HashMap::new(),
        }
    }

    /// Begins an item, unless it has begun.
    pub(super) fn begin(
        &mut self,
        index: &str,
        item: &str,
        pieces: &mut Vec<Piece>,
    ) -> Result<(), Failure> {
        if self.items.contains_key(index) {
            return Ok(());
        }
        let part = match inside_member(item, "type") {
            Some("message") => None,
            Some("function_call") => Some(self.call(item, pieces)?),
            Some(_) => Some(self.draft.add_item(Json::empty_object())?),
            None => return Err(Failure::malformed()),
        };
        self.draft.count(index.len())?;
        self.items.insert(index.into(), part);
        Ok(())
    }

    fn call(&mut self, item: &str, pieces: &mut Vec<Piece>) -> Result<usize, Failure> {
        let member = |name| {
            find(item, name)
                .and_then(text)
                .filter(|text| !text.is_empty())
        };
        let name = member("name").ok_or_else(Failure::malformed)?;
        let name = self.names.original(&name).to_owned();
        let part = self.draft.add_call()?;
        self.draft
            .name(part, member("call_id").map(Into::into), name, pieces)?;
        Ok(part)
    }

    /// Adds to the text of a message.
    pub(super) fn text(
        &mut self,
        index: &str,
        delta: &str,
        pieces: &mut Vec<Piece>,
    ) -> Result<(), Failure> {
        if delta.is_empty() {
            return Ok(());
        }
        let part = self.message(index)?;
        self.draft.text(part, delta, pieces)
    }

    /// Adds to the refusal in a message.
    pub(super) fn refusal(
        &mut self,
        index: &str,
        delta: &str,
        pieces: &mut Vec<Piece>,
    ) -> Result<(), Failure> {
        if delta.is_empty() {
            return Ok(());
        }
        let part = self.message(index)?;
        self.draft.refusal(part, delta, pieces)
    }

    /// Adds to the arguments of a call.
    pub(super) fn arguments(
        &mut self,
        index: &str,
        delta: &str,
        pieces: &mut Vec<Piece>,
    ) -> Result<(), Failure> {
        let part = self.items.get(index).copied().flatten();
        let part = part.ok_or_else(Failure::malformed)?;
        self.draft.arguments(part, delta, pieces)
    }

    /// The part of a message that has text.
    fn message(&mut self, index: &str) -> Result<usize, Failure> {
        let part = self.items.get_mut(index).ok_or_else(Failure::malformed)?;
        match part {
            Some(part) => Ok(*part),
            None => Ok(*part.insert(self.draft.add_message()?)),
        }
    }

    /// Ends an item with its complete form. Text that its deltas left out follows in pieces.
    pub(super) fn end_item(
        &mut self,
        index: &str,
        item: &str,
        pieces: &mut Vec<Piece>,
    ) -> Result<(), Failure> {
        let kind = inside_member(item, "type").ok_or_else(Failure::malformed)?;
        self.begin(index, item, pieces)?;
        match kind {
            "message" => {
                let content = find(item, "content").unwrap_or_default();
                if has_text(content) {
                    let part = self.message(index)?;
                    self.draft.end_message(part, content, pieces)?;
                }
                Ok(())
            }
            "function_call" => {
                let arguments = find(item, "arguments").and_then(inside).unwrap_or_default();
                let part = self.items.get(index).copied().flatten();
                let part = part.ok_or_else(Failure::malformed)?;
                self.draft.end_arguments(part, arguments, pieces)
            }
            _ => {
                if let Some(Some(part)) = self.items.get(index) {
                    self.draft.count(item.len())?;
                    self.draft.set_item(*part, Json::from_compact(item));
                }
                Ok(())
            }
        }
    }

    /// Ends the answer that a response describes: all of its items, its reason and its tokens.
    pub(super) fn end(
        mut self,
        response: &str,
        pieces: &mut Vec<Piece>,
    ) -> Result<ModelAnswer, Failure> {
        let finish = finish(response)?;
        // servers that stream no items have them here
        let output = elements(find(response, "output").unwrap_or_default());
        for (index, item) in output.enumerate() {
            let index = index.to_string();
            if !self.items.contains_key(&index) {
                self.end_item(&index, item, pieces)?;
            }
        }
        let answer = self.draft.end(finish, usage(response), pieces);
        answer.ok_or_else(Failure::malformed)
    }
}

fn has_text(content: &str) -> bool {
    elements(content).any(|part| {
        inside_member(part, "text").is_some() || inside_member(part, "refusal").is_some()
    })
}

/// Why an answer ended, or that it failed.
fn finish(response: &str) -> Result<Finish, Failure> {
    let error = find(response, "error").filter(|error| *error != "null");
    match inside_member(response, "status") {
        Some("failed" | "cancelled") => Err(Failure::of_error(error.unwrap_or("null"))),
        _ if error.is_some() => Err(Failure::of_error(error.unwrap_or("null"))),
        Some("incomplete") => {
            let details = find(response, "incomplete_details").unwrap_or_default();
            Ok(match inside_member(details, "reason") {
                Some("content_filter") => Finish::ContentFilter,
                _ => Finish::MaxOutputTokens,
            })
        }
        Some("completed") | None => Ok(Finish::Done),
        // it still runs
        Some(_) => Err(Failure::malformed()),
    }
}

/// The tokens; numbers that are missing or of another type are 0.
fn usage(response: &str) -> Usage {
    let usage = find(response, "usage").unwrap_or_default();
    let count = |path: &[&str]| {
        let value = path.iter().try_fold(usage, |value, name| find(value, name));
        value.and_then(|value| value.parse().ok()).unwrap_or(0)
    };
    Usage {
        input_tokens: count(&["input_tokens"]),
        cached_tokens: count(&["input_tokens_details", "cached_tokens"]),
        output_tokens: count(&["output_tokens"]),
        reasoning_tokens: count(&["output_tokens_details", "reasoning_tokens"]),
    }
}
