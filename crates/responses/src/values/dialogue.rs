//! Converts between the messages of sessions and the items of responses.
//!
//! A message has the form `{"role","content":[{"type":"text","text"}],"tool_calls"?,"tool_call_id"?}`, as in
//! `ModelRelay`'s protocol. An item has the form that OpenAI's Responses API defines.

use serde_json::{Value, json};
use uuid::Builder;

use threadkeep_domain::scope::HistoryItem;
use threadkeep_domain::{
    Fingerprint, Item, ItemCall, ItemKind, Json, elements, member, member_elements, member_text,
    text_of,
};

/// Converts a message to items without ids. Omits parts and messages with an unknown form.
#[must_use]
pub fn items_of_message(message: &str) -> Vec<Json> {
    let content = member(message, "content").filter(|content| content.starts_with('['));
    let content = content.unwrap_or("[]");
    let role = member_text(message, "role");
    let Some(role @ ("user" | "assistant" | "system" | "tool")) = role.as_deref() else {
        return Vec::new();
    };
    if role == "tool" {
        let result = member_text(message, "tool_call_id").map(|id| result_item(&id, content));
        return result.into_iter().collect();
    }
    let parts: Vec<_> = elements(content)
        .filter_map(|part| part_of_item(part, role))
        .collect();
    let calls = member_elements(message, "tool_calls").filter_map(call_item);
    let message = (!parts.is_empty()).then(|| {
        let parts = parts.join(",");
        Json::from_compact(format!(
            r#"{{"type":"message","role":"{role}","content":[{parts}]}}"#
        ))
    });
    message.into_iter().chain(calls).collect()
}

/// Converts an item to the messages that a session stores for it. Reasoning and instructions produce no messages. The
/// ids of the messages are derived from `id`.
pub(crate) fn messages_of_item(id: &str, item: &Json) -> Vec<HistoryItem> {
    let messages = match Item::read(item.as_str()) {
        Some(Item::Message { role, content }) => text_message(&role, content.unwrap_or("[]"))
            .into_iter()
            .collect(),
        Some(Item::Call(call)) => {
            let result = call.result.as_ref();
            let result = result.map(|result| result_message(&call.id, &plain_text(&result.output)));
            [call_message(&call)].into_iter().chain(result).collect()
        }
        Some(Item::Output { id, output }) => vec![result_message(&id, &plain_text(output))],
        Some(Item::Reasoning | Item::Other) | None => Vec::new(),
    };
    let numbered = (0_u8..).zip(messages);
    numbered
        .map(|(number, value)| HistoryItem {
            id: message_id(id, number),
            value,
        })
        .collect()
}

/// Derives the UUID that identifies a message in a session.
fn message_id(item: &str, number: u8) -> threadkeep_domain::scope::ItemId {
    let fingerprint = Fingerprint::of(&[b"message of a session", item.as_bytes(), &[number]]);
    let id = Builder::from_random_bytes(fingerprint.0).into_uuid();
    id.to_string().parse().expect("a UUID is visible ASCII")
}

