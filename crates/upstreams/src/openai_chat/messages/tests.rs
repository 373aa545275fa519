use std::time::Duration;

use super::*;
use threadkeep_domain::{CallForm, Json, elements};
use threadkeep_responses::{Parameters, ToolChoice};

fn written(dialect: Dialect, instructions: Option<&str>, prompt: &[PromptItem<'_>]) -> Vec<String> {
    let question = Question {
        model: "m",
        instructions,
        prompt,
        functions: &[],
        choice: &ToolChoice::Auto,
        parameters: &Parameters::default(),
        left: Duration::from_secs(1),
    };
    let messages = messages(&question, dialect);
    let checked = Json::parse(&messages).unwrap();
    assert_eq!(checked.as_str(), messages, "it is compact JSON");
    elements(&messages).map(str::to_owned).collect()
}

fn of(prompt: &[PromptItem<'_>]) -> Vec<String> {
    written(Dialect::Compatible, None, prompt)
}

fn message<'a>(role: &'a str, content: &'a str) -> PromptItem<'a> {
    PromptItem::Message {
        role,
        content,
        item: "{}",
    }
}

fn call<'a>(id: &'a str, arguments: &'a str) -> PromptItem<'a> {
    PromptItem::Call {
        form: CallForm::Function,
        id: id.into(),
        name: "f".into(),
        arguments: arguments.into(),
    }
}

fn result<'a>(id: &'a str, output: &'a str) -> PromptItem<'a> {
    PromptItem::Result {
        form: CallForm::Function,
        id: id.into(),
        output: output.into(),
        is_mistake: false,
    }
}

const A: &str = r#"[{"type":"output_text","text":"a"}]"#;
const THOUGHT: &str =
    r#"{"type":"reasoning","id":"rs_1","content":[{"type":"reasoning_text","text":"h\u006d"}]}"#;

#[test]
fn instructions_come_first_and_developer_becomes_system() {
    let messages = written(
        Dialect::OpenAi,
        Some("Be \"kind\""),
        &[
            message("developer", r#"[{"type":"input_text","text":"d"}]"#),
            message("system", r#"[{"type":"input_text","text":"s"}]"#),
            message("user", r#"[{"type":"input_text","text":"u"}]"#),
            message("assistant", A),
        ],
    );

    assert_eq!(
        messages,
        [
            r#"{"role":"system","content":"Be \"kind\""}"#,
            r#"{"role":"system","content":"d"}"#,
            r#"{"role":"system","content":"s"}"#,
            r#"{"role":"user","content":"u"}"#,
            r#"{"role":"assistant","content":"a"}"#,
        ]
    );
}

#[test]
fn calls_of_one_answer_are_one_message_before_their_results() {
    let messages = of(&[
        message("user", A),
        PromptItem::Reasoning(THOUGHT),
        message("assistant", A),
        call("1", r#"{"k":"v"}"#),
        call("2", "{}"),
        result("1", r#""o\u006e\"e""#),
        result(
            "2",
            r#"[{"type":"input_text","text":"t"},{"type":"input_image","image_url":"x"},{"type":"input_text","text":"wo"}]"#,
        ),
        call("3", "{}"),
        result("3", r#"{"a":"b"}"#),
        message("assistant", A),
    ]);

    assert_eq!(
        messages,
        [
            r#"{"role":"user","content":"a"}"#,
            concat!(
                r#"{"role":"assistant","content":"a","reasoning_content":"h\u006d","tool_calls":["#,
                r#"{"id":"1","type":"function","function":{"name":"f","arguments":"{\"k\":\"v\"}"}},"#,
                r#"{"id":"2","type":"function","function":{"name":"f","arguments":"{}"}}]}"#,
            ),
            r#"{"role":"tool","tool_call_id":"1","content":"o\u006e\"e"}"#,
            r#"{"role":"tool","tool_call_id":"2","content":"two"}"#,
            concat!(
                r#"{"role":"assistant","content":null,"tool_calls":["#,
                r#"{"id":"3","type":"function","function":{"name":"f","arguments":"{}"}}]}"#,
            ),
            r#"{"role":"tool","tool_call_id":"3","content":"{\"a\":\"b\"}"}"#,
            r#"{"role":"assistant","content":"a"}"#,
        ]
    );
}

#[test]
fn reasoning_without_an_answer_and_other_items_are_omitted() {
    let messages = of(&[
        PromptItem::Reasoning(THOUGHT),
        message("user", A),
        PromptItem::Reasoning(r#"{"type":"reasoning","summary":[],"encrypted_content":"x"}"#),
        PromptItem::Other(r#"{"type":"web_search_call"}"#),
        message("assistant", A),
        message("assistant", A),
        message("user", "[]"),
        PromptItem::Reasoning(THOUGHT),
    ]);

    assert_eq!(
        messages,
        [
            r#"{"role":"user","content":"a"}"#,
            r#"{"role":"assistant","content":"a"}"#,
            r#"{"role":"assistant","content":"a"}"#,
        ]
    );
}

#[test]
fn openai_receives_no_extensions_and_unchanged_arguments() {
    let prompt = [
        PromptItem::Reasoning(THOUGHT),
        call("1", "{\"k"),
        result("1", "\"\""),
    ];

    assert_eq!(
        written(Dialect::OpenAi, None, &prompt)[0],
        r#"{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{\"k"}}]}"#
    );
}

#[test]
fn compatible_servers_receive_arguments_that_are_an_object() {
    let [message, _] = &of(&[call("1", "{\"k"), result("1", "\"\"")])[..] else {
        panic!("a call and its result are two messages");
    };

    assert!(
        message.contains(r#""arguments":"{\"INVALID_JSON\":\"{\\\"k\"}""#),
        "{message}"
    );
}
