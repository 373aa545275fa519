use std::time::Duration;

use super::*;
use threadkeep_domain::{CallForm, Json};
use threadkeep_responses::{Parameters, ToolChoice};

fn written(instructions: Option<&str>, prompt: &[PromptItem<'_>]) -> Conversation {
    let question = Question {
        model: "m",
        instructions,
        prompt,
        functions: &[],
        choice: &ToolChoice::Auto,
        parameters: &Parameters::default(),
        left: Duration::from_secs(1),
    };
    let conversation = conversation(&question, &mut Names::default());
    for json in conversation.system.iter().chain(&conversation.messages) {
        assert!(Json::parse(json).is_ok(), "{json}");
    }
    conversation
}

fn of(prompt: &[PromptItem<'_>]) -> Vec<String> {
    written(None, prompt).messages
}

fn message<'a>(role: &'a str, content: &'a str) -> PromptItem<'a> {
    PromptItem::Message {
        role,
        content,
        item: "{}",
    }
}

fn call<'a>(id: &'a str, name: &'a str, arguments: &'a str) -> PromptItem<'a> {
    PromptItem::Call {
        form: CallForm::Function,
        id: id.into(),
        name: name.into(),
        arguments: arguments.into(),
    }
}

fn result<'a>(id: &'a str, output: &'a str, is_mistake: bool) -> PromptItem<'a> {
    PromptItem::Result {
        form: CallForm::Function,
        id: id.into(),
        output: output.into(),
        is_mistake,
    }
}

const A: &str = r#"[{"type":"input_text","text":"a"}]"#;
const B: &str = r#"[{"type":"output_text","text":"b"}]"#;
const EMPTY: &str = r#"[{"type":"input_text","text":" \n"}]"#;
const THOUGHT: &str = r#"{"type":"reasoning","id":"rs_1","summary":[],"anthropic_block":{"type":"thinking","thinking":"h\u006d","signature":"s"}}"#;
const OTHERS: &str = r#"{"type":"reasoning","content":[{"type":"reasoning_text","text":"x"}]}"#;

#[test]
fn system_texts_precede_the_conversation() {
    let conversation = written(
        Some("Be \"kind\""),
        &[
            message("user", A),
            message("developer", r#"[{"type":"input_text","text":"d"}]"#),
            message("user", B),
            message("system", r#"[{"type":"input_text","text":"s"}]"#),
            message("system", EMPTY),
        ],
    );

    assert_eq!(
        conversation.system,
        [
            r#"{"type":"text","text":"Be \"kind\""}"#,
            r#"{"type":"text","text":"d"}"#,
            r#"{"type":"text","text":"s"}"#,
        ]
    );
    assert_eq!(
        conversation.messages,
        [r#"{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}"#]
    );
    assert!(written(Some(" "), &[]).system.is_empty());
}

#[test]
fn results_of_one_step_are_one_message() {
    let messages = of(&[
        message("user", A),
        PromptItem::Reasoning(THOUGHT),
        message("assistant", B),
        call("1", "f", r#"{"k": "v"}"#),
        call("2", "g", "{\"k"),
        result("1", r#""o\u006e\"e""#, false),
        result(
            "2",
            r#"[{"type":"input_text","text":"t"},{"type":"input_text","text":"wo"}]"#,
            true,
        ),
        message("user", A),
    ]);

    assert_eq!(
        messages,
        [
            r#"{"role":"user","content":[{"type":"text","text":"a"}]}"#,
            concat!(
                r#"{"role":"assistant","content":[{"type":"thinking","thinking":"h\u006d","signature":"s"},"#,
                r#"{"type":"text","text":"b"},{"type":"tool_use","id":"1","name":"f","input":{"k": "v"}},"#,
                r#"{"type":"tool_use","id":"2","name":"g","input":{"INVALID_JSON":"{\"k"}}]}"#,
            ),
            concat!(
                r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"o\u006e\"e"},"#,
                r#"{"type":"tool_result","tool_use_id":"2","content":"two","is_error":true},"#,
                r#"{"type":"text","text":"a"}]}"#,
            ),
        ]
    );
}

#[test]
fn ids_and_names_become_valid_and_stay_distinct() {
    let messages = of(&[
        message("user", A),
        call("call|1", "kv.get", ""),
        call("call:1", "kv_get", ""),
        result("call|1", "\"1\"", false),
        result("call:1", "{\"a\":1}", false),
    ]);

    assert_eq!(
        messages[1..],
        [
            concat!(
                r#"{"role":"assistant","content":[{"type":"tool_use","id":"call_1","name":"kv_get","input":{}},"#,
                r#"{"type":"tool_use","id":"call_1-1","name":"kv_get-1","input":{}}]}"#,
            ),
            concat!(
                r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_1","content":"1"},"#,
                r#"{"type":"tool_result","tool_use_id":"call_1-1","content":"{\"a\":1}"}]}"#,
            ),
        ]
    );
}

#[test]
fn roles_alternate_and_the_user_begins() {
    let b = r#"{"type":"text","text":"b"}"#;
    let messages = of(&[
        message("assistant", B),
        message("user", EMPTY),
        PromptItem::Other(r#"{"type":"web_search_call"}"#),
        message("assistant", B),
        PromptItem::Other(r#"{"type":"anthropic_block","anthropic_block":{"type":"new","a":1}}"#),
        message("user", A),
        PromptItem::Reasoning(THOUGHT),
        PromptItem::Reasoning(OTHERS),
        message("user", A),
    ]);

    assert_eq!(
        messages,
        [
            format!(r#"{{"role":"user","content":[{BEGIN}]}}"#),
            format!(r#"{{"role":"assistant","content":[{b},{b},{{"type":"new","a":1}}]}}"#),
            r#"{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"a"}]}"#
                .into(),
        ]
    );
}

#[test]
fn only_user_messages_and_results_contain_media() {
    let parts = r#"[{"type":"input_image","image_url":"https://a"},{"type":"input_text","text":"a"},{"type":"input_image","file_id":"f"}]"#;
    let image = r#"{"type":"image","source":{"type":"url","url":"https://a"}}"#;
    let text = r#"{"type":"text","text":"a"}"#;

    let messages = of(&[
        message("user", parts),
        message("assistant", parts),
        call("1", "f", "{}"),
        result("1", parts, false),
    ]);

    assert_eq!(
        messages,
        [
            format!(r#"{{"role":"user","content":[{image},{text}]}}"#),
            format!(
                r#"{{"role":"assistant","content":[{text},{{"type":"tool_use","id":"1","name":"f","input":{{}}}}]}}"#
            ),
            format!(
                r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"1","content":[{image},{text}]}}]}}"#
            ),
        ]
    );
}
