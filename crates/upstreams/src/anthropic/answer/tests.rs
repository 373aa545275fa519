use super::*;
use crate::answer::ensure_message;
use threadkeep_domain::Json;
use threadkeep_responses::AnswerPart;

const WHOLE: &str = r#"{
    "id": "msg_1", "type": "message", "role": "assistant", "new": [{"a": 1}],
    "content": [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "Hé\n"}, {"type": "text", "text": "there", "citations": null},
        {"type": "tool_use", "id": "toolu_1", "name": "kv_get", "input": {"key": "a"}},
        {"type": "redacted_thinking", "data": "x"},
        {"type": "tool_use", "name": "list"},
        {"type": "text", "text": "!"}],
    "stop_reason": "tool_use",
    "usage": {"input_tokens": 9, "cache_creation_input_tokens": 3, "cache_read_input_tokens": 4,
        "output_tokens": 5, "output_tokens_details": {"thinking_tokens": 2}}}"#;

fn read(body: &str) -> Result<ModelAnswer, Failure> {
    let answer = super::read(body.as_bytes(), &Names::default())?;
    ensure_message(answer, false)
}

fn of_content(content: &str, reason: &str) -> Result<ModelAnswer, Failure> {
    read(&format!(
        r#"{{"content":{content},"stop_reason":{reason}}}"#
    ))
}

fn json(text: &str) -> Json {
    Json::parse(text).unwrap()
}

fn message(text: &str) -> AnswerPart {
    AnswerPart::Message(json(&format!(
        r#"[{{"type":"output_text","text":"{text}","annotations":[],"logprobs":[]}}]"#
    )))
}

fn call(id: Option<&str>, name: &str, arguments: &str) -> AnswerPart {
    AnswerPart::Call {
        id: id.map(str::to_owned),
        name: name.into(),
        arguments: arguments.into(),
    }
}

#[test]
fn an_answer_has_its_blocks_in_order_and_its_tokens() {
    let mut names = Names::default();
    names.encode("kv.get");

    let answer = super::read(WHOLE.as_bytes(), &names).unwrap();

    assert_eq!(
        answer.parts,
        [
            AnswerPart::Item(json(
                r#"{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"dGhyZWFka2VlcDp0aGlua2luZzoxCnsidHlwZSI6InRoaW5raW5nIiwidGhpbmtpbmciOiJobSIsInNpZ25hdHVyZSI6InMifQ=="}"#
            )),
            message("Hé\\nthere"),
            call(Some("toolu_1"), "kv.get", r#"{"key":"a"}"#),
            AnswerPart::Item(json(
                r#"{"type":"reasoning","summary":[],"encrypted_content":"dGhyZWFka2VlcDp0aGlua2luZzoxCnsidHlwZSI6InJlZGFjdGVkX3RoaW5raW5nIiwiZGF0YSI6IngifQ=="}"#
            )),
            call(None, "list", "{}"),
            message("!"),
        ]
    );
    assert_eq!(answer.finish, Finish::Done);
    let usage = Usage {
        input_tokens: 16,
        cached_tokens: 4,
        output_tokens: 5,
        reasoning_tokens: 2,
    };
    assert_eq!(answer.usage, usage);
}

#[test]
fn the_finish_reason_is_read() {
    for (reason, finish) in [
        ("\"end_turn\"", Finish::Done),
        ("\"stop_sequence\"", Finish::Done),
        ("\"new\"", Finish::Done),
        ("null", Finish::Done),
        ("\"max_tokens\"", Finish::MaxOutputTokens),
        ("\"model_context_window_exceeded\"", Finish::MaxOutputTokens),
        ("\"refusal\"", Finish::ContentFilter),
    ] {
        let answer = of_content(r#"[{"type":"text","text":"a"}]"#, reason).unwrap();

        assert_eq!(answer.finish, finish, "{reason}");
    }
}

#[test]
fn only_a_truncated_answer_may_be_empty() {
    for content in ["[]", "null", r#"[{"type":"text","text":""}]"#] {
        assert_eq!(
            of_content(content, "\"end_turn\""),
            Err(Failure::malformed())
        );
        let answer = of_content(content, "\"refusal\"").unwrap();
        assert_eq!(answer.parts, [message("")]);
    }
}

#[test]
fn blocks_of_unknown_types_are_kept() {
    let block = r#"{"type":"server_tool_use","id":"a","input":{"q":1.0}}"#;

    let answer = of_content(
        &format!(r#"[{block},{{"type":"text","text":"a"}},7]"#),
        "null",
    );

    let item = json(&format!(
        r#"{{"type":"anthropic_block","anthropic_block":{block}}}"#
    ));
    assert_eq!(
        answer.unwrap().parts,
        [AnswerPart::Item(item), message("a")]
    );
}

#[test]
fn unreadable_answers_are_malformed_and_errors_are_failures() {
    for body in [
        "",
        "<html>",
        "[]",
        "{}",
        r#"{"content":{}}"#,
        r#"{"content":[5]}"#,
        r#"{"content":[{"type":"tool_use","id":"a"}]}"#,
    ] {
        assert_eq!(read(body), Err(Failure::malformed()), "{body}");
    }
    let error = r#"{"type":"error","error":{"type":"overloaded_error","message":"org"}}"#;
    let failure = Failure::of_error(r#"{"type":"overloaded_error"}"#);
    assert_eq!(read(error), Err(failure));
}
