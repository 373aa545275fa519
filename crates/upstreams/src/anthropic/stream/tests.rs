use proptest::prelude::*;

use super::*;
use crate::anthropic::answer;
use threadkeep_domain::Json;
use threadkeep_responses::AnswerPart;
use threadkeep_responses::TextKind;

const BLOCKS: &str = r#"[
    {"type":"thinking","thinking":"hm \"2\"","signature":"s"},
    {"type":"text","text":"Hé\n😀"},
    {"type":"tool_use","id":"toolu_1","name":"kv_get","input":{"key":"ä"}},
    {"type":"tool_use","id":"toolu_2","name":"list","input":{}}]"#;
const USAGE: &str = r#"{"input_tokens":9,"cache_creation_input_tokens":1,"cache_read_input_tokens":4,"output_tokens":5,"output_tokens_details":{"thinking_tokens":2}}"#;

fn begin(index: usize, block: &str) -> String {
    format!(r#"{{"type":"content_block_start","index":{index},"content_block":{block}}}"#)
}

fn delta(index: usize, delta: &str) -> String {
    format!(r#"{{"type":"content_block_delta","index":{index},"delta":{delta}}}"#)
}

fn stop(index: usize) -> String {
    format!(r#"{{"type":"content_block_stop","index":{index}}}"#)
}

fn end(reason: &str) -> [String; 2] {
    let usage = r#"{"output_tokens":5,"output_tokens_details":{"thinking_tokens":2}}"#;
    [
        format!(
            r#"{{"type":"message_delta","delta":{{"stop_reason":"{reason}"}},"usage":{usage}}}"#
        ),
        r#"{"type":"message_stop"}"#.into(),
    ]
}

fn read(events: &[String]) -> (Result<ModelAnswer, Failure>, Vec<Piece>) {
    let names = Names::default();
    let mut stream = MessageStream::new(&names, 10_000);
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

fn text_of(kind: TextKind, part: usize, text: &str) -> Piece {
    let text = text.into();
    Piece::Text {
        part,
        kind,
        text_index: 0,
        text,
    }
}

fn text(part: usize, text: &str) -> Piece {
    text_of(TextKind::Text, part, text)
}

fn begun(part: usize) -> Piece {
    let message = Json::parse("[]").unwrap();
    Piece::Message { part, message }
}

fn behind_thinking(pieces: &[Piece]) -> &[Piece] {
    let end = |piece: &Piece| matches!(piece, Piece::ItemDone { part: 0, .. });
    let end = pieces.iter().position(end).unwrap();
    &pieces[end + 1..]
}

fn arguments(part: usize, text: &str) -> Piece {
    let text = text.into();
    Piece::Arguments { part, text }
}

fn call(part: usize, id: &str, name: &str) -> Piece {
    let (id, name) = (Some(id.into()), name.into());
    Piece::Call { part, id, name }
}

fn events() -> Vec<String> {
    let usage = r#"{"input_tokens":9,"cache_creation_input_tokens":1,"cache_read_input_tokens":4,"output_tokens":1}"#;
    let mut events = vec![
        format!(r#"{{"type":"message_start","message":{{"content":[],"usage":{usage}}}}}"#),
        r#"{"type":"ping"}"#.into(),
        begin(0, r#"{"type":"thinking","thinking":"","signature":""}"#),
        delta(0, r#"{"type":"thinking_delta","thinking":"hm "}"#),
        delta(0, r#"{"type":"thinking_delta","thinking":"\"2\""}"#),
        delta(0, r#"{"type":"signature_delta","signature":"s"}"#),
        stop(0),
        begin(1, r#"{"type":"text","text":""}"#),
        delta(1, r#"{"type":"text_delta","text":"Hé"}"#),
        delta(1, r#"{"type":"citations_delta","citation":{"a":1}}"#),
        delta(1, r#"{"type":"text_delta","text":"\n😀"}"#),
        stop(1),
        begin(
            2,
            r#"{"type":"tool_use","id":"toolu_1","name":"kv_get","input":{}}"#,
        ),
        delta(2, r#"{"type":"input_json_delta","partial_json":""}"#),
        delta(
            2,
            r#"{"type":"input_json_delta","partial_json":"{\"key\""}"#,
        ),
        delta(2, r#"{"type":"input_json_delta","partial_json":":\"ä\"}"}"#),
        stop(2),
        begin(
            3,
            r#"{"type":"tool_use","id":"toolu_2","name":"list","input":{}}"#,
        ),
        stop(3),
    ];
    events.extend(end("tool_use"));
    events
}

#[test]
fn a_streamed_answer_equals_a_complete_answer() {
    let whole = format!(r#"{{"content":{BLOCKS},"stop_reason":"tool_use","usage":{USAGE}}}"#);

    let (streamed, pieces) = read(&events());

    let whole = answer::read(whole.as_bytes(), &Names::default());
    let streamed = streamed.unwrap();
    assert_eq!(streamed, whole.unwrap());
    let AnswerPart::Item(thinking) = &streamed.parts[0] else {
        panic!("{streamed:?}");
    };
    assert!(matches!(pieces[0], Piece::Item { part: 0, .. }));
    assert_eq!(
        pieces[1..4],
        [
            text_of(TextKind::Summary, 0, "hm "),
            text_of(TextKind::Summary, 0, "\"2\""),
            Piece::ItemDone {
                part: 0,
                item: thinking.clone()
            },
        ]
    );
    assert_eq!(
        behind_thinking(&pieces),
        [
            begun(1),
            text(1, "Hé"),
            text(1, "\n😀"),
            call(2, "toolu_1", "kv_get"),
            arguments(2, "{\"key\""),
            arguments(2, ":\"ä\"}"),
            call(3, "toolu_2", "list"),
            arguments(3, "{}"),
        ]
    );
}

#[test]
fn a_stream_without_its_last_event_was_cut_off() {
    let events = events();

    for end in 0..events.len() {
        assert_eq!(read(&events[..end]).0, Err(Failure::malformed()), "{end}");
    }
}

#[test]
fn original_names_are_restored_and_input_may_arrive_at_once() {
    let mut names = Names::default();
    names.encode("kv.get");
    let mut stream = MessageStream::new(&names, 1_000);
    let block = r#"{"type":"tool_use","id":"a","name":"kv_get","input":{"k":1}}"#;

    for event in [begin(0, block)].iter().chain(&end("tool_use")) {
        let _ = stream.event(None, event).unwrap();
    }

    let (_, pieces) = stream.end().unwrap();
    assert_eq!(pieces, [call(0, "a", "kv.get"), arguments(0, "{\"k\":1}")]);
}

#[test]
fn an_unreadable_event_or_an_error_ends_the_stream() {
    let error = r#"{"type":"overloaded_error","message":"org"}"#;
    for (event, failure) in [
        ("<html>".to_owned(), Failure::malformed()),
        (delta(7, r#"{"text":"a"}"#), Failure::malformed()),
        (
            begin(7, r#"{"type":"tool_use","id":"a"}"#),
            Failure::malformed(),
        ),
        (
            format!(r#"{{"type":"error","error":{error}}}"#),
            Failure::of_error(error),
        ),
    ] {
        let mut events = events();
        events.insert(9, event);

        let (answer, pieces) = read(&events);

        assert_eq!(answer, Err(failure));
        assert_eq!(behind_thinking(&pieces), [begun(1), text(1, "Hé")]);
    }
    let names = Names::default();
    let named = MessageStream::new(&names, 9).event(Some("error"), error);
    assert_eq!(named, Err(Failure::of_error(error)));
}

#[test]
fn an_unknown_block_without_deltas_is_kept() {
    let mut events = vec![
        begin(0, r#"{"type":"new","a":1}"#),
        stop(0),
        begin(1, r#"{"type":"new","a":2}"#),
        delta(1, r#"{"type":"new_delta"}"#),
        stop(1),
        begin(2, r#"{"type":"text","text":"a"}"#),
    ];
    events.extend(end("end_turn"));

    let (answer, pieces) = read(&events);

    let parts = answer.unwrap().parts;
    assert!(matches!(
        parts[..],
        [AnswerPart::Item(_), AnswerPart::Message(_)]
    ));
    assert_eq!(behind_thinking(&pieces), [begun(1), text(1, "a")]);
}

#[test]
fn all_blocks_count_toward_the_size_limit() {
    for (block, more) in [
        (r#"{"type":"text","text":""}"#, r#"{"text":"aaaaaaaaaa"}"#),
        (r#"{"type":"thinking"}"#, r#"{"thinking":"aaaaaaaaaa"}"#),
        (r#"{"type":"thinking"}"#, r#"{"signature":"aaaaaaaaaa"}"#),
        (
            r#"{"type":"tool_use","name":"f"}"#,
            r#"{"partial_json":"aaaaaaaaaa"}"#,
        ),
    ] {
        let names = Names::default();
        let mut stream = MessageStream::new(&names, 100);
        let _ = stream.event(None, &begin(0, block)).unwrap();
        let more = delta(0, more);
        let mut results = (0..10).map(|_| stream.event(None, &more));
        assert!(
            results.any(|result| result == Err(Failure::too_long())),
            "{block}"
        );
    }
    let names = Names::default();
    let mut stream = MessageStream::new(&names, 100);
    let mut begun = (0..10).map(|index| {
        let event = begin(index, r#"{"type":"text","text":""}"#);
        stream.event(None, &event)
    });
    assert!(begun.any(|result| result == Err(Failure::too_long())));
}

proptest! {
    #[test]
    fn corrupted_streams_never_panic(
        at in 0..20_usize,
        changes in prop::collection::vec(
            (0..100_usize, 0..9_usize, prop::sample::select(vec![
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
