//! Parses the tool calls in model messages. Ignores unknown members, because providers keep adding new members.

use serde::Deserialize;
use serde::de::Error as _;
use serde_json::{Value, json};

use crate::answer::ApiResult;
use crate::request::{BodyFault, RawJson, invalid, read_value};
use threadkeep_domain::{Excerpt, elements};
use threadkeep_service::tools::{Outcome, Tool};
use threadkeep_web::ApiError;

/// Maximum number of calls in a request. Models make fewer calls per message.
const CALLS_MAX: usize = 128;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Provider {
    OpenAi,
    Anthropic,
}

#[derive(Debug)]
pub(super) struct RequestedCall<'a> {
    pub(crate) index: usize,
    id: String,
    /// The tool, or the error message for an unknown tool.
    pub(crate) tool: Result<Tool, String>,
    /// JSON text, which may be empty.
    pub(super) arguments: &'a str,
    pub(super) raw: &'a str,
}

impl Provider {
    pub(crate) fn of<'a>(
        tool_calls: Option<RawJson<'a>>,
        tool_use: Option<RawJson<'a>>,
        content: Option<RawJson<'a>>,
    ) -> ApiResult<(Self, List<'a>)> {
        let list = |name, RawJson(json), allows_other_blocks| List {
            name,
            json,
            allows_other_blocks,
        };
        match (tool_calls, tool_use, content) {
            (Some(json), None, None) => Ok((Self::OpenAi, list("tool_calls", json, false))),
            (None, Some(json), None) => Ok((Self::Anthropic, list("tool_use", json, false))),
            (None, None, Some(json)) => Ok((Self::Anthropic, list("content", json, true))),
            _ => Err(invalid(
                "Give one of `tool_calls`, `tool_use` and `content`",
            )),
        }
    }

    pub(super) fn messages(self, calls: &[RequestedCall<'_>], outcomes: &[Outcome]) -> Value {
        let answers = calls.iter().zip(outcomes);
        match self {
            Self::OpenAi => answers
                .map(|(call, outcome)| {
                    let content = outcome.to_json();
                    json!({"role": "tool", "tool_call_id": call.id, "content": content})
                })
                .collect(),
            Self::Anthropic if calls.is_empty() => json!([]),
            Self::Anthropic => {
                let blocks: Vec<_> = answers
                    .map(|(call, outcome)| block(call, outcome))
                    .collect();
                json!([{"role": "user", "content": blocks}])
            }
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct List<'a> {
    name: &'static str,
    json: &'a str,
    /// True if the list may contain elements that are not tool calls.
    allows_other_blocks: bool,
}

fn block(call: &RequestedCall<'_>, outcome: &Outcome) -> Value {
    let id = &call.id;
    match outcome {
        Outcome::Result(result) => {
            json!({"type": "tool_result", "tool_use_id": id, "content": result.to_string()})
        }
        Outcome::Mistake(text) => {
            json!({"type": "tool_result", "tool_use_id": id, "content": text, "is_error": true})
        }
    }
}

pub(super) fn read_calls<'a>(
    provider: Provider,
    list: List<'a>,
) -> ApiResult<Vec<RequestedCall<'a>>> {
    let fault = |fault: BodyFault| ApiError::from(fault.in_member(list.name));
    if !list.json.starts_with('[') {
        return Err(fault(BodyFault::unwanted("a list")));
    }
    let mut calls = Vec::new();
    for (position, element) in elements(list.json).enumerate() {
        let index = calls.len();
        let call = match provider {
            Provider::OpenAi => read_tool_call(index, element).map(Some),
            Provider::Anthropic => read_tool_use(index, element, list.allows_other_blocks),
        };
        calls.extend(call.map_err(|error| fault(error.in_element(position)))?);
        if calls.len() > CALLS_MAX {
            let wanted = format!("a list of at most {CALLS_MAX} calls");
            return Err(fault(BodyFault::unwanted(wanted)));
        }
    }
    Ok(calls)
}

/// A call in an OpenAI message. A call to a tool of any type other than `function` counts as a call to an unknown tool.
#[derive(Deserialize)]
struct ToolCall<'a> {
    id: String,
    #[serde(borrow)]
    r#type: Option<RawJson<'a>>,
    function: Option<Function<'a>>,
}

#[derive(Deserialize)]
struct Function<'a> {
    name: String,
    #[serde(borrow)]
    arguments: Option<RawJson<'a>>,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(borrow)]
    r#type: Option<RawJson<'a>>,
}

#[derive(Deserialize)]
struct ToolUse<'a> {
    id: String,
    name: String,
    #[serde(borrow)]
    input: Option<RawJson<'a>>,
}

fn read_tool_call(index: usize, raw: &str) -> Result<RequestedCall<'_>, BodyFault> {
    let call: ToolCall<'_> = read_value(raw)?;
    let (name, arguments) = match (call.function, call.r#type) {
        (Some(function), _) => (function.name, function.arguments),
        (None, Some(RawJson(kind))) if kind != r#""function""# => (read_value(kind)?, None),
        (None, _) => return Err(BodyFault::missing_field("function")),
    };
    Ok(RequestedCall::new(index, call.id, &name, arguments, raw))
}

fn read_tool_use(
    index: usize,
    raw: &str,
    allows_other_blocks: bool,
) -> Result<Option<RequestedCall<'_>>, BodyFault> {
    let Block { r#type: kind } = read_value(raw)?;
    if kind != Some(RawJson(r#""tool_use""#)) {
        let unexpected = || BodyFault::unwanted("a block of the type tool_use");
        return if allows_other_blocks {
            Ok(None)
        } else {
            Err(unexpected())
        };
    }
    let block: ToolUse<'_> = read_value(raw)?;
    let call = RequestedCall::new(index, block.id, &block.name, block.input, raw);
    Ok(Some(call))
}

impl<'a> RequestedCall<'a> {
    fn new(
        index: usize,
        id: String,
        name: &str,
        arguments: Option<RawJson<'a>>,
        raw: &'a str,
    ) -> Self {
        Self {
            index,
            id,
            tool: find_tool(name),
            arguments: arguments.map_or("", |RawJson(json)| json),
            raw,
        }
    }
}

/// Returns the tool with this name. The error lists the known tools, because models sometimes invent tool names.
fn find_tool(name: &str) -> Result<Tool, String> {
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
    use threadkeep_domain::Json;

    proptest! {
        #[test]
        fn every_list_is_parsed_or_fails_with_status_400(
            text in "[{}\\[\\]\":,a-z0-9_. -]{0,40}",
            id in any::<String>(),
            name in any::<String>(),
        ) {
            let call = json!({"id": id, "type": "tool_use", "name": name, "function": {"name": name}});
            for list in [text.clone(), format!("[{text}]"), format!("[{{{text}}}]"), format!("[{call}]")] {
                let Ok(list) = Json::parse(&list) else {
                    continue;
                };
                let list = Some(RawJson(list.as_str()));
                for (calls, uses, content) in [(list, None, None), (None, list, None), (None, None, list)] {
                    let (provider, list) = Provider::of(calls, uses, content).unwrap();
                    match read_calls(provider, list) {
                        Ok(calls) => {
                            let outcomes = vec![Outcome::Mistake(String::new()); calls.len()];
                            prop_assert!(provider.messages(&calls, &outcomes).is_array());
                        }
                        Err(error) => prop_assert_eq!(error.problem().status, 400),
                    }
                }
            }
        }
    }
}