fn part_of_item(part: &str, role: &str) -> Option<String> {
    match &*member_text(part, "type")? {
        "text" => {
            // some models reject empty texts
            let is_text = |text: &&str| text.starts_with('"') && *text != "\"\"";
            let text = member(part, "text").filter(is_text)?;
            Some(match role {
                "assistant" => format!(
                    r#"{{"type":"output_text","text":{text},"annotations":[],"logprobs":[]}}"#
                ),
                _ => format!(r#"{{"type":"input_text","text":{text}}}"#),
            })
        }
        "file" => {
            let file = member(part, "file")?;
            let (mime_type, data) = (
                member_text(file, "mime_type")?,
                member_text(file, "data_base64")?,
            );
            let url = Value::from(format!("data:{mime_type};base64,{data}"));
            Some(match mime_type.starts_with("image/") {
                true => format!(r#"{{"type":"input_image","image_url":{url}}}"#),
                false => {
                    let name = member(file, "filename").unwrap_or("\"file\"");
                    format!(r#"{{"type":"input_file","filename":{name},"file_data":{url}}}"#)
                }
            })
        }
        _ => None,
    }
}

fn part_of_message(part: &str) -> Option<String> {
    match &*member_text(part, "type")? {
        "input_text" | "output_text" => {
            let text = member(part, "text")?;
            Some(format!(r#"{{"type":"text","text":{text}}}"#))
        }
        "refusal" => {
            let text = member(part, "refusal")?;
            Some(format!(r#"{{"type":"text","text":{text}}}"#))
        }
        "input_image" => file_part(&member_text(part, "image_url")?, None),
        "input_file" => file_part(&member_text(part, "file_data")?, member(part, "filename")),
        _ => None,
    }
}

fn file_part(url: &str, name: Option<&str>) -> Option<String> {
    let (mime_type, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
    let (mime_type, data) = (Value::from(mime_type), Value::from(data));
    let name = name.map_or_else(String::new, |name| format!(r#","filename":{name}"#));
    Some(format!(
        r#"{{"type":"file","file":{{"data_base64":{data},"mime_type":{mime_type}{name}}}}}"#
    ))
}

fn text_message(role: &str, content: &str) -> Option<Json> {
    if !["user", "assistant"].contains(&role) {
        return None;
    }
    let parts = match content.starts_with('"') {
        true => vec![format!(r#"{{"type":"text","text":{content}}}"#)],
        false => elements(content).filter_map(part_of_message).collect(),
    };
    let parts = parts.join(",");
    Some(Json::from_compact(format!(
        r#"{{"role":"{role}","content":[{parts}]}}"#
    )))
}

fn call_message(call: &ItemCall<'_>) -> Json {
    let message = json!({
        "role": "assistant",
        "content": [],
        "tool_calls": [{
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments},
        }],
    });
    Json::from_compact(message.to_string())
}

fn result_message(id: &str, output: &str) -> Json {
    let message = json!({
        "role": "tool",
        "content": [{"type": "text", "text": output}],
        "tool_call_id": id,
    });
    Json::from_compact(message.to_string())
}

fn result_item(id: &str, content: &str) -> Json {
    let item = json!({
        "type": ItemKind::FunctionCallOutput.as_str(),
        "call_id": id,
        "output": plain_text(content),
    });
    Json::from_compact(item.to_string())
}

fn call_item(call: &str) -> Option<Json> {
    let function = member(call, "function")?;
    let name = member_text(function, "name")?;
    let item = json!({
        "type": ItemKind::FunctionCall.as_str(),
        "call_id": member_text(call, "id")?,
        // model APIs reject dots in names
        "name": name.replace('.', "_"),
        "arguments": member_text(function, "arguments").unwrap_or_default(),
    });
    Some(Json::from_compact(item.to_string()))
}

/// Concatenates the texts of a message's content.
fn plain_text(content: &str) -> String {
    if content.starts_with('"') {
        return text_of(content).unwrap_or_default().into();
    }
    let parts = elements(content);
    parts.filter_map(|part| member_text(part, "text")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(message: &str) -> Vec<String> {
        let items = items_of_message(message);
        items.iter().map(|item| item.as_str().to_owned()).collect()
    }

    #[test]
    fn session_messages_convert_back_to_the_same_items() {
        for item in [
            r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"a \"b\""},{"type":"input_image","image_url":"data:image/png;base64,AA=="}]}"#,
            r#"{"type":"message","role":"user","content":[{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,AA=="}]}"#,
            r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"é","annotations":[],"logprobs":[]}]}"#,
            r#"{"type":"function_call","call_id":"c","name":"f","arguments":"{\"a\":1}"}"#,
            r#"{"type":"function_call_output","call_id":"c","output":"7"}"#,
        ] {
            let messages = messages_of_item("i", &Json::from_compact(item));
            assert_eq!(messages.len(), 1, "{item}");
            assert_eq!(items(messages[0].value.as_str()), [item]);
        }
    }

    #[test]
    fn a_call_that_the_server_ran_is_a_call_and_its_result() {
        let call = r#"{"type":"mcp_call","call_id":"c","name":"kv_list","arguments":"{}","output":"{\"keys\":[]}","error":null}"#;
        let mistake = call.replace(r#""error":null"#, r#""error":"no""#);

        let shown = |item: &str, id: &str| -> Vec<_> {
            let messages = messages_of_item(id, &Json::from_compact(item));
            messages
                .iter()
                .flat_map(|message| items(message.value.as_str()))
                .collect()
        };

        let called = r#"{"type":"function_call","call_id":"c","name":"kv_list","arguments":"{}"}"#
            .to_owned();
        let result = |output: &str| {
            json!({"type": ItemKind::FunctionCallOutput.as_str(), "call_id": "c", "output": output})
                .to_string()
        };
        assert_eq!(shown(call, "i"), [called.clone(), result(r#"{"keys":[]}"#)]);
        assert_eq!(shown(&mistake, "i"), [called, result(r#"{"error":"no"}"#)]);
        let coded = mistake.replace(r#""error":"no""#, r#""error":"no","code":"C""#);
        assert_eq!(
            shown(&coded, "i")[1],
            result(r#"{"error":"no","code":"C"}"#)
        );
        for name in ["web_search", "image_generation"] {
            let item = format!(
                r#"{{"type":"{name}_call","call_id":"c","arguments":"{{}}","output":"{{\"n\":1}}","result":null}}"#
            );
            let called = format!(
                r#"{{"type":"function_call","call_id":"c","name":"{name}","arguments":"{{}}"}}"#
            );
            assert_eq!(shown(&item, "i"), [called, result(r#"{"n":1}"#)]);
            // calls that the upstream ran itself have no results, so they produce no messages
            assert_eq!(
                shown(&format!(r#"{{"type":"{name}_call","id":"a"}}"#), "i"),
                [""; 0]
            );
        }
        let ids = |id: &str| {
            let messages = messages_of_item(id, &Json::from_compact(call));
            messages
                .into_iter()
                .map(|message| message.id)
                .collect::<Vec<_>>()
        };
        assert_eq!(ids("i"), ids("i"));
        assert_ne!(ids("i"), ids("j"));
        assert_ne!(ids("i")[0], ids("i")[1]);
    }

    #[test]
    fn unknown_forms_are_omitted() {
        for unknown in [
            "7",
            "{}",
            r#"{"role":7,"content":[]}"#,
            r#"{"role":"developer","content":[{"type":"text","text":"a"}]}"#,
            r#"{"role":"user","content":"a"}"#,
            r#"{"role":"user","content":[7,{},{"type":"text"},{"type":"text","text":""},{"type":"file","file":7}]}"#,
            r#"{"role":"assistant","content":[],"tool_calls":[7,{},{"id":"c"}]}"#,
            r#"{"role":"tool","content":[{"type":"text","text":"a"}]}"#,
        ] {
            assert_eq!(items(unknown), [""; 0], "{unknown}");
        }
        for item in [
            r#"{"type":"reasoning","summary":[]}"#,
            r#"{"type":"message","role":"system","content":[]}"#,
            "{}",
        ] {
            assert!(messages_of_item("i", &Json::from_compact(item)).is_empty());
        }
    }
}
