use std::borrow::Cow;
use std::collections::{HashMap, HashSet, VecDeque};

use super::item::{CallForm, CallResult, Item, ItemCall};
use crate::member;

/// A part of a prompt. Parts are in conversation order. JSON values are compact text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PromptItem<'a> {
    /// A message.
    Message {
        /// `user`, `assistant`, `system` or `developer`.
        role: &'a str,
        /// A JSON array of content parts in the format of OpenAI's Responses API, such as `input_text` or `refusal`.
        content: &'a str,
        /// The whole message item, including members such as `phase`.
        item: &'a str,
    },
    /// Reasoning, as an item of OpenAI's Responses API.
    Reasoning(&'a str),
    /// A tool call by a model.
    Call {
        /// The kind of tool.
        form: CallForm,
        /// The id that links the call to its result. Each id is unique in the prompt.
        id: Cow<'a, str>,
        /// The name of the tool.
        name: Cow<'a, str>,
        /// The arguments, which are not necessarily JSON.
        arguments: Cow<'a, str>,
    },
    /// The result of an earlier call. Each call has exactly one result, which follows the call.
    Result {
        /// The kind of tool.
        form: CallForm,
        /// The id of the call.
        id: Cow<'a, str>,
        /// JSON: a string, or an array of content parts.
        output: Cow<'a, str>,
        /// Whether the call was a mistake of the model.
        is_mistake: bool,
    },
    /// An item of another type, for upstreams that support it.
    Other(&'a str),
}

/// Name of an item's member that contains the sequence number of a model answer. Adjacent items with the same value
/// belong to the same answer.
const STEP: &str = "step";
const ROLES: [&str; 4] = ["user", "assistant", "system", "developer"];
const NO_OUTPUT: &str = r#""{\"error\":\"no output was given for this call\"}""#;

struct Part<'a> {
    text: &'a str,
    item: Item<'a>,
    step: Option<&'a str>,
}

/// Builds a prompt from stored items. Each call gets a unique id and exactly one result. If a model answer contains
/// several items, the results follow the whole answer. Results without a call are dropped.
#[must_use]
pub fn prompt_of<'a>(items: impl IntoIterator<Item = &'a str>) -> Vec<PromptItem<'a>> {
    pair(items.into_iter().filter_map(read).collect())
}

/// Returns the index of the first output in `input` that does not match a call in `before` or `input`. A prompt would
/// drop such an output. Several outputs may match the same call.
#[must_use]
pub fn output_without_call<'a>(
    before: impl Iterator<Item = &'a str>,
    input: impl Iterator<Item = &'a str>,
) -> Option<usize> {
    let input: Vec<_> = input.map(Item::read).collect();
    let is_output = |item: &Option<Item<'_>>| matches!(item, Some(Item::Output { .. }));
    if !input.iter().any(is_output) {
        return None;
    }
    let id_of_call = |item: &Item<'a>| match item {
        Item::Call(call) => Some(call.id.clone()),
        _ => None,
    };
    let before = before.filter_map(|item| id_of_call(&Item::read(item)?));
    let calls = before.chain(input.iter().flatten().filter_map(id_of_call));
    let calls: HashSet<_> = calls.collect();
    input.iter().position(|item| match item {
        Some(Item::Output { id, .. }) => !calls.contains(id),
        _ => false,
    })
}

fn read(text: &str) -> Option<Part<'_>> {
    Some(Part {
        text,
        item: Item::read(text)?,
        step: member(text, STEP),
    })
}

/// Converts an item that is neither a call nor a result. Drops messages with unknown roles or no content parts.
fn convert_other<'a>(text: &'a str, item: &Item<'a>) -> Option<PromptItem<'a>> {
    match item {
        Item::Message { role, content } => Some(PromptItem::Message {
            role: ROLES.into_iter().find(|name| name == role)?,
            content: content.filter(|content| content.starts_with('['))?,
            item: text,
        }),
        Item::Reasoning => Some(PromptItem::Reasoning(text)),
        _ => Some(PromptItem::Other(text)),
    }
}

