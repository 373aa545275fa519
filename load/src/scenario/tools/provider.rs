use serde_json::{Value, json};

use super::memory::Call;
use crate::answer::{Answer, Wrong, same};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Provider {
    OpenAi,
    Anthropic,
}

/// The expected result of a call; `None` for a mistaken call, because its error message is not checked.
pub(super) type Expected = Option<Value>;

impl Provider {
    pub(super) fn body(self, scope: &str, calls: &[Call]) -> String {
        let calls = calls.iter().enumerate();
        let body = match self {
            Self::OpenAi => {
                let call = |(number, call): (usize, &Call)| {
                    let arguments = call.arguments().to_string();
                    let function = json!({"name": call.tool(), "arguments": arguments});
                    json!({"id": id(number), "type": "function", "function": function})
                };
                json!({"scope": scope, "tool_calls": calls.map(call).collect::<Vec<_>>()})
            }
            Self::Anthropic => {
                let call = |(number, call): (usize, &Call)| {
                    let (name, input) = (call.tool(), call.arguments());
                    json!({"type": "tool_use", "id": id(number), "name": name, "input": input})
                };
                let mut content = vec![json!({"type": "text", "text": "I'll note that."})];
                content.extend(calls.map(call));
                json!({"scope": scope, "content": content})
            }
        };
        body.to_string()
    }

    pub(super) fn results(self, answer: &Answer, count: usize) -> Result<Vec<Value>, Wrong> {
        answer.expect(200)?;
        let answer: Value = answer.json()?;
        let messages = &answer["messages"];
        let (results, id_name) = match self {
            Self::OpenAi => (messages, "tool_call_id"),
            Self::Anthropic => (&messages[0]["content"], "tool_use_id"),
        };
        let results = results.as_array().map_or(&[][..], Vec::as_slice);
        same("results of tools", results.len(), count)?;
        let result = |(number, result): (usize, &Value)| {
            same("the call of a result", &result[id_name], &json!(id(number)))?;
            let content = result["content"].as_str().unwrap_or_default();
            if result["is_error"] == true {
                return Ok(json!({"error": content}));
            }
            serde_json::from_str(content)
                .map_err(|error| Wrong::new("a result that is no JSON", error.to_string()))
        };
        results.iter().enumerate().map(result).collect()
    }
}

pub(super) fn check(found: &Value, expected: &Expected) -> Result<(), Wrong> {
    match expected {
        Some(expected) if found == expected => Ok(()),
        Some(expected) => {
            let detail = format!("{found} instead of {expected}");
            Err(Wrong::new("the result of a tool", detail))
        }
        None if found["error"].is_string() => Ok(()),
        None => Err(Wrong::new(
            "a valid call reported as a mistake",
            found.to_string(),
        )),
    }
}

fn id(number: usize) -> String {
    format!("call_{number}")
}
