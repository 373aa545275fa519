//! Calls and their answers in the words of those who run models.
//!
//! What models' providers send has members that nobody here knows, and more with each year, so these
//! are passed over.

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::domain::{Excerpt, elements, is_named, members};
use crate::http::request::members::{required_string, wrong};
use crate::service::tools::{Outcome, Tool};
use crate::web::ApiError;

/// More than any model asks for at once.
const CALLS_MAX: usize = 128;

/// Whose words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wire {
    OpenAi,
    Anthropic,
}

/// A call as it was asked for.
#[derive(Debug)]
pub(super) struct Asked<'a> {
    /// Its place in the list.
    pub(crate) place: usize,
    id: String,
    /// Which tool, or what to say of one that is none of ours.
    pub(crate) tool: Result<Tool, String>,
    /// JSON text, or nothing.
    pub(super) arguments: &'a str,
    /// As it came.
    pub(super) raw: &'a str,
}

/// What goes back.
#[derive(Debug, Serialize)]
pub(super) struct Answers {
    pub(super) messages: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) unknown: Option<Vec<Box<RawValue>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) warning: Option<&'static str>,
}

impl Wire {
    /// Whose words a body is in, and the list of calls in it.
    ///
    /// # Errors
    /// [`ApiError::InvalidParameter`] unless there is just one list.
    pub(crate) fn of<'a>(
        tool_calls: Option<&'a str>,
        tool_use: Option<&'a str>,
        content: Option<&'a str>,
    ) -> Result<(Self, List<'a>), ApiError> {
        let list = |name, json, is_mixed| List {
            name,
            json,
            is_mixed,
        };
        match (tool_calls, tool_use, content) {
            (Some(json), None, None) => Ok((Self::OpenAi, list("tool_calls", json, false))),
            (None, Some(json), None) => Ok((Self::Anthropic, list("tool_use", json, false))),
            (None, None, Some(json)) => Ok((Self::Anthropic, list("content", json, true))),
            _ => Err(ApiError::InvalidParameter(
                "one of `tool_calls`, `tool_use` and `content` is wanted".into(),
            )),
        }
    }

    /// The messages that answer these calls.
    pub(super) fn messages(self, asked: &[Asked<'_>], outcomes: &[Outcome]) -> Value {
        let answers = asked.iter().zip(outcomes);
        match self {
            Self::OpenAi => answers
                .map(|(asked, outcome)| {
                    let content = outcome.to_json();
                    json!({"role": "tool", "tool_call_id": asked.id, "content": content})
                })
                .collect(),
            Self::Anthropic if asked.is_empty() => json!([]),
            Self::Anthropic => {
                let blocks: Vec<_> = answers
                    .map(|(asked, outcome)| block(asked, outcome))
                    .collect();
                json!([{"role": "user", "content": blocks}])
            }
        }
    }
}

/// A list of calls in a body.
#[derive(Debug, Clone, Copy)]
pub(super) struct List<'a> {
    name: &'static str,
    json: &'a str,
    /// Whether other things may be among the calls.
    is_mixed: bool,
}

fn block(asked: &Asked<'_>, outcome: &Outcome) -> Value {
    let id = &asked.id;
    match outcome {
        Outcome::Result(result) => {
            json!({"type": "tool_result", "tool_use_id": id, "content": result.to_string()})
        }
        Outcome::Mistake(text) => {
            json!({"type": "tool_result", "tool_use_id": id, "content": text, "is_error": true})
        }
    }
}

/// The calls of a list, in order.
///
/// # Errors
/// [`ApiError::InvalidParameter`] when it is no list, has something else in it, or too much.
pub(super) fn read_calls<'a>(wire: Wire, list: List<'a>) -> Result<Vec<Asked<'a>>, ApiError> {
    if !list.json.starts_with('[') {
        return Err(wrong(list.name, "a list"));
    }
    let mut calls = Vec::new();
    for element in elements(list.json) {
        let place = calls.len();
        let call = match wire {
            Wire::OpenAi => Some(read_tool_call(place, element)?),
            Wire::Anthropic => read_tool_use(place, element, list)?,
        };
        calls.extend(call);
        if calls.len() > CALLS_MAX {
            return Err(wrong(list.name, &format!("at most {CALLS_MAX} calls")));
        }
    }
    Ok(calls)
}

