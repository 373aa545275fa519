use proptest::prelude::*;

use super::*;
use crate::openai_responses::answer;
use threadkeep_responses::AnswerPart;

const REASONING: &str = r#"{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"x"}"#;
const CONTENT: &str = r#"[{"type":"output_text","text":"Hé\n😀","annotations":[{"a":1}],"logprobs":[]},{"type":"refusal","refusal":"no"}]"#;

fn event(kind: &str, members: &str) -> String {
    format!(r#"{{"type":"response.{kind}",{members}}}"#)
}

fn item(index: usize, item: &str) -> String {
    format!(r#""output_index":{index},"item":{item}"#)
}

fn delta(index: usize, delta: &str) -> String {
    format!(r#""output_index":{index},"delta":"{delta}""#)
}

fn message(content: &str) -> String {
    format!(r#"{{"type":"message","id":"msg_1","role":"assistant","content":{content}}}"#)
}

fn call(arguments: &str) -> String {
    format!(
        r#"{{"type":"function_call","id":"fc_1","call_id":"call_1","name":"kv_get","arguments":"{arguments}"}}"#
    )
}

fn response() -> String {
    let output = [
        REASONING.into(),
        message(CONTENT),
        call(r#"{\"key\":\"ä\"}"#),
    ]
    .join(",");
    format!(
        r#"{{"status":"completed","error":null,"output":[{output}],"usage":{{"input_tokens":9}}}}"#
    )
}

fn events() -> Vec<String> {
    vec![
        event(
            "created",
            r#""response":{"status":"in_progress","error":null}"#,
        ),
        event(
            "output_item.added",
            &item(0, r#"{"type":"reasoning","id":"rs_1","summary":[]}"#),
        ),
        event("reasoning_summary_text.delta", &delta(0, "hm")),
        event("output_item.done", &item(0, REASONING)),
        event("output_item.added", &item(1, &message("[]"))),
        event(
            "content_part.added",
            r#""output_index":1,"content_index":0,"part":{}"#,
        ),
        event("output_text.delta", &delta(1, "Hé")),
        event("output_text.delta", &delta(1, r"\n😀")),
        event(
            "output_text.annotation.added",
            r#""output_index":1,"content_index":0,"annotation":{"a":1}"#,
        ),
        event("refusal.delta", &delta(1, "no")),
        event("output_item.done", &item(1, &message(CONTENT))),
        event("output_item.added", &item(2, &call(""))),
        event("function_call_arguments.delta", &delta(2, r#"{\"key\""#)),
        event("function_call_arguments.delta", &delta(2, r#":\"ä\"}"#)),
        event("output_item.done", &item(2, &call(r#"{\"key\":\"ä\"}"#))),
        event("completed", &format!(r#""response":{}"#, response())),
    ]
}

fn read(events: &[String]) -> (Result<ModelAnswer, Failure>, Vec<Piece>) {
    let names = Names::default();
    let mut stream = ResponseStream::new(&names, 10_000);
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
            (Ok(answer), pieces)
        }
        Err(failure) => (Err(failure), pieces),
    }
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

fn json(text: &str) -> Json {
    Json::parse(text).unwrap()
}

fn arguments(part: usize, text: &str) -> Piece {
    let text = text.into();
    Piece::Arguments { part, text }
}

fn texts_of(pieces: &[Piece]) -> Vec<(usize, Option<TextKind>, String)> {
    let mut texts: Vec<(usize, Option<TextKind>, String)> = Vec::new();
    for piece in pieces {
        let (part, kind, text) = match piece {
            Piece::Text {
                kind: TextKind::Summary,
                ..
            } => continue,
            Piece::Text {
                part, kind, text, ..
            } => (*part, Some(*kind), text),
            Piece::Arguments { part, text } => (*part, None, text),
            _ => continue,
        };
        match texts
            .iter_mut()
            .find(|existing| (existing.0, existing.1) == (part, kind))
        {
            Some(existing) => existing.2.push_str(text),
            None => texts.push((part, kind, text.clone())),
        }
    }
    texts
}

#[test]
fn a_streamed_answer_equals_a_complete_answer() {
    let (streamed, pieces) = read(&events());

    let whole = answer::read(response().as_bytes(), &Names::default());
    assert_eq!(streamed.unwrap(), whole.unwrap());
    let begin = Piece::Call {
        part: 2,
        id: Some("call_1".into()),
        name: "kv_get".into(),
    };
    assert_eq!(
        pieces,
        [
            Piece::Item {
                part: 0,
                item: json(r#"{"type":"reasoning","id":"rs_1","summary":[]}"#)
            },
            text_of(TextKind::Summary, 0, 0, "hm"),
            Piece::ItemDone {
                part: 0,
                item: json(REASONING)
            },
            Piece::Message {
                part: 1,
                message: json("[]")
            },
            text(1, "Hé"),
            text(1, "\n😀"),
            Piece::Annotation {
                part: 1,
                text_index: 0,
                annotation: json(r#"{"a":1}"#)
            },
            text_of(TextKind::Refusal, 1, 1, "no"),
            begin,
            arguments(2, "{\"key\""),
            arguments(2, ":\"ä\"}"),
        ]
    );
}

#[test]
fn missing_deltas_are_completed_from_later_events() {
    let (whole, pieces) = read(&events());
    let whole = whole.unwrap();
    let is_delta = |event: &String| event.contains(".delta") || event.contains(".annotation.");
    let is_item = |event: &String| event.contains("output_item");
    let without_deltas = events().into_iter().filter(|event| !is_delta(event));
    let without_items = without_deltas.clone().filter(|event| !is_item(event));
    let mut half = events();
    for at in [13, 9, 7] {
        half.remove(at);
    }
    for events in [half, without_deltas.collect(), without_items.collect()] {
        let (answer, later_pieces) = read(&events);

        assert_eq!(answer.unwrap(), whole);
        assert_eq!(texts_of(&later_pieces), texts_of(&pieces));
    }
}

#[test]
fn items_keep_the_upstream_order_despite_late_text() {
    let events = [
        event("output_item.added", &item(0, &message("[]"))),
        event("output_item.added", &item(1, &call(""))),
        event("output_item.done", &item(1, &call("{}"))),
        event("output_text.delta", &delta(0, "late")),
        event("completed", r#""response":{"output":[]}"#),
    ];

    let (answer, pieces) = read(&events);

    assert!(matches!(pieces[0], Piece::Message { part: 0, .. }));
    assert!(matches!(pieces[1], Piece::Call { part: 1, .. }));
    assert!(matches!(
        answer.unwrap().parts[..],
        [AnswerPart::Message(_), AnswerPart::Call { .. }]
    ));
}

#[test]
fn reasoning_texts_and_extra_message_members_are_kept() {
    let reasoning = r#"{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"a"},{"type":"summary_text","text":"b"}],"content":[{"type":"reasoning_text","text":"c"}]}"#;
    let phased = r#"{"type":"message","id":"msg_1","role":"assistant","status":"completed","phase":"commentary","new":null,"content":[{"type":"output_text","text":"d"}]}"#;
    let events = [
        event(
            "output_item.added",
            &item(0, r#"{"type":"reasoning","id":"rs_1","summary":[]}"#),
        ),
        event(
            "reasoning_text.delta",
            r#""output_index":0,"content_index":0,"delta":"c""#,
        ),
        event(
            "reasoning_summary_text.delta",
            r#""output_index":0,"summary_index":0,"delta":"a""#,
        ),
        event(
            "reasoning_summary_text.delta",
            r#""output_index":0,"summary_index":1,"delta":"b""#,
        ),
        event("output_item.done", &item(0, reasoning)),
        event("output_item.done", &item(1, phased)),
        event("completed", r#""response":{"output":[]}"#),
    ];

    let (answer, pieces) = read(&events);

    assert_eq!(
        pieces[1..4],
        [
            text_of(TextKind::Reasoning, 0, 0, "c"),
            text_of(TextKind::Summary, 0, 0, "a"),
            text_of(TextKind::Summary, 0, 1, "b"),
        ]
    );
    assert_eq!(
        answer.unwrap().parts,
        [
            AnswerPart::Item(json(reasoning)),
            AnswerPart::Message(json(
                r#"{"phase":"commentary","content":[{"type":"output_text","text":"d"}]}"#
            ))
        ]
    );
}

#[test]
fn deltas_that_contradict_the_item_are_malformed() {
    for (at, wrong) in [
        (7, event("output_text.delta", &delta(1, "x"))),
        (13, event("function_call_arguments.delta", &delta(2, "x"))),
        (6, event("output_text.delta", &delta(7, "x"))),
        (6, event("function_call_arguments.delta", &delta(1, "x"))),
        (6, "<html>".into()),
        (3, event("output_item.done", r#""output_index":0,"new":1"#)),
    ] {
        let mut events = events();
        events[at] = wrong;
        assert_eq!(read(&events).0, Err(Failure::malformed()), "{at}");
    }
}

#[test]
fn a_stream_without_its_last_event_was_cut_off() {
    let events = events();

    for end in 0..events.len() {
        assert_eq!(read(&events[..end]).0, Err(Failure::malformed()), "{end}");
    }
}

#[test]
fn errors_in_a_stream_are_failures() {
    for (error, failure) in [
        (
            r#"{"type":"error","code":"rate_limit_exceeded","message":"org"}"#.to_owned(),
            Failure::of_error(r#"{"code":429}"#),
        ),
        (
            r#"{"type":"error","error":{"code":"server_error"}}"#.into(),
            Failure::of_error("null"),
        ),
        (
            r#"{"error":{"code":503}}"#.into(),
            Failure::of_error("null"),
        ),
        (
            event(
                "failed",
                r#""response":{"status":"failed","error":{"code":"server_error"}}"#,
            ),
            Failure::of_error("null"),
        ),
    ] {
        let mut events = events();
        events[8] = error;
        let (answer, pieces) = read(&events);
        assert_eq!(answer, Err(failure));
        assert_eq!(
            texts_of(&pieces),
            [(1, Some(TextKind::Text), "Hé\n😀".into())]
        );
    }
}

#[test]
fn items_count_toward_the_size_limit() {
    let long = "a".repeat(30);
    for (begin, more) in [
        (message("[]"), event("output_text.delta", &delta(0, &long))),
        (
            call(""),
            event("function_call_arguments.delta", &delta(0, &long)),
        ),
    ] {
        let names = Names::default();
        let mut stream = ResponseStream::new(&names, 100);
        let begin = event("output_item.added", &item(0, &begin));
        let _ = stream.event(None, &begin).unwrap();
        let mut results = (0..4).map(|_| stream.event(None, &more));
        assert!(results.any(|result| result == Err(Failure::too_long())));
    }
    let names = Names::default();
    let mut stream = ResponseStream::new(&names, 100);
    let mut done = (0..3).map(|index| {
        let done = event("output_item.done", &item(index, REASONING));
        stream.event(None, &done)
    });
    assert!(done.any(|result| result == Err(Failure::too_long())));
}

proptest! {
    #[test]
    fn corrupted_streams_never_panic(
        at in 0..16_usize,
        changes in prop::collection::vec(
            (0..200_usize, 0..9_usize, prop::sample::select(vec![
                "\"", "\\", "\\ud800", "{", "}", "[", "]", ",", ":", "null", "7", "\"a\"", "[{}]", "ä",
            ])),
            0..5,
        )
    ) {
        let mut events = events();
        let mut bytes = events[at].as_bytes().to_vec();
        for (at, length, piece) in changes {
            let start = at.min(bytes.len());
            let end = (start + length).min(bytes.len());
            bytes.splice(start..end, piece.bytes());
        }
        events[at] = String::from_utf8_lossy(&bytes).into_owned();
        if let (Ok(answer), _) = read(&events) {
            for part in &answer.parts {
                if let AnswerPart::Message(json) | AnswerPart::Item(json) = part {
                    let checked = Json::parse(json.as_str());
                    prop_assert_eq!(checked.as_ref(), Ok(json));
                }
            }
        }
    }
}
