use std::collections::HashMap;

use crate::answer;
use crate::client::Failure;
use crate::draft::Draft;
use crate::json::{escaped, escaped_member};
use crate::names::Names;
use threadkeep_domain::{CallForm, Json, Usage, given, member, member_elements, members};
use threadkeep_responses::{Finish, ModelAnswer, Piece, TextKind};

const OWN_MEMBERS: [&str; 5] = [
    r#""type""#,
    r#""id""#,
    r#""role""#,
    r#""status""#,
    r#""content""#,
];

#[derive(Debug)]
pub(super) struct Output<'a> {
    names: &'a Names,
    draft: Draft,
    /// Items by index. The index is JSON text.
    items: HashMap<String, Item>,
}

#[derive(Debug, Clone, Copy)]
struct Item {
    part: usize,
    has_ended: bool,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct TextRef<'a> {
    /// Index of the item, as JSON text.
    pub(super) index: &'a str,
    pub(super) kind: TextKind,
    /// Index in the content or the summary, as JSON text.
    pub(super) text_index: &'a str,
}

impl<'a> Output<'a> {
    pub(super) fn new(names: &'a Names, max_bytes: u64) -> Self {
        Self {
            names,
            draft: Draft::new(max_bytes),
            items: HashMap::new(),
        }
    }

    /// Begins an item, unless it has already begun.
    pub(super) fn begin(&mut self, index: &str, item: &str) -> Result<usize, Failure> {
        if let Some(begun) = self.items.get(index) {
            return Ok(begun.part);
        }
        let part = match escaped_member(item, "type") {
            Some("message") => self.draft.begin_message(message(item, "[]"))?,
            Some("function_call") => self.call(CallForm::Function, item)?,
            Some("custom_tool_call") => self.call(CallForm::Custom, item)?,
            Some(_) => self.draft.begin_item(Json::from_compact(item))?,
            None => return Err(Failure::malformed()),
        };
        self.draft.count(index.len())?;
        let has_ended = false;
        self.items.insert(index.into(), Item { part, has_ended });
        Ok(part)
    }

    fn call(&mut self, form: CallForm, item: &str) -> Result<usize, Failure> {
        self.draft.begin_call(form, item, "call_id", self.names)
    }

    pub(super) fn text(&mut self, text: TextRef<'_>, delta: &str) -> Result<(), Failure> {
        if delta.is_empty() {
            return Ok(());
        }
        let part = self.part(text.index)?;
        // servers may omit the index if there is only one text
        let text_index = text.text_index.parse().ok();
        self.draft.text(part, (text.kind, text_index), delta)
    }

    pub(super) fn annotate(&mut self, text: TextRef<'_>, annotation: &str) -> Result<(), Failure> {
        let part = self.part(text.index)?;
        let text_index = text.text_index.parse().unwrap_or(0);
        self.draft.annotate(part, text_index, annotation)
    }

    pub(super) fn arguments(&mut self, index: &str, delta: &str) -> Result<(), Failure> {
        let part = self.part(index)?;
        self.draft.arguments(part, delta)
    }

    fn part(&self, index: &str) -> Result<usize, Failure> {
        let item = self.items.get(index).ok_or_else(Failure::malformed)?;
        Ok(item.part)
    }

    /// Ends an item, given its complete form. Sends any text that the deltas did not contain.
    pub(super) fn end_item(&mut self, index: &str, item: &str) -> Result<(), Failure> {
        let kind = escaped_member(item, "type").ok_or_else(Failure::malformed)?;
        let part = self.begin(index, item)?;
        if let Some(begun) = self.items.get_mut(index) {
            begun.has_ended = true;
        }
        match kind {
            "message" => {
                let content = member(item, "content").filter(|content| content.starts_with('['));
                let whole = message(item, content.unwrap_or("[]"));
                self.draft.end_message(part, whole)
            }
            "function_call" => self.end_call(part, member(item, "arguments")),
            "custom_tool_call" => self.end_call(part, member(item, "input")),
            _ => self.draft.end_item(part, Json::from_compact(item)),
        }
    }

    fn end_call(&mut self, part: usize, arguments: Option<&str>) -> Result<(), Failure> {
        let arguments = arguments.and_then(escaped).unwrap_or_default();
        self.draft.end_arguments(part, arguments)
    }

    pub(super) fn pieces(&mut self) -> &mut Vec<Piece> {
        self.draft.pieces()
    }

    /// Ends the answer, given the final response object. Returns the answer and the remaining pieces.
    pub(super) fn end(mut self, response: &str) -> Result<(ModelAnswer, Vec<Piece>), Failure> {
        let finish = finish(response)?;
        // adds items that the server did not stream completely
        for (index, item) in member_elements(response, "output").enumerate() {
            let index = index.to_string();
            let has_ended = self.items.get(&index).is_some_and(|item| item.has_ended);
            if !has_ended {
                self.end_item(&index, item)?;
            }
        }
        self.draft.end(finish, usage(response))
    }
}

fn message(item: &str, content: &str) -> Json {
    let further =
        members(item).filter(|(name, value)| !OWN_MEMBERS.contains(name) && *value != "null");
    let further: String = further
        .map(|(name, value)| format!("{name}:{value},"))
        .collect();
    Json::from_compact(match further.is_empty() {
        true => content.to_owned(),
        false => format!(r#"{{{further}"content":{content}}}"#),
    })
}

fn finish(response: &str) -> Result<Finish, Failure> {
    let error = given(response, "error");
    match escaped_member(response, "status") {
        Some("failed" | "cancelled") => Err(Failure::of_error(error.unwrap_or("null"))),
        _ if error.is_some() => Err(Failure::of_error(error.unwrap_or("null"))),
        Some("incomplete") => {
            let details = member(response, "incomplete_details").unwrap_or_default();
            Ok(match escaped_member(details, "reason") {
                Some("content_filter") => Finish::ContentFilter,
                _ => Finish::MaxOutputTokens,
            })
        }
        Some("completed") | None => Ok(Finish::Done),
        // the response is not finished
        Some(_) => Err(Failure::malformed()),
    }
}

pub(super) fn usage(response: &str) -> Usage {
    answer::usage(response, "input_tokens", "output_tokens")
}
