//! Prompts: the part of a conversation that a model reads.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};

use serde_json::{Value, json};

use crate::domain::member;

/// One part of a prompt, in the order of the conversation. JSON is compact text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PromptItem<'a> {
    /// A message.
    Message {
        /// `user`, `assistant`, `system` or `developer`.
        role: &'a str,
        /// A JSON array of content parts in the form of OpenAI's Responses API: `input_text`, `input_image`, `input_file`,
        /// `output_text`, `refusal`, or others.
        content: &'a str,
    },
    /// The reasoning of a model, as an item of OpenAI's Responses API.
    Reasoning(&'a str),
    /// A call of a function by a model.
    Call {
        /// Pairs it with its result; no two calls have the same.
        id: Cow<'a, str>,
        /// The name of the function.
        name: Cow<'a, str>,
        /// The arguments, which need not be JSON.
        arguments: Cow<'a, str>,
    },
    /// The result of an earlier call. Each call has one, after it and before the next message.
    Result {
        /// The id of the call.
        id: Cow<'a, str>,
        /// JSON: a string, or an array of content parts.
        output: Cow<'a, str>,
        /// Whether the call was a mistake of the model.
        is_mistake: bool,
    },
    /// An item of another type, for an upstream that knows it.
    Other(&'a str),
}

/// The result of a call that nobody has answered.
const NO_OUTPUT: &str = r#""{\"error\":\"no output was given for this call\"}""#;

/// The prompt that stored items make.
///
/// Calls that a server has run become a call and its result. Each call gets an id of
/// its own and exactly one result, directly behind it or behind the calls next to it; results without a call are left out.
#[must_use]
pub fn prompt_of<'a>(items: impl IntoIterator<Item = &'a str>) -> Vec<PromptItem<'a>> {
    let mut parts = Vec::new();
    for item in items {
        read(item, &mut parts);
    }
    pair(parts)
}

/// Reads a stored item, which need not be an object.
fn read<'a>(item: &'a str, parts: &mut Vec<PromptItem<'a>>) {
    if !item.starts_with('{') {
        return;
    }
    let text = |name| member(item, name).and_then(text_of);
    match text("type").as_deref() {
        Some("message") | None => {
            let role = member(item, "role").and_then(role_of);
            let content = member(item, "content").filter(|content| content.starts_with('['));
            if let (Some(role), Some(content)) = (role, content) {
                parts.push(PromptItem::Message { role, content });
            }
        }
        Some("function_call") => {
            if let (Some(id), Some(name)) = (text("call_id"), text("name")) {
                let arguments = text("arguments").unwrap_or_default();
                parts.push(PromptItem::Call {
                    id,
                    name,
                    arguments,
                });
            }
        }
        Some("function_call_output") => {
            if let (Some(id), Some(output)) = (text("call_id"), member(item, "output")) {
                let output = Cow::Borrowed(output);
                let is_mistake = false;
                parts.push(PromptItem::Result {
                    id,
                    output,
                    is_mistake,
                });
            }
        }
        Some("mcp_call") => {
            let id = text("call_id").or_else(|| text("id"));
            if let (Some(id), Some(name)) = (id, text("name")) {
                read_executed(item, id, name, parts);
            }
        }
        // those that this server ran; of others, only their upstream knows the result
        Some("web_search_call") if text("call_id").is_some() => {
            let id = text("call_id").unwrap_or_default();
            read_executed(item, id, "web_search".into(), parts);
        }
        Some("image_generation_call") if text("call_id").is_some() => {
            let id = text("call_id").unwrap_or_default();
            read_executed(item, id, "image_generation".into(), parts);
        }
        Some("reasoning") => parts.push(PromptItem::Reasoning(item)),
        Some(_) => parts.push(PromptItem::Other(item)),
    }
}

/// Reads a call that a server has run, with its result.
fn read_executed<'a>(
    item: &'a str,
    id: Cow<'a, str>,
    name: Cow<'a, str>,
    parts: &mut Vec<PromptItem<'a>>,
) {
    let text = |name| member(item, name).and_then(text_of);
    let error = text("error");
    let is_mistake = error.is_some();
    let output = match (error, text("code")) {
        (Some(error), Some(code)) => quoted(&json!({"error": error, "code": code})),
        (Some(error), None) => quoted(&json!({ "error": error })),
        (None, _) => Cow::Borrowed(member(item, "output").unwrap_or("\"\"")),
    };
    parts.push(PromptItem::Call {
        id: id.clone(),
        name,
        arguments: text("arguments").unwrap_or_default(),
    });
    parts.push(PromptItem::Result {
        id,
        output,
        is_mistake,
    });
}

/// The text of a value, as a JSON string.
fn quoted(value: &Value) -> Cow<'static, str> {
    Cow::Owned(Value::from(value.to_string()).to_string())
}

/// A JSON string.
fn text_of(json: &str) -> Option<Cow<'_, str>> {
    if !json.starts_with('"') {
        return None;
    }
    match json.contains('\\') {
        false => Some(Cow::Borrowed(&json[1..json.len() - 1])),
        true => serde_json::from_str(json).ok().map(Cow::Owned),
    }
}

fn role_of(json: &str) -> Option<&'static str> {
    let role = text_of(json)?;
    let roles = ["user", "assistant", "system", "developer"];
    roles.into_iter().find(|known| *known == role)
}

