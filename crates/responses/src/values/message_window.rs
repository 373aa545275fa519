//! Adds the messages of a response to the state of its thread, for apps that read the state instead of the history.

use serde::{Deserialize, Serialize};
use threadkeep_domain::{
    Json, Key, Mismatch, Operation, elements, member, member_text, members, object_of, quoted,
};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageWindow {
    /// Key of the message array in the thread's state. Must be a valid key in the `/v1` API.
    pub key: String,
    /// Maximum number of messages to keep. `None` keeps all messages.
    pub max_records: Option<u64>,
}

impl MessageWindow {
    #[must_use]
    pub fn key(&self) -> Option<Key> {
        Key::new(&*self.key).ok()
    }

    /// Returns operations that append the user messages from the input and the last model message from the output.
    pub(crate) fn pushes<'a>(
        &self,
        input: impl Iterator<Item = &'a Json>,
        output: &[Json],
    ) -> Vec<Operation> {
        let user_messages = input.filter_map(|item| user_message(item.as_str()));
        let answer = output
            .iter()
            .rev()
            .find_map(|item| model_message(item.as_str()));
        let push = |value| {
            Some(Operation::Push {
                key: self.key()?,
                value,
                max_records: self.max_records,
                mismatch: Mismatch::Refuse,
            })
        };
        user_messages.chain(answer).filter_map(push).collect()
    }
}

/// Converts a user message. A single text part becomes a string. Otherwise, keeps all parts, but removes inline image
/// and file data.
fn user_message(item: &str) -> Option<Json> {
    let content = content_of(item, "user")?;
    if content.starts_with('"') {
        return message(item, "user", content);
    }
    let parts: Vec<_> = elements(content).collect();
    match parts[..] {
        [part] if member_text(part, "type")? == "input_text" => {
            message(item, "user", member(part, "text")?)
        }
        _ => {
            let parts: Vec<_> = parts.into_iter().map(without_bytes).collect();
            message(item, "user", &format!("[{}]", parts.join(",")))
        }
    }
}

/// Converts a model message to a single text.
fn model_message(item: &str) -> Option<Json> {
    let content = content_of(item, "assistant")?;
    let text: String = elements(content)
        .filter_map(|part| member_text(part, "text").or_else(|| member_text(part, "refusal")))
        .collect();
    message(item, "assistant", &quoted(&text))
}

fn content_of<'a>(item: &'a str, role: &str) -> Option<&'a str> {
    let is_match = member_text(item, "type")? == "message" && member_text(item, "role")? == role;
    is_match.then(|| member(item, "content")).flatten()
}

fn message(item: &str, role: &str, content: &str) -> Option<Json> {
    let id = member(item, "id")?;
    Some(Json::from_compact(format!(
        r#"{{"role":"{role}","content":{content},"id":{id}}}"#
    )))
}

fn without_bytes(part: &str) -> String {
    let kept = members(part).filter(|(name, value)| {
        !(*name == r#""file_data""# || *name == r#""image_url""# && value.starts_with("\"data:"))
    });
    object_of(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pushed(input: &str, output: &str) -> Vec<String> {
        let window = MessageWindow {
            key: "messages".into(),
            max_records: Some(5),
        };
        let items = |list: &str| {
            let items = elements(list).map(Json::from_compact);
            items.collect::<Vec<_>>()
        };
        let pushes = window.pushes(items(input).iter(), &items(output));
        let value = |operation| match operation {
            Operation::Push { value, .. } => value.as_str().to_owned(),
            other => panic!("{other:?}"),
        };
        pushes.into_iter().map(value).collect()
    }

    #[test]
    fn the_users_messages_and_the_last_answer_are_kept() {
        let input = r#"[{"type":"message","role":"developer","content":"Be brief.","id":"msg_0"},{"type":"message","role":"user","content":"Hi","id":"msg_1"},{"type":"message","role":"user","content":[{"type":"input_text","text":"A \"b\""}],"id":"msg_2"},{"type":"function_call_output","call_id":"c","output":"1","id":"fco_1"}]"#;
        let output = r#"[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Let me look."}],"id":"msg_3"},{"type":"mcp_call","id":"mcp_1"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"One, "},{"type":"output_text","text":"two"}],"id":"msg_4"}]"#;

        assert_eq!(
            pushed(input, output),
            [
                r#"{"role":"user","content":"Hi","id":"msg_1"}"#,
                r#"{"role":"user","content":"A \"b\"","id":"msg_2"}"#,
                r#"{"role":"assistant","content":"One, two","id":"msg_4"}"#,
            ]
        );
    }

    #[test]
    fn images_and_files_are_stored_without_their_data() {
        let input = r#"[{"type":"message","role":"user","content":[{"type":"input_text","text":"See"},{"type":"input_image","image_url":"data:image/png;base64,AAAA","detail":"low"},{"type":"input_image","image_url":"https://example.com/a.png"},{"type":"input_file","filename":"a.pdf","file_data":"AAAA"}],"id":"msg_1"}]"#;

        assert_eq!(
            pushed(input, "[]"),
            [
                r#"{"role":"user","content":[{"type":"input_text","text":"See"},{"type":"input_image","detail":"low"},{"type":"input_image","image_url":"https://example.com/a.png"},{"type":"input_file","filename":"a.pdf"}],"id":"msg_1"}"#
            ]
        );
    }
}