/// `{"id","type":"function","function":{"name","arguments"}}`, or a call of a tool of another type,
/// which is none of ours.
fn read_tool_call(place: usize, raw: &str) -> Result<Asked<'_>, ApiError> {
    let malformed = || wrong("tool_calls", "a list of calls with `id` and `function`");
    if !raw.starts_with('{') {
        return Err(malformed());
    }
    let [id, function] = some_members(raw, ["id", "function"]);
    let id = required_string("id", id)?;
    let [kind] = some_members(raw, ["type"]);
    let [name, arguments] = match function {
        Some(function) if function.starts_with('{') => {
            some_members(function, ["name", "arguments"])
        }
        None if kind.is_some_and(|kind| kind != r#""function""#) => [kind, None],
        _ => return Err(malformed()),
    };
    let name = required_string("name", name)?;
    Ok(Asked {
        place,
        id,
        tool: which(&name),
        arguments: arguments.unwrap_or_default(),
        raw,
    })
}

/// `{"type":"tool_use","id","name","input"}`.
fn read_tool_use<'a>(
    place: usize,
    raw: &'a str,
    list: List<'_>,
) -> Result<Option<Asked<'a>>, ApiError> {
    let is_object = raw.starts_with('{');
    let [kind, id, name, input] = if is_object {
        some_members(raw, ["type", "id", "name", "input"])
    } else {
        [None; 4]
    };
    if kind != Some(r#""tool_use""#) {
        return if list.is_mixed && is_object {
            Ok(None)
        } else {
            Err(wrong(list.name, "a list of blocks of the type tool_use"))
        };
    }
    let name = required_string("name", name)?;
    Ok(Some(Asked {
        place,
        id: required_string("id", id)?,
        tool: which(&name),
        arguments: input.unwrap_or_default(),
        raw,
    }))
}

/// The values of some members, of one given twice the last.
fn some_members<'a, const N: usize>(object: &'a str, names: [&str; N]) -> [Option<&'a str>; N] {
    let mut values = [None; N];
    for (key, value) in members(object) {
        if let Some(place) = names.iter().position(|name| is_named(key, name)) {
            values[place] = Some(value);
        }
    }
    values
}

/// The tool of a name. Models invent some, and are told which there are.
fn which(name: &str) -> Result<Tool, String> {
    name.parse().map_err(|_| {
        let tools = Tool::ALL.map(Tool::as_str).join(", ");
        let name = Excerpt(name);
        format!("there is no tool {name}; the tools are {tools}")
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::domain::Json;

    proptest! {
        #[test]
        fn no_list_makes_the_reader_fail_in_another_way_than_by_its_table(
            text in "[{}\\[\\]\":,a-z0-9_. -]{0,40}",
            id in any::<String>(),
            name in any::<String>(),
        ) {
            let call = json!({"id": id, "type": "tool_use", "name": name, "function": {"name": name}});
            for list in [text.clone(), format!("[{text}]"), format!("[{{{text}}}]"), format!("[{call}]")] {
                let Ok(list) = Json::parse(&list) else {
                    continue;
                };
                let list = Some(list.as_str());
                for (calls, uses, content) in [(list, None, None), (None, list, None), (None, None, list)] {
                    let (wire, list) = Wire::of(calls, uses, content).unwrap();
                    match read_calls(wire, list) {
                        Ok(calls) => {
                            let outcomes = vec![Outcome::Mistake(String::new()); calls.len()];
                            prop_assert!(wire.messages(&calls, &outcomes).is_array());
                        }
                        Err(error) => prop_assert_eq!(error.row().0.as_u16(), 400),
                    }
                }
            }
        }
    }
}
