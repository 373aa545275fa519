use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::answer::ensure_message;
use crate::openai_chat::answer;
use threadkeep_responses::AnswerPart;

fn chunk(delta: &str) -> String {
    format!(r#"{{"choices":[{{"index":0,"delta":{delta},"finish_reason":null}}]}}"#)
}

fn end(reason: &str) -> String {
    format!(r#"{{"choices":[{{"index":0,"delta":{{}},"finish_reason":"{reason}"}}]}}"#)
}

fn read(events: &[String]) -> (Result<ModelAnswer, Failure>, Vec<Piece>) {
    let mut stream = ChatStream::new(10_000);
    let mut pieces = Vec::new();
    for event in events {
        let read = stream.event(None, event);
        pieces.append(stream.pieces());
        match read {
            Ok(ControlFlow::Continue(())) => {}
            Ok(ControlFlow::Break(())) => break,
            Err(failure) => return (Err(failure), pieces),
        }
    }
    match stream.end() {
        Ok((answer, last)) => {
            pieces.extend(last);
            (ensure_message(answer, false), pieces)
        }
        Err(failure) => (Err(failure), pieces),
    }
}

fn of_deltas(deltas: &[&str]) -> (Result<ModelAnswer, Failure>, Vec<Piece>) {
    let mut events: Vec<_> = deltas.iter().map(|delta| chunk(delta)).collect();
    events.push(end("stop"));
    read(&events)
}

fn text_of(kind: TextKind, part: usize, index: usize, text: &str) -> Piece {
    let text = text.into();
    Piece::Text {
        part,
        kind,
        text_index: index,
        text,
    }
}

fn text(part: usize, text: &str) -> Piece {
    text_of(TextKind::Text, part, 0, text)
}

fn begun(part: usize) -> Piece {
    let message = Json::parse("[]").unwrap();
    Piece::Message { part, message }
}

fn thought(text: &str) -> Json {
    let item = format!(
        r#"{{"type":"reasoning","summary":[],"content":[{{"type":"reasoning_text","text":"{text}"}}]}}"#
    );
    Json::parse(&item).unwrap()
}

fn arguments(part: usize, text: &str) -> Piece {
    let text = text.into();
    Piece::Arguments { part, text }
}

fn call(part: usize, id: Option<&str>, name: &str) -> Piece {
    let (id, name) = (id.map(Into::into), name.into());
    Piece::Call { part, id, name }
}

/// Asserts that the pieces, joined together, equal the parts of the answer.
#[track_caller]
fn assert_whole(answer: &ModelAnswer, pieces: &[Piece]) {
    for (number, part) in answer.parts.iter().enumerate() {
        let (mut texts, mut refusals, mut heads) = (String::new(), String::new(), Vec::new());
        for piece in pieces {
            match piece {
                Piece::Text {
                    part, kind, text, ..
                } if *part == number => match kind {
                    TextKind::Refusal => refusals += text,
                    _ => texts += text,
                },
                Piece::Arguments { part, text } if *part == number => texts += text,
                Piece::Call { part, id, name } if *part == number => {
                    heads.push((id.clone(), name.clone()));
                }
                _ => {}
            }
        }
        match part {
            AnswerPart::Item(item) => {
                let item: Value = serde_json::from_str(item.as_str()).unwrap();
                assert_eq!(texts, item["content"][0]["text"]);
            }
            AnswerPart::Message(content) => {
                let content: Value = serde_json::from_str(content.as_str()).unwrap();
                let all = |name: &str| -> String {
                    let parts = content.as_array().unwrap().iter();
                    parts.filter_map(|part| part[name].as_str()).collect()
                };
                assert_eq!((texts, refusals), (all("text"), all("refusal")));
            }
            AnswerPart::Call {
                id,
                name,
                arguments,
            } => {
                assert_eq!(&texts, arguments);
                assert_eq!(heads, [(id.clone(), name.clone())]);
            }
        }
    }
}

#[test]
fn a_streamed_answer_equals_a_complete_answer() {
    let whole = json!({
        "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
            "role": "assistant", "reasoning_content": "hm \"2\"", "content": "Hé\n😀", "refusal": "no",
            "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "kv_get", "arguments": "{\"key\":\"ä\"}"}},
                {"id": "call_2", "type": "function", "function": {"name": "list", "arguments": ""}}]}}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 4}},
    });
    let usage = json!({"choices": [], "usage": whole["usage"]}).to_string();
    let null_usage = r#"{"choices":[],"usage":null}"#.to_owned();
    let events = [
        r#"{"choices":[],"prompt_filter_results":[{"a":1}]}"#.to_owned(),
        chunk(r#"{"role":"assistant","content":"","reasoning_content":"hm "}"#),
        chunk(r#"{"content":null,"reasoning_content":"\"2\""}"#),
        chunk(r#"{"content":"Hé"}"#),
        chunk(r#"{"content":""}"#),
        chunk(r#"{"content":"\n😀"}"#),
        chunk(r#"{"refusal":"n"}"#),
        chunk(r#"{"refusal":"o","tool_calls":null}"#),
        chunk(
            r#"{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"kv_get","arguments":""}}]}"#,
        ),
        chunk(r#"{"tool_calls":[{"index":0,"function":{"arguments":"{\"key\""}}]}"#),
        chunk(
            r#"{"tool_calls":[{"index":1,"id":"call_2","type":"function","function":{"name":"list","arguments":""}},{"index":0,"function":{"arguments":":\"ä\"}"}}]}"#,
        ),
        end("tool_calls"),
        null_usage,
        usage,
        "[DONE]".into(),
    ];

    let (streamed, pieces) = read(&events);

    let streamed = streamed.unwrap();
    assert_eq!(
        streamed,
        answer::read(whole.to_string().as_bytes()).unwrap()
    );
    assert_whole(&streamed, &pieces);
    assert_eq!(
        pieces,
        [
            Piece::Item {
                part: 0,
                item: thought("")
            },
            text_of(TextKind::Reasoning, 0, 0, "hm "),
            text_of(TextKind::Reasoning, 0, 0, "\"2\""),
            Piece::ItemDone {
                part: 0,
                item: thought(r#"hm \"2\""#)
            },
            begun(1),
            text(1, "Hé"),
            text(1, "\n😀"),
            text_of(TextKind::Refusal, 1, 1, "n"),
            text_of(TextKind::Refusal, 1, 1, "o"),
            call(2, Some("call_1"), "kv_get"),
            arguments(2, "{\"key\""),
            call(3, Some("call_2"), "list"),
            arguments(2, ":\"ä\"}"),
            arguments(3, "{}"),
        ]
    );
}

#[test]
fn parts_have_the_order_in_which_they_begin() {
    let (answer, pieces) = of_deltas(&[
        r#"{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]}"#,
        r#"{"content":"t"}"#,
        r#"{"reasoning":"r"}"#,
        r#"{"content":"u"}"#,
    ]);

    let answer = answer.unwrap();
    assert!(matches!(
        answer.parts[..],
        [
            AnswerPart::Call { .. },
            AnswerPart::Message(_),
            AnswerPart::Item(_)
        ]
    ));
    assert_whole(&answer, &pieces);
    let begins = pieces.iter().filter_map(|piece| match piece {
        Piece::Call { part, .. } | Piece::Message { part, .. } | Piece::Item { part, .. } => {
            Some(*part)
        }
        _ => None,
    });
    assert_eq!(begins.collect::<Vec<_>>(), [0, 1, 2]);
}

#[test]
fn calls_are_read_in_each_server_format() {
    for deltas in [
        // the same call in one delta, without an index, with repeated ids, with object arguments, or with a late name
        vec![
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"k\":1}"}}]}"#,
        ],
        vec![
            r#"{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{\"k\""}}]}"#,
            r#"{"tool_calls":[{"function":{"arguments":":1}"}}]}"#,
        ],
        vec![
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"k\""}}]}"#,
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":":1}"}}]}"#,
        ],
        vec![r#"{"tool_calls":[{"id":"a","function":{"name":"f","arguments":{"k":1}}}]}"#],
        vec![
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"arguments":"{\"k\":"}}]}"#,
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"1}"}}]}"#,
        ],
    ] {
        let (answer, pieces) = of_deltas(&deltas);

        let answer = answer.unwrap();
        let whole = AnswerPart::Call {
            id: Some("a".into()),
            name: "f".into(),
            arguments: r#"{"k":1}"#.into(),
        };
        assert_eq!(answer.parts, [whole], "{deltas:?}");
        assert_whole(&answer, &pieces);
    }
}

