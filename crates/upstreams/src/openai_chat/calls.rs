use std::collections::HashMap;

use crate::json::{text, text_member};
use threadkeep_domain::{CallForm, Json, given, member};

/// The calls that a stream has begun so far.
///
/// OpenAI numbers calls by `index`, and sends the id and name once. Some servers omit the index, use the same index
/// for all calls, or omit the id. Some servers repeat the id or name in each delta.
#[derive(Debug, Default)]
pub(super) struct Calls {
    begun: Vec<StreamedCall>,
    /// The latest call with each index. The index is stored as JSON text.
    by_index: HashMap<String, usize>,
    by_id: HashMap<String, usize>,
}

#[derive(Debug)]
struct StreamedCall {
    part: usize,
    id: Option<String>,
    /// True if the first delta contained all arguments.
    is_whole: bool,
}

impl Calls {
    pub(super) fn is_empty(&self) -> bool {
        self.begun.is_empty()
    }

    /// Returns the part of the call that a delta continues, or `None` if the delta begins a new call.
    pub(super) fn part_of(&self, delta: &str) -> Option<usize> {
        let id = id_of(delta);
        let latest = match (index_of(delta), &id) {
            (Some(index), _) => self.by_index.get(index).copied(),
            (None, Some(id)) => self.by_id.get(id).copied(),
            (None, None) => self.begun.len().checked_sub(1),
        };
        let call = &self.begun[latest?];
        let has_name = name_of(delta).is_some();
        let continues = match (&call.id, id) {
            (Some(known_id), Some(id)) => *known_id == id,
            (None, Some(_)) => !has_name,
            (_, None) => !(has_name && call.is_whole),
        };
        continues.then_some(call.part)
    }

    /// Returns the number of bytes that are stored for a call with the index and id of `delta`.
    pub(super) fn bytes_of(delta: &str) -> usize {
        let index = index_of(delta).map_or(0, str::len);
        // the id is stored twice: in the call and as a map key
        index + 2 * member(delta, "id").map_or(0, str::len)
    }

    pub(super) fn begin(&mut self, part: usize, delta: &str) {
        let number = self.begun.len();
        if let Some(index) = index_of(delta) {
            self.by_index.insert(index.into(), number);
        }
        let id = id_of(delta);
        if let Some(id) = &id {
            self.by_id.insert(id.clone(), number);
        }
        let arguments =
            member(delta, "function").and_then(|function| member(function, "arguments"));
        let is_whole = arguments.is_some_and(|arguments| match text(arguments) {
            Some(text) => Json::parse_object(&text, 1).is_ok(),
            None => arguments.starts_with('{'),
        });
        self.begun.push(StreamedCall { part, id, is_whole });
    }
}

pub(super) fn id_of(delta: &str) -> Option<String> {
    text_member(delta, "id").map(Into::into)
}

pub(super) fn name_of(delta: &str) -> Option<String> {
    let (_, tool) = tool_of(delta)?;
    text_member(tool, "name").map(Into::into)
}

pub(super) fn tool_of(call: &str) -> Option<(CallForm, &str)> {
    let object = |name| member(call, name).filter(|tool| tool.starts_with('{'));
    match object("custom") {
        Some(tool) => Some((CallForm::Custom, tool)),
        None => Some((CallForm::Function, object("function")?)),
    }
}

fn index_of(delta: &str) -> Option<&str> {
    given(delta, "index")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(deltas: &[&str]) -> Vec<usize> {
        let mut calls = Calls::default();
        let part = |delta: &&str| {
            calls.part_of(delta).unwrap_or_else(|| {
                let part = calls.begun.len();
                calls.begin(part, delta);
                part
            })
        };
        deltas.iter().map(part).collect()
    }

    #[test]
    fn deltas_are_paired_by_index() {
        let deltas = [
            r#"{"index":0,"id":"a","function":{"name":"f","arguments":""}}"#,
            r#"{"index":0,"function":{"arguments":"{"}}"#,
            r#"{"index":1,"id":"b","function":{"name":"f","arguments":"{}"}}"#,
            r#"{"index":0,"id":"","function":{"name":"","arguments":"}"}}"#,
            r#"{"index":1,"id":null,"function":{"name":null,"arguments":""}}"#,
        ];

        assert_eq!(parts(&deltas), [0, 0, 1, 0, 1]);
    }

    #[test]
    fn calls_of_the_same_index_differ_by_id() {
        let deltas = [
            r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}"#,
            r#"{"index":0,"id":"b","function":{"name":"f","arguments":"{"}}"#,
            r#"{"index":0,"id":"b","function":{"name":"f","arguments":"}"}}"#,
        ];

        assert_eq!(parts(&deltas), [0, 1, 1]);
    }

    #[test]
    fn without_an_index_the_id_or_the_order_pairs_deltas() {
        let deltas = [
            r#"{"id":"a","function":{"name":"f","arguments":"{"}}"#,
            r#"{"function":{"arguments":"1"}}"#,
            r#"{"id":"b","function":{"name":"f"}}"#,
            r#"{"id":"a","function":{"name":"f","arguments":"}"}}"#,
            r#"{"function":{"arguments":"2"}}"#,
        ];

        assert_eq!(parts(&deltas), [0, 0, 1, 0, 1]);
    }

    #[test]
    fn complete_calls_without_an_id_are_separate_calls() {
        for index in ["", r#""index":0,"#] {
            let whole = format!(r#"{{{index}"function":{{"name":"f","arguments":"{{}}"}}}}"#);
            let object = format!(r#"{{{index}"function":{{"name":"f","arguments":{{}}}}}}"#);
            let begin = format!(r#"{{{index}"function":{{"name":"f","arguments":"{{"}}}}"#);
            let end = format!(r#"{{{index}"function":{{"name":"f","arguments":"}}"}}}}"#);

            assert_eq!(parts(&[&whole, &object, &begin, &end]), [0, 1, 2, 2]);
        }
    }

    #[test]
    fn a_late_id_belongs_to_the_existing_call() {
        let deltas = [
            r#"{"index":0,"function":{"name":"f"}}"#,
            r#"{"index":0,"id":"a","function":{"arguments":"{}"}}"#,
        ];

        assert_eq!(parts(&deltas), [0, 0]);
    }
}
