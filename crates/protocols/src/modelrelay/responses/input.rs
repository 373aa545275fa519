//! Converts the messages of an input to items.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::tools::upstream_name;
use crate::leading::Leading;
use crate::modelrelay::RelayError;
use crate::object::Object;
use threadkeep_domain::{ItemKind, Json, ResponseId, member, member_elements, member_text};
use threadkeep_responses::{InputItem, items_of_message, response_item_id};

/// Maximum number of messages in an input, and maximum number of items after conversion. The items and the output must
/// fit in one history write of up to 1,000 items.
pub(super) const INPUT_MAX: usize = 400;
const CALL_ID_BYTES_MAX: usize = 256;

/// A message. Unknown members are ignored.
#[derive(Deserialize)]
struct Message {
    #[serde(rename = "type")]
    kind: String,
    role: Option<String>,
    content: Option<Leading<Object<Part>, { INPUT_MAX + 1 }>>,
    tool_calls: Option<Leading<Object<ToolCall>, { INPUT_MAX + 1 }>>,
    tool_call_id: Option<String>,
}

#[derive(Deserialize)]
struct Part {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
    file: Option<Object<File>>,
}

#[derive(Deserialize)]
struct File {
    #[serde(rename = "data_base64")]
    _data_base64: String,
    #[serde(rename = "mime_type")]
    _mime_type: String,
    #[serde(rename = "filename")]
    _filename: Option<String>,
    #[serde(rename = "size_bytes")]
    _size_bytes: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct ToolCall {
    id: String,
    #[serde(rename = "type")]
    kind: String,
    function: Option<Object<Function>>,
}

#[derive(Deserialize)]
struct Function {
    name: String,
    #[serde(rename = "arguments")]
    _arguments: String,
}

pub(super) struct Input {
    /// The leading system messages.
    pub(super) instructions: Option<String>,
    items: Vec<Json>,
}

impl Input {
    pub(super) fn read(messages: &[Box<RawValue>]) -> Result<Self, RelayError> {
        if messages.is_empty() {
            return Err(invalid("input", "a list of one message or more"));
        }
        let mut items = Vec::new();
        for (index, message) in messages.iter().enumerate() {
            let at = format!("input[{index}]");
            check(message, &at)?;
            let of_message = items_of_message(message.get());
            if of_message.is_empty() {
                return Err(invalid(&format!("{at}.content"), "not empty"));
            }
            items.extend(of_message);
        }
        if items.len() > INPUT_MAX {
            let expected = format!("a list of at most {INPUT_MAX} messages and calls");
            return Err(invalid("input", &expected));
        }
        let leading = items.iter().take_while(|item| is_of_system(item)).count();
        // a model needs at least one input item, so system messages become the input if there are no other messages
        let leading = if leading < items.len() { leading } else { 0 };
        let rest = items.split_off(leading);
        let texts: Vec<_> = items.iter().map(text_of).collect();
        Ok(Self {
            instructions: (!texts.is_empty()).then(|| texts.join("\n\n")),
            items: rest,
        })
    }

    /// Returns the size of the input in bytes, not counting files.
    pub(super) fn counted_bytes(&self) -> u64 {
        let instructions = self.instructions.as_ref().map_or(0, String::len) as u64;
        let items = self.items.iter().map(counted_bytes).sum::<u64>();
        instructions.saturating_add(items)
    }

    pub(super) fn items(&self, id: &ResponseId, created_ms: u64) -> Vec<InputItem> {
        let numbered = (0..).zip(&self.items);
        numbered
            .map(|(number, item)| {
                let id = response_item_id(prefix(item), id, created_ms, number);
                let value = format!(r#"{{"id":"{id}",{}"#, &item.as_str()[1..]);
                InputItem {
                    id,
                    counted_bytes: counted_bytes(item),
                    value: Json::from_compact(value),
                }
            })
            .collect()
    }
}

fn check(message: &RawValue, at: &str) -> Result<(), RelayError> {
    let message: Object<Message> = match serde_json::from_str(message.get()) {
        Ok(message) => message,
        Err(error) => {
            let error = crate::modelrelay::bodies::redacted(&error.to_string());
            return Err(RelayError::Validation(format!("{at}: {error}")));
        }
    };
    let Object(message) = message;
    let path = |name: &str| format!("{at}.{name}");
    if message.kind != "message" {
        return Err(invalid(&path("type"), "message"));
    }
    let role = message.role.as_deref();
    let Some(role @ ("system" | "user" | "assistant" | "tool")) = role else {
        return Err(invalid(&path("role"), "system, user, assistant or tool"));
    };
    let parts = message.content.iter().flat_map(|parts| parts.iter());
    for (index, Object(part)) in parts.enumerate() {
        let is_read = match part.kind.as_str() {
            "text" => part.text.is_some(),
            "file" => part.file.is_some() && matches!(role, "user" | "assistant"),
            _ => false,
        };
        if index >= INPUT_MAX || !is_read {
            let expected = "a text, or a file of the user, among at most 400 parts";
            return Err(invalid(&format!("{at}.content[{index}]"), expected));
        }
    }
    let calls = message.tool_calls.iter().flat_map(|calls| calls.iter());
    for (index, Object(call)) in calls.enumerate() {
        let path = format!("{at}.tool_calls[{index}]");
        if role != "assistant" {
            return Err(invalid(&path, "in a message of the assistant"));
        }
        check_call_id(&call.id, &format!("{path}.id"))?;
        let Some(Object(function)) = call.function.as_ref().filter(|_| call.kind == "function")
        else {
            return Err(invalid(&path, "a call of a function"));
        };
        if upstream_name(&function.name).is_none() {
            return Err(invalid(&path, "a call of a function by its name"));
        }
    }
    match (&message.tool_call_id, role) {
        (Some(id), "tool") => check_call_id(id, &path("tool_call_id")),
        (None, "tool") => Err(invalid(&path("tool_call_id"), "the id of a call")),
        _ => Ok(()),
    }
}

fn check_call_id(id: &str, at: &str) -> Result<(), RelayError> {
    match (1..=CALL_ID_BYTES_MAX).contains(&id.len()) {
        true => Ok(()),
        false => {
            let expected = format!("1 to {CALL_ID_BYTES_MAX} bytes");
            Err(invalid(at, &expected))
        }
    }
}

pub(super) fn invalid(at: &str, expected: &str) -> RelayError {
    RelayError::Validation(format!("{at} must be {expected}"))
}

fn is_of_system(item: &Json) -> bool {
    member(item.as_str(), "role") == Some(r#""system""#)
}

fn prefix(item: &Json) -> &'static str {
    match ItemKind::of(item.as_str()) {
        Some(ItemKind::FunctionCall) => "fc_",
        Some(ItemKind::FunctionCallOutput) => "fco_",
        _ => "msg_",
    }
}

fn parts_of(item: &Json) -> impl Iterator<Item = &str> {
    member_elements(item.as_str(), "content")
}

/// Concatenates the text parts of a message.
fn text_of(item: &Json) -> String {
    let texts = parts_of(item).filter_map(|part| member_text(part, "text"));
    texts.collect()
}

fn counted_bytes(item: &Json) -> u64 {
    let is_file = |part: &&str| {
        matches!(
            member(part, "type"),
            Some(r#""input_image""# | r#""input_file""#)
        )
    };
    let files: usize = parts_of(item).filter(is_file).map(str::len).sum();
    item.as_str().len().saturating_sub(files) as u64
}
