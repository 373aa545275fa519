use std::borrow::Cow;

use super::calls::tool_of;
use super::logprobs::Logprobs;
use super::reasoning::{self, Field};
use crate::answer::{self, message, output_text, read_body, refusal};
use crate::client::Failure;
use crate::json::{escaped_member, text, text_member};
use threadkeep_domain::{CallForm, Usage, member, member_elements};
use threadkeep_responses::{AnswerPart, Finish, ModelAnswer};

pub(super) fn read(body: &[u8]) -> Result<ModelAnswer, Failure> {
    let body = read_body(body)?;
    let body = body.as_str();
    let mut choices = member_elements(body, "choices");
    let choice = choices.next().ok_or_else(Failure::malformed)?;
    let finish = finish_of(choice)?;
    // some servers send no reason
    let finish = finish.unwrap_or(Finish::Done);
    let mut parts = parts(choice).ok_or_else(Failure::malformed)?;
    let mut logprobs = Logprobs::default();
    logprobs.add(choice);
    logprobs.put_into(&mut parts);
    Ok(ModelAnswer {
        parts,
        finish,
        usage: usage(body),
    })
}

/// Returns the parts of an answer. Ignores unknown fields and fields of unexpected types.
fn parts(choice: &str) -> Option<Vec<AnswerPart>> {
    let answer = member(choice, "message").filter(|message| message.starts_with('{'))?;
    let content = message_content(answer);
    let reasoning = Field::find(answer);
    let reasoning = reasoning.map(|(field, text)| AnswerPart::Item(reasoning::item(field, text)));
    let message = (!content.is_empty()).then(|| message(&content));
    let calls = calls(answer)?;
    Some(reasoning.into_iter().chain(message).chain(calls).collect())
}

pub(super) fn finish_of(choice: &str) -> Result<Option<Finish>, Failure> {
    match member(choice, "finish_reason") {
        None | Some("null" | "\"\"") => Ok(None),
        Some("\"length\"") => Ok(Some(Finish::MaxOutputTokens)),
        Some("\"content_filter\"") => Ok(Some(Finish::ContentFilter)),
        // gateways send this reason when their upstream fails midway
        Some("\"error\"") => Err(Failure::of_error("null")),
        Some(_) => Ok(Some(Finish::Done)),
    }
}

fn message_content(message: &str) -> Vec<String> {
    let text: String = texts(message).collect();
    let text = (!text.is_empty()).then(|| output_text(&text));
    let refusal = escaped_member(message, "refusal").map(refusal);
    text.into_iter().chain(refusal).collect()
}

/// Returns the JSON-escaped text of a message or a delta. There are several strings if a server sends an array.
pub(super) fn texts(message: &str) -> impl Iterator<Item = &str> {
    let parts = member_elements(message, "content");
    let texts = parts.filter_map(|part| escaped_member(part, "text"));
    escaped_member(message, "content").into_iter().chain(texts)
}

/// Returns the calls in `tool_calls`, or the call in the older field `function_call`. Returns `None` if a call is for
/// neither a function nor a custom tool.
fn calls(message: &str) -> Option<Vec<AnswerPart>> {
    let calls: Option<Vec<_>> = member_elements(message, "tool_calls")
        .map(|call| match tool_of(call)? {
            (CallForm::Function, function) => function_call(text_member(call, "id"), function),
            (CallForm::Custom, tool) => {
                let input = text(member(tool, "input")?)?;
                self::call(text_member(call, "id"), tool, input)
            }
        })
        .collect();
    let calls = calls?;
    match member(message, "function_call") {
        Some(function) if calls.is_empty() && function != "null" => {
            Some(vec![function_call(None, function)?])
        }
        _ => Some(calls),
    }
}

/// Returns a function call. Some servers send the arguments as an object instead of a string, omit them, or leave them
/// empty.
fn function_call(id: Option<Cow<'_, str>>, function: &str) -> Option<AnswerPart> {
    let arguments = match member(function, "arguments") {
        None | Some("null" | "\"\"") => "{}".into(),
        Some(arguments) => text(arguments).unwrap_or(arguments.into()),
    };
    call(id, function, arguments)
}

