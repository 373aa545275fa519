use super::*;
use crate::answer::ensure_message;
use threadkeep_domain::{Json, Usage};
use threadkeep_responses::{AnswerPart, Finish};

const WHOLE: &str = r#"{
    "id": "resp_1", "object": "response", "status": "completed", "error": null, "new": [{"a": 1}],
    "output": [
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x", "new": 1.0},
        {"type": "message", "id": "msg_1", "role": "assistant", "content": [
            {"type": "output_text", "text": "Hé\n", "annotations": [{"a": 1}], "logprobs": []},
            {"type": "refusal", "refusal": "no"}]},
        {"type": "message", "id": "msg_2", "role": "assistant", "content": []},
        {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "kv_get", "arguments": "{\"key\""},
        {"type": "of_tomorrow", "id": "x"},
        {"type": "function_call", "name": "list"}],
    "usage": {"input_tokens": 9, "output_tokens": 5, "input_tokens_details": {"cached_tokens": 4},
        "output_tokens_details": {"reasoning_tokens": 2}}}"#;

fn read(body: &str) -> Result<ModelAnswer, Failure> {
    let answer = super::read(body.as_bytes(), &Names::default())?;
    ensure_message(answer, false)
}

fn json(text: &str) -> Json {
    Json::parse(text).unwrap()
}

fn call(id: Option<&str>, name: &str, arguments: &str) -> AnswerPart {
    AnswerPart::Call {
        id: id.map(str::to_owned),
        name: name.into(),
        arguments: arguments.into(),
    }
}

#[test]
fn an_answer_has_its_items_in_order_and_unchanged() {
    let mut names = Names::default();
    names.encode("kv.get");

    let answer = super::read(WHOLE.as_bytes(), &names).unwrap();

    assert_eq!(
        answer.parts,
        [
            AnswerPart::Item(json(
                r#"{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"x","new":1.0}"#
            )),
            AnswerPart::Message(json(
                r#"[{"type":"output_text","text":"Hé\n","annotations":[{"a":1}],"logprobs":[]},{"type":"refusal","refusal":"no"}]"#
            )),
            AnswerPart::Message(json("[]")),
            call(Some("call_1"), "kv.get", "{\"key\""),
            AnswerPart::Item(json(r#"{"type":"of_tomorrow","id":"x"}"#)),
            call(None, "list", "{}"),
        ]
    );
    assert_eq!(answer.finish, Finish::Done);
    let usage = Usage {
        input_tokens: 9,
        cached_tokens: 4,
        output_tokens: 5,
        reasoning_tokens: 2,
    };
    assert_eq!(answer.usage, usage);
}

#[test]
fn the_status_determines_the_finish_reason() {
    let of = |status: &str| {
        let output = r#"[{"type":"message","content":[{"type":"output_text","text":"a"}]}]"#;
        read(&format!(r#"{{{status},"output":{output}}}"#))
    };
    for (status, finish) in [
        (r#""status":"completed""#, Finish::Done),
        (r#""new":1"#, Finish::Done),
        (
            r#""status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}"#,
            Finish::MaxOutputTokens,
        ),
        (
            r#""status":"incomplete","incomplete_details":{"reason":"content_filter"}"#,
            Finish::ContentFilter,
        ),
        (r#""status":"incomplete""#, Finish::MaxOutputTokens),
    ] {
        assert_eq!(of(status).unwrap().finish, finish, "{status}");
    }
    for (status, failure) in [
        (r#""status":"in_progress""#, Failure::malformed()),
        (r#""status":"cancelled""#, Failure::of_error("null")),
        (
            r#""status":"failed","error":{"code":"rate_limit_exceeded","message":"org"}"#,
            Failure::of_error(r#"{"code":429}"#),
        ),
        (r#""error":{"code":503}"#, Failure::of_error("null")),
    ] {
        assert_eq!(of(status), Err(failure), "{status}");
    }
}

#[test]
fn only_a_truncated_answer_may_be_empty() {
    let empty = r#""output":[{"type":"reasoning"},{"type":"message","content":[{"type":"output_text","text":""}]}]"#;

    assert_eq!(
        read(&format!(r#"{{"status":"completed",{empty}}}"#)),
        Err(Failure::malformed())
    );
    let answer = read(&format!(r#"{{"status":"incomplete",{empty}}}"#)).unwrap();
    assert!(matches!(
        answer.parts[..],
        [AnswerPart::Item(_), AnswerPart::Message(_)]
    ));
}

#[test]
fn unreadable_answers_are_malformed() {
    for body in [
        "",
        "<html>",
        "[]",
        "{}",
        r#"{"output":{}}"#,
        r#"{"output":[5]}"#,
        r#"{"output":[{"type":"function_call"}]}"#,
    ] {
        assert_eq!(read(body), Err(Failure::malformed()), "{body}");
    }
}