fn pair(parts: Vec<Part<'_>>) -> Vec<PromptItem<'_>> {
    let mut outputs = HashMap::<Cow<'_, str>, VecDeque<&str>>::new();
    for part in &parts {
        if let Item::Output { id, output } = &part.item {
            outputs.entry(id.clone()).or_default().push_back(output);
        }
    }
    let mut ids = Ids::default();
    let mut prompt = Vec::with_capacity(parts.len());
    // `open` contains the results to add after the current answer, and `answer` identifies that model answer
    let (mut open, mut answer) = (Vec::new(), None);
    for Part { text, item, step } in parts {
        match item {
            Item::Call(ItemCall {
                form,
                id,
                name,
                arguments,
                result,
            }) => {
                // without a `step`, consecutive client calls form one answer, but each server call is its own answer
                let origin = (step, result.is_some() && step.is_none());
                if answer.is_some_and(|answer| answer != origin || origin.1) {
                    prompt.append(&mut open);
                }
                answer = Some(origin);
                let CallResult { output, is_error } = result.unwrap_or_else(|| {
                    let output = outputs.get_mut(&id).and_then(VecDeque::pop_front);
                    CallResult {
                        output: Cow::Borrowed(output.unwrap_or(NO_OUTPUT)),
                        is_error: false,
                    }
                });
                let id = ids.distinct(id);
                open.push(PromptItem::Result {
                    form,
                    id: id.clone(),
                    output,
                    is_mistake: is_error,
                });
                prompt.push(PromptItem::Call {
                    form,
                    id,
                    name,
                    arguments,
                });
            }
            Item::Output { .. } => prompt.append(&mut open),
            item => {
                let Some(item) = convert_other(text, &item) else {
                    continue;
                };
                let continues_answer =
                    step.is_some() && answer.is_some_and(|answer| answer.0 == step);
                if !continues_answer {
                    prompt.append(&mut open);
                }
                prompt.push(item);
            }
        }
        if open.is_empty() {
            answer = None;
        }
    }
    prompt.append(&mut open);
    prompt
}

#[derive(Default)]
struct Ids(HashMap<String, u64>);

impl Ids {
    /// Returns `id`, or an unused variant if `id` is already in use.
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

    #[test]
    fn outputs_without_a_call_are_found() {
        let (one, two) = (call("1"), call("2"));
        let output = |id: &str| {
            format!(r#"{{"type":"function_call_output","call_id":"{id}","output":"x"}}"#)
        };
        let (of_one, of_two) = (output("1"), output("2"));
        let (of_one, of_two) = (of_one.as_str(), of_two.as_str());
        for (before, input, expected) in [
            (vec![], vec![USER], None),
            (vec![&*one], vec![of_one], None),
            (vec![], vec![&*one, of_one, USER], None),
            (vec![], vec![of_one, &*one], None),
            (vec![], vec![USER, of_one], Some(1)),
            (vec![&*one], vec![of_two], Some(0)),
            (vec![&*one, of_one], vec![of_one], None),
            (vec![&*one], vec![of_one, USER, of_one], None),
            (
                vec![&*one, of_one, &*one, &*two],
                vec![of_two, of_one],
                None,
            ),
        ] {
            let index = output_without_call(before.iter().copied(), input.iter().copied());
            assert_eq!(index, expected, "{before:?} {input:?}");
        }
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
    fn repeated_call_ids_are_made_unique() {
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
    fn a_server_call_becomes_a_call_and_a_result() {
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
    fn calls_of_one_answer_precede_their_results() {
        let ran = |id: &str, step: u32| {
            format!(
                r#"{{"type":"mcp_call","call_id":"{id}","name":"f","arguments":"{{}}","output":"","step":{step}}}"#
            )
        };
        let for_client = call("e")
            .replace('}', r#","step":3}"#)
            .replace(r#"{,"step":3}"#, "{}");
        let items = [
            ran("a", 1),
            ran("b", 1),
            ran("c", 2),
            ran("d", 3),
            for_client,
            output("e", "5"),
            USER.to_owned(),
            ran("f", 1),
            call("g"),
        ];

        let shown = shown(&items.each_ref().map(String::as_str));

        let result = |id: &str| format!(r#"{id} = """#);
        let unanswered = format!("g = {NO_OUTPUT}");
        assert_eq!(
            shown,
            [
                "f a",
                "f b",
                &result("a"),
                &result("b"),
                "f c",
                &result("c"),
                "f d",
                "f e",
                &result("d"),
                r#"e = "5""#,
                "user",
                "f f",
                &result("f"),
                "f g",
                &unanswered,
            ]
        );
    }

    #[test]
    fn results_follow_their_whole_answer() {
        let ran = |id: &str| {
            format!(
                r#"{{"type":"mcp_call","call_id":"{id}","name":"f","arguments":"{{}}","output":"","step":1}}"#
            )
        };
        let thought = r#"{"type":"reasoning","step":1}"#;
        let message = r#"{"type":"message","role":"assistant","content":[],"step":1}"#;
        let later = message.replace(r#","step":1"#, "");
        let items = [&ran("a"), thought, &ran("b"), message, &later].map(str::to_owned);

        let shown = shown(&items.each_ref().map(String::as_str));

        let result = |id: &str| format!(r#"{id} = """#);
        assert_eq!(
            shown,
            [
                "f a",
                "reasoning",
                "f b",
                "assistant",
                &result("a"),
                &result("b"),
                "assistant",
            ]
        );
    }

    #[test]
    fn only_searches_and_images_of_this_server_are_calls() {
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
    fn malformed_items_are_dropped() {
        for malformed in [
            "7",
            "[]",
            "{}",
            r#"{"type":7}"#,
            r#"{"type":"message","role":"tool","content":[]}"#,
            r#"{"type":"function_call","name":"f"}"#,
        ] {
            assert_eq!(shown(&[malformed]), <[&str; 0]>::default(), "{malformed}");
        }
    }
}
