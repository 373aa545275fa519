use std::collections::HashSet;

use crate::openai::body::{kind_of, object, required};
use crate::openai::fault::Fault;
use crate::openai::kinds::prefix;
use crate::openai::new_items::complete_item;
use threadkeep_domain::{ResponseId, elements, given, member, member_text};
use threadkeep_responses::{InputItem, response_item_id, without_image};

/// Maximum number of items in one input. The input and the output are added to the history in one write, which may
/// contain up to 1,000 items.
pub(super) const INPUT_MAX: usize = 400;

static KINDS: [&str; 11] = [
    "message",
    "function_call",
    "function_call_output",
    "custom_tool_call",
    "custom_tool_call_output",
    "reasoning",
    "mcp_call",
    "mcp_list_tools",
    "web_search_call",
    "image_generation_call",
    "compaction",
];
static ROLES: [&str; 4] = ["user", "assistant", "system", "developer"];
static PARTS: [&str; 5] = [
    "input_text",
    "input_image",
    "input_file",
    "output_text",
    "refusal",
];

/// Returns whether an output item may be part of an input.
pub(super) fn is_input_kind(item: &str) -> bool {
    member_text(item, "type").is_some_and(|kind| KINDS.contains(&&*kind))
}

/// Reads an input (a string or a list of items), and generates missing ids. Returns an empty list if there is no input.
pub(super) fn read_input(
    input: Option<&str>,
    response: (&ResponseId, u64),
) -> Result<Vec<InputItem>, Fault> {
    let Some(input) = input else {
        return Ok(Vec::new());
    };
    if input.starts_with('"') {
        let message = format!(r#"{{"type":"message","role":"user","content":{input}}}"#);
        return Ok(vec![read_item(&message, "input", response, 0)?]);
    }
    if !input.starts_with('[') {
        let expected = format!("a string or an array, but got {}", kind_of(input));
        return Err(Fault::wrong_type("input", &expected));
    }
    let mut items: Vec<InputItem> = Vec::new();
    let mut ids = HashSet::new();
    for (index, item) in elements(input).enumerate() {
        if index >= INPUT_MAX {
            let message = format!("Invalid 'input': expected at most {INPUT_MAX} items.");
            return Err(Fault::new("array_above_max_length", "input", message));
        }
        let item = read_item(item, &format!("input[{index}]"), response, index)?;
        if !ids.insert(item.id.clone()) {
            let expected = "another id than that of an earlier item";
            return Err(Fault::wrong_value(format!("input[{index}].id"), expected));
        }
        items.push(item);
    }
    Ok(items)
}

/// Returns the error for a request that has no items and does not continue a conversation.
pub(super) fn nothing_to_answer(input: Option<&str>) -> Fault {
    match input {
        None => Fault::missing("input"),
        Some(_) => Fault::wrong_value("input", "a string or an array with an item"),
    }
}

fn read_item(
    item: &str,
    at: &str,
    response: (&ResponseId, u64),
    index: usize,
) -> Result<InputItem, Fault> {
    let item = complete_item(item, at, |kind| {
        response_item_id(prefix(kind), response.0, response.1, index as u64)
    })?;
    // drops the data of generated images that a client sends back, because the prompt contains only their descriptions
    let value = without_image(&item.value);
    let text = value.as_str();
    let path = |name: &str| format!("{at}.{name}");
    let kind = required(text, "type", at)?;
    if !KINDS.contains(&kind.as_str()) {
        let expected = format!("one of {}", KINDS.join(", "));
        return Err(Fault::wrong_value(path("type"), &expected));
    }
    let mut uncounted = 0;
    match kind.as_str() {
        "message" => {
            let role = required(text, "role", at)?;
            if !ROLES.contains(&role.as_str()) {
                let expected = format!("one of {}", ROLES.join(", "));
                return Err(Fault::wrong_value(path("role"), &expected));
            }
            let content = member(text, "content").unwrap_or("[]");
            // only the model's interrupted messages may have no parts
            if role != "assistant" && elements(content).next().is_none() {
                let expected = "a string or an array with a part";
                return Err(Fault::wrong_value(path("content"), expected));
            }
            uncounted = read_content(content, &path("content"))?;
        }
        "function_call" => {
            for name in ["call_id", "name", "arguments"] {
                required(text, name, at)?;
            }
        }
        "custom_tool_call" => {
            for name in ["call_id", "name", "input"] {
                required(text, name, at)?;
            }
        }
        "function_call_output" | "custom_tool_call_output" => {
            required(text, "call_id", at)?;
            match member(text, "output") {
                Some(output) if output.starts_with('"') => {}
                Some(output) if output.starts_with('[') => {
                    uncounted = read_content(output, &path("output"))?;
                }
                Some(_) => return Err(Fault::wrong_type(path("output"), "a string or an array")),
                None => return Err(Fault::missing(path("output"))),
            }
        }
        "compaction" => {
            required(text, "encrypted_content", at)?;
        }
        _ => {}
    }
    Ok(InputItem {
        id: item.id.to_string(),
        counted_bytes: text.len().saturating_sub(uncounted) as u64,
        value,
    })
}

/// Checks that a content part has at least one of the members in `names`, which contain or locate the part's data.
fn require_any(names: &[&str], part: &str, at: &str) -> Result<(), Fault> {
    match names.iter().any(|name| given(part, name).is_some()) {
        true => Ok(()),
        false => Err(Fault::missing(format!("{at}.{}", names[0]))),
    }
}

/// Checks the parts of an item's content. Returns the total size of the images and files in bytes.
fn read_content(content: &str, at: &str) -> Result<usize, Fault> {
    let mut bytes = 0;
    for (index, part) in elements(content).enumerate() {
        let at = format!("{at}[{index}]");
        object(part, &at)?;
        let kind = required(part, "type", &at)?;
        match kind.as_str() {
            "input_image" => {
                require_any(&["image_url", "file_id"], part, &at)?;
                bytes += part.len();
            }
            "input_file" => {
                require_any(&["file_data", "file_url", "file_id"], part, &at)?;
                bytes += part.len();
            }
            "input_text" | "output_text" => {
                required(part, "text", &at)?;
            }
            "refusal" => {
                required(part, "refusal", &at)?;
            }
            _ => {
                let expected = format!("one of {}", PARTS.join(", "));
                return Err(Fault::wrong_value(format!("{at}.type"), &expected));
            }
        }
    }
    Ok(bytes)
}