#[test]
fn the_older_form_and_calls_without_arguments_are_read() {
    let (answer, pieces) = of_deltas(&[
        r#"{"function_call":{"name":"f","arguments":"a "}}"#,
        r#"{"function_call":{"arguments":"b"}}"#,
    ]);
    assert_whole(&answer.unwrap(), &pieces);
    assert_eq!(
        pieces,
        [call(0, None, "f"), arguments(0, "a "), arguments(0, "b")]
    );

    let (answer, pieces) = of_deltas(&[r#"{"tool_calls":[{"index":0,"function":{"name":"f"}}]}"#]);
    assert_whole(&answer.unwrap(), &pieces);
    assert_eq!(pieces, [call(0, None, "f"), arguments(0, "{}")]);
}

#[test]
fn content_in_parts_is_read_and_other_choices_are_not() {
    let (answer, pieces) = read(&[
        chunk(r#"{"content":[{"type":"text","text":"a"},{"type":"thinking","thinking":[]}]}"#),
        r#"{"choices":[{"index":1,"delta":{"content":"x"},"finish_reason":"length"}]}"#.into(),
        r#"{"choices":[{"index":1,"delta":{"content":"x"}},{"index":0,"delta":{"content":"b"}}]}"#.into(),
        r#"{"choices":[{"delta":{"content":"c"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1}}"#.into(),
    ]);

    assert_eq!(pieces, [begun(0), text(0, "a"), text(0, "b"), text(0, "c")]);
    let answer = answer.unwrap();
    assert_eq!(
        (answer.finish, answer.usage.input_tokens),
        (Finish::Done, 1)
    );
}

#[test]
fn a_stream_without_a_finish_reason_was_cut_off() {
    for events in [
        vec![],
        vec![chunk(r#"{"content":"a"}"#)],
        vec![chunk(r#"{"content":"a"}"#), "[DONE]".into()],
        vec![end("")],
        vec!["[DONE]".into(), end("stop")],
    ] {
        assert_eq!(read(&events).0, Err(Failure::malformed()), "{events:?}");
    }
}

#[test]
fn only_a_truncated_stream_may_be_empty() {
    let thought = chunk(r#"{"reasoning":"a"}"#);
    assert_eq!(
        read(&[thought.clone(), end("stop")]).0,
        Err(Failure::malformed())
    );

    let (answer, _) = read(&[thought, end("length")]);

    let answer = answer.unwrap();
    let [AnswerPart::Item(_), AnswerPart::Message(content)] = &answer.parts[..] else {
        panic!("{answer:?}");
    };
    assert!(content.as_str().contains(r#""text":"""#));
}

#[test]
fn ids_and_indexes_of_calls_count_as_bytes_of_the_answer() {
    let call = |number: usize| {
        let (index, id) = ("i".repeat(500), "d".repeat(500));
        chunk(&format!(
            r#"{{"tool_calls":[{{"index":"{number}{index}","id":"{number}{id}"}}]}}"#
        ))
    };
    let mut stream = ChatStream::new(10_000);
    let taken = (0..).take_while(|number| stream.event(None, &call(*number)).is_ok());

    // 1.5 KB each
    assert_eq!(taken.count(), 6);
}

#[test]
fn an_unreadable_event_or_an_error_ends_the_stream() {
    let a = chunk(r#"{"content":"a"}"#);
    for event in ["<html>", "{\"choices\":", "data"] {
        let (answer, pieces) = read(&[a.clone(), event.into(), end("stop")]);

        assert_eq!(answer, Err(Failure::malformed()));
        assert_eq!(pieces, [begun(0), text(0, "a")]);
    }
    for (event, error) in [
        (r#"{"error":{"code":429}}"#, r#"{"code":429}"#),
        (r#"{"error":"down","choices":[]}"#, "null"),
        (
            r#"{"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}"#,
            "null",
        ),
    ] {
        let (answer, _) = read(&[a.clone(), event.into(), end("stop")]);

        assert_eq!(answer, Err(Failure::of_error(error)), "{event}");
    }
    let mut stream = ChatStream::new(100);
    let named = stream.event(Some("error"), r#"{"code":401}"#);
    assert_eq!(named, Err(Failure::of_error(r#"{"code":401}"#)));
}

#[test]
fn custom_tool_input_is_streamed_in_deltas() {
    let deltas = [
        r#"{"tool_calls":[{"index":0,"id":"a","type":"custom","custom":{"name":"f","input":""}}]}"#,
        r#"{"tool_calls":[{"index":0,"custom":{"input":"not "}}]}"#,
        r#"{"tool_calls":[{"index":0,"custom":{"input":"json"}}]}"#,
        r#"{"tool_calls":[{"index":1,"id":"b","type":"custom","custom":{"name":"g","input":""}}]}"#,
    ];

    let (answer, pieces) = of_deltas(&deltas);

    let call = |id: &str, name: &str, arguments: &str| AnswerPart::Call {
        id: Some(id.into()),
        name: name.into(),
        arguments: arguments.into(),
    };
    let parts = [call("a", "f", "not json"), call("b", "g", "")];
    assert_eq!(answer.unwrap().parts, parts);
    let texts = pieces.iter().filter_map(|piece| match piece {
        Piece::Arguments { text, .. } => Some(text.as_str()),
        _ => None,
    });
    assert_eq!(texts.collect::<Vec<_>>(), ["not ", "json"]);
}

#[test]
fn a_call_without_a_name_is_malformed() {
    let deltas = [r#"{"tool_calls":[{"index":0,"id":"a","other":{"name":"f"}}]}"#];

    assert_eq!(of_deltas(&deltas).0, Err(Failure::malformed()));
}

#[test]
fn text_reasoning_and_calls_count_toward_the_size_limit() {
    for delta in [
        r#"{"content":"aaaaaaaaaa"}"#,
        r#"{"reasoning":"aaaaaaaaaa"}"#,
        r#"{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"aaaaaaaaaa"}}]}"#,
        r#"{"tool_calls":[{"index":0,"function":{"name":"aaaaaaaaaaa"}}]}"#,
    ] {
        let mut stream = ChatStream::new(20);
        let chunk = chunk(delta);
        let mut results = (0..3).map(|_| stream.event(None, &chunk));

        assert!(
            results.any(|result| result == Err(Failure::too_long())),
            "{delta}"
        );
    }
}

const EVENT: &str = r#"{"choices":[{"index":0,"delta":{"content":"ä\ud83d","reasoning":"r","refusal":"n","tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"k\":1}"}}]},"finish_reason":"stop"}],"usage":{"prompt_tokens":3}}"#;

proptest! {
    #[test]
    fn arbitrary_events_never_panic(data in ".{0,80}") {
        let _ = read(&[data, end("stop")]);
    }

    #[test]
    fn corrupted_events_never_panic_or_produce_invalid_pieces(
        changes in prop::collection::vec(
            (0..EVENT.len(), 0..9_usize, prop::sample::select(vec![
                "\"", "\\", "\\ud800", "\\ude00", "{", "}", "[", "]", ",", ":", "null", "7", "\"a\"", "[{}]", "ä",
            ])),
            0..5,
        )
    ) {
        let mut bytes = EVENT.as_bytes().to_vec();
        for (at, length, piece) in changes {
            let start = at.min(bytes.len());
            let end = (start + length).min(bytes.len());
            bytes.splice(start..end, piece.bytes());
        }
        let event = String::from_utf8_lossy(&bytes).into_owned();
        let (answer, pieces) = read(&[EVENT.into(), event, EVENT.into()]);
        if let Ok(answer) = answer {
            for part in &answer.parts {
                if let AnswerPart::Message(json) | AnswerPart::Item(json) = part {
                    let checked = Json::parse(json.as_str());
                    prop_assert_eq!(checked.as_ref(), Ok(json));
                }
            }
        }
        let is_empty = |piece: &Piece| match piece {
            Piece::Text { text, .. } | Piece::Arguments { text, .. } => text.is_empty(),
            Piece::Call { name, .. } => name.is_empty(),
            Piece::Void => true,
            _ => false,
        };
        prop_assert!(!pieces.iter().any(is_empty));
    }
}