fn pair(parts: Vec<PromptItem<'_>>) -> Vec<PromptItem<'_>> {
    let mut results = HashMap::<Cow<'_, str>, VecDeque<(Cow<'_, str>, bool)>>::new();
    for part in &parts {
        if let PromptItem::Result {
            id,
            output,
            is_mistake,
        } = part
        {
            let result = (output.clone(), *is_mistake);
            results.entry(id.clone()).or_default().push_back(result);
        }
    }
    let mut ids = Ids::default();
    let mut prompt = Vec::with_capacity(parts.len());
    let mut open = Vec::new();
    for part in parts {
        match part {
            PromptItem::Call {
                id,
                name,
                arguments,
            } => {
                let result = results.get_mut(&id).and_then(VecDeque::pop_front);
                let (output, is_mistake) = result.unwrap_or((Cow::Borrowed(NO_OUTPUT), false));
                let id = ids.distinct(id);
                let its = id.clone();
                prompt.push(PromptItem::Call {
                    id,
                    name,
                    arguments,
                });
                open.push(PromptItem::Result {
                    id: its,
                    output,
                    is_mistake,
                });
            }
            // it stands behind its call already
            PromptItem::Result { .. } => prompt.append(&mut open),
            part => {
                prompt.append(&mut open);
                prompt.push(part);
            }
        }
    }
    prompt.append(&mut open);
    prompt
}

/// The ids of calls so far, with how often each was asked for.
#[derive(Default)]
struct Ids(HashMap<String, u64>);

impl Ids {
    /// That id, or one made from it if it has been used.
    fn distinct<'a>(&mut self, id: Cow<'a, str>) -> Cow<'a, str> {
        let Some(mut count) = self.0.get(&*id).copied() else {
            self.0.insert(id.to_string(), 1);
            return id;
        };
        let new = loop {
            count += 1;
            let new = format!("{id}-{count}");
            if !self.0.contains_key(&new) {
                break new;
            }
        };
        self.0.insert(id.into_owned(), count);
        self.0.insert(new.clone(), 1);
        Cow::Owned(new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(items: &[&str]) -> Vec<String> {
        let prompt = prompt_of(items.iter().copied());
        prompt
            .iter()
            .map(|part| match part {
                PromptItem::Message { role, .. } => (*role).to_owned(),
                PromptItem::Reasoning(_) => "reasoning".into(),
                PromptItem::Call { id, name, .. } => format!("{name} {id}"),
                PromptItem::Result { id, output, .. } => format!("{id} = {output}"),
                PromptItem::Other(_) => "other".into(),
            })
            .collect()
    }

    const USER: &str = r#"{"type":"message","role":"user","content":[]}"#;

    fn call(id: &str) -> String {
        format!(r#"{{"type":"function_call","call_id":"{id}","name":"f","arguments":"{{}}"}}"#)
    }

    fn output(id: &str, output: &str) -> String {
        format!(r#"{{"type":"function_call_output","call_id":"{id}","output":"{output}"}}"#)
    }

    #[test]
    fn each_call_has_one_result_and_each_result_a_call() {
        let (a, b) = (call("a"), call("b"));
        let (to_a, to_b, to_c) = (output("a", "1"), output("b", "2"), output("c", "3"));

        assert_eq!(
            shown(&[USER, &a, &b, &to_b, &to_a, &to_c, USER]),
            ["user", "f a", "f b", "a = \"1\"", "b = \"2\"", "user"]
        );
        assert_eq!(
            shown(&[&a, USER, &to_a]),
            ["f a", "a = \"1\"", "user"],
            "late"
        );
        let missing = format!("a = {NO_OUTPUT}");
        assert_eq!(shown(&[&a, USER]), ["f a", &*missing, "user"]);
    }

    #[test]
    fn an_id_that_is_used_twice_is_made_distinct_with_its_result() {
        let (a, to_a) = (call("a"), output("a", "1"));
        let again = output("a", "2");

        assert_eq!(
            shown(&[&a, &to_a, USER, &a, &again, &call("a-2")]),
            [
                "f a",
                "a = \"1\"",
                "user",
                "f a-2",
                "a-2 = \"2\"",
                "f a-2-2",
                &format!("a-2-2 = {NO_OUTPUT}")
            ]
        );
    }

    #[test]
    fn a_call_that_the_server_ran_is_a_call_and_its_result() {
        let done = r#"{"type":"mcp_call","id":"mcp_1","call_id":"c","name":"kv_list","arguments":"{}","output":"{\"keys\":[]}","error":null}"#;
        let mistake = r#"{"type":"mcp_call","id":"mcp_2","name":"kv_get","arguments":"{}","output":null,"error":"no \"tool\""}"#;

        assert_eq!(
            shown(&[done, mistake]),
            [
                "kv_list c",
                r#"c = "{\"keys\":[]}""#,
                "kv_get mcp_2",
                r#"mcp_2 = "{\"error\":\"no \\\"tool\\\"\"}""#,
            ]
        );
    }

    #[test]
    fn searches_and_images_of_this_server_are_calls_and_those_of_others_are_not() {
        let search = r#"{"type":"web_search_call","id":"ws_1","call_id":"c","arguments":"{}","output":null,"error":"no","code":"WEB_SEARCH_FAILED"}"#;
        let image = r#"{"type":"image_generation_call","id":"ig_1","call_id":"d","result":null,"output":"{}"}"#;
        let theirs = r#"{"type":"web_search_call","id":"ws_2","action":{"type":"search"}}"#;

        assert_eq!(
            shown(&[search, image, theirs]),
            [
                "web_search c",
                r#"c = "{\"error\":\"no\",\"code\":\"WEB_SEARCH_FAILED\"}""#,
                "image_generation d",
                r#"d = "{}""#,
                "other",
            ]
        );
    }

    #[test]
    fn foreign_values_are_left_out() {
        for odd in [
            "7",
            "[]",
            "{}",
            r#"{"type":7}"#,
            r#"{"type":"message","role":"tool","content":[]}"#,
            r#"{"type":"function_call","name":"f"}"#,
        ] {
            assert_eq!(shown(&[odd]), <[&str; 0]>::default(), "{odd}");
        }
    }
}