fn call(id: Option<Cow<'_, str>>, tool: &str, arguments: Cow<'_, str>) -> Option<AnswerPart> {
    Some(AnswerPart::Call {
        id: id.map(Into::into),
        name: text(member(tool, "name")?)?.into(),
        arguments: arguments.into(),
    })
}

pub(super) fn usage(body: &str) -> Usage {
    answer::usage(body, "prompt_tokens", "completion_tokens")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::answer::ensure_message;
    use threadkeep_domain::Json;

    const WHOLE: &str = r#"{
        "id": "chatcmpl-1", "object": "chat.completion", "new": [{"a": 1}],
        "choices": [{"index": 0, "message": {
            "role": "assistant", "content": "Hé\n", "refusal": null, "reasoning_content": "\"hm\"",
            "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "kv_get", "arguments": "{\"key\":\"a\"}"}},
                {"type": "function", "function": {"name": "kv.put", "arguments": {"key": "b"}}},
                {"id": "", "function": {"name": "list"}}]},
            "logprobs": null, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14,
            "prompt_tokens_details": {"cached_tokens": 4}, "completion_tokens_details": {"reasoning_tokens": 2}}}"#;

    fn of_message(message: &str, finish: &str) -> Option<ModelAnswer> {
        let body = format!(r#"{{"choices":[{{"message":{message},"finish_reason":{finish}}}]}}"#);
        ensure_message(read(body.as_bytes()).ok()?, false).ok()
    }

    fn item(json: &str) -> AnswerPart {
        AnswerPart::Item(Json::parse(json).unwrap())
    }

    fn message(json: &str) -> AnswerPart {
        AnswerPart::Message(Json::parse(json).unwrap())
    }

    fn call(id: Option<&str>, name: &str, arguments: &str) -> AnswerPart {
        AnswerPart::Call {
            id: id.map(str::to_owned),
            name: name.into(),
            arguments: arguments.into(),
        }
    }

    #[test]
    fn an_answer_has_its_reasoning_message_calls_and_tokens() {
        let answer = read(WHOLE.as_bytes()).unwrap();

        assert_eq!(
            answer.parts,
            [
                item(
                    r#"{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"\"hm\""}]}"#
                ),
                message(r#"[{"type":"output_text","text":"Hé\n","annotations":[],"logprobs":[]}]"#),
                call(Some("call_1"), "kv_get", r#"{"key":"a"}"#),
                call(None, "kv.put", r#"{"key":"b"}"#),
                call(None, "list", "{}"),
            ]
        );
        assert_eq!(answer.finish, Finish::Done);
        assert_eq!(
            answer.usage,
            Usage {
                input_tokens: 9,
                cached_tokens: 4,
                output_tokens: 5,
                reasoning_tokens: 2,
            }
        );
    }

    #[test]
    fn content_in_parts_and_a_refusal_become_one_message() {
        let answer = of_message(
            r#"{"content":[{"type":"text","text":"a"},{"type":"thinking"},{"type":"text","text":"b"}],"refusal":"no"}"#,
            "\"stop\"",
        );

        assert_eq!(
            answer.unwrap().parts,
            [message(
                r#"[{"type":"output_text","text":"ab","annotations":[],"logprobs":[]},{"type":"refusal","refusal":"no"}]"#
            )]
        );
    }

    #[test]
    fn the_older_form_of_a_call_is_read() {
        let answer = of_message(
            r#"{"content":null,"function_call":{"name":"f","arguments":"not json"}}"#,
            "\"function_call\"",
        );

        assert_eq!(answer.unwrap().parts, [call(None, "f", "not json")]);
    }

    #[test]
    fn custom_tool_input_may_be_any_text() {
        for input in ["not json", ""] {
            let answer = of_message(
                &format!(
                    r#"{{"content":null,"tool_calls":[{{"id":"a","type":"custom","function":null,"custom":{{"name":"f","input":"{input}"}}}}]}}"#
                ),
                "\"tool_calls\"",
            );

            assert_eq!(answer.unwrap().parts, [call(Some("a"), "f", input)]);
        }
    }

    #[test]
    fn the_finish_reason_is_read() {
        for (reason, finish) in [
            ("\"stop\"", Finish::Done),
            ("\"eos\"", Finish::Done),
            ("null", Finish::Done),
            ("\"length\"", Finish::MaxOutputTokens),
            ("\"content_filter\"", Finish::ContentFilter),
        ] {
            let answer = of_message(r#"{"content":"a"}"#, reason).unwrap();

            assert_eq!(answer.finish, finish, "{reason}");
        }
        let answer = read(br#"{"choices":[{"message":{"content":"a"}}]}"#).unwrap();
        assert_eq!(answer.finish, Finish::Done);
    }

    #[test]
    fn only_a_truncated_answer_may_be_empty() {
        for content in ["null", "\"\"", "[]"] {
            let empty = format!(r#"{{"content":{content},"reasoning":"a","tool_calls":[]}}"#);

            assert_eq!(of_message(&empty, "\"stop\""), None);
            for reason in ["\"length\"", "\"content_filter\""] {
                let answer = of_message(&empty, reason).unwrap();
                assert_eq!(
                    answer.parts[1..],
                    [message(
                        r#"[{"type":"output_text","text":"","annotations":[],"logprobs":[]}]"#
                    )]
                );
            }
        }
    }

    #[test]
    fn unreadable_answers_are_malformed() {
        let deep = format!(
            r#"{{"choices":[{{"message":{{"content":"a","x":{}1{}}}}}]}}"#,
            "[".repeat(100_000),
            "]".repeat(100_000)
        );
        for body in [
            "",
            "<html>",
            "[]",
            r#"{"choices":[]}"#,
            r#"{"choices":{}}"#,
            r#"{"choices":[5]}"#,
            r#"{"choices":[{"message":"a"}]}"#,
            r#"{"choices":[{"message":{"content":"a"}}]"#,
            r#"{"choices":[{"message":{"tool_calls":[{"custom":{"name":"f"}}]}}]}"#,
            r#"{"choices":[{"message":{"tool_calls":[{"function":{"name":5}}]}}]}"#,
            &deep,
        ] {
            assert_eq!(
                read(body.as_bytes()),
                Err(Failure::malformed()),
                "{}",
                &body[..body.len().min(80)]
            );
        }
        assert_eq!(
            read(b"{\"choices\":[{\"message\":{\"content\":\"\xff\"}}]}"),
            Err(Failure::malformed())
        );
    }

    #[test]
    fn an_error_instead_of_an_answer_is_a_failure() {
        for (body, error) in [
            (r#"{"error":{"code":429}}"#, r#"{"code":429}"#),
            (r#"{"error":"down","choices":[]}"#, "null"),
            (
                r#"{"error":null,"choices":[{"message":{"content":"a"},"finish_reason":"error"}]}"#,
                "null",
            ),
        ] {
            assert_eq!(
                read(body.as_bytes()),
                Err(Failure::of_error(error)),
                "{body}"
            );
        }
    }

    #[test]
    fn malformed_token_counts_are_0() {
        for usage in [
            "null",
            "[]",
            "{}",
            r#"{"prompt_tokens":"9","completion_tokens":-1,"prompt_tokens_details":5}"#,
            r#"{"prompt_tokens":1.5,"completion_tokens":1e400}"#,
        ] {
            let body =
                format!(r#"{{"choices":[{{"message":{{"content":"a"}}}}],"usage":{usage}}}"#);

            assert_eq!(read(body.as_bytes()).unwrap().usage, Usage::default());
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&bytes);
        }

        #[test]
        fn corrupted_answers_never_panic(
            changes in prop::collection::vec(
                (0..WHOLE.len(), 0..9_usize, prop::sample::select(vec![
                    "\"", "\\", "\\ud800", "{", "}", "[", "]", ",", ":", "null", "7", "\"a\"", "[{}]", "{\"a\":1}", "ä",
                ])),
                1..6,
            )
        ) {
            let mut bytes = WHOLE.as_bytes().to_vec();
            for (at, length, piece) in changes {
                let start = at.min(bytes.len());
                let end = (start + length).min(bytes.len());
                bytes.splice(start..end, piece.bytes());
            }
            if let Ok(answer) = read(&bytes) {
                for part in answer.parts {
                    if let AnswerPart::Message(json) | AnswerPart::Item(json) = part {
                        prop_assert_eq!(Json::parse(json.as_str()), Ok(json));
                    }
                }
            }
        }
    }
}
