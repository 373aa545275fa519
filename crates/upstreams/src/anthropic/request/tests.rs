use std::time::Duration;

use super::*;

const MESSAGE: PromptItem<'static> = PromptItem::Message {
    role: "user",
    content: r#"[{"type":"input_text","text":"a"}]"#,
    item: "{}",
};

fn body(
    functions: &[Function],
    choice: &ToolChoice,
    parameters: &Parameters,
    prompt: &[PromptItem<'_>],
) -> String {
    let question = Question {
        model: "m\"1",
        instructions: None,
        prompt,
        functions,
        choice,
        parameters,
        left: Duration::from_secs(1),
    };
    let body = write(&question, 4_096, false, &mut Names::default());
    assert!(Json::parse(&body).is_ok(), "{body}");
    let (begin, rest) = body.split_once(r#","messages":["#).unwrap();
    let tokens = parameters.max_output_tokens.unwrap_or(4_096);
    assert_eq!(begin, format!(r#"{{"model":"m\"1","max_tokens":{tokens}"#));
    rest.rsplit_once("]}]").unwrap_or(("", rest)).1.to_owned()
}

fn with(parameters: &Parameters) -> String {
    body(&[], &ToolChoice::Auto, parameters, &[MESSAGE])
}

fn json(text: &str) -> Option<Json> {
    Some(Json::parse(text).unwrap())
}

fn function(name: &str) -> Function {
    Function {
        name: name.into(),
        description: None,
        parameters: json(r#"{"type":"object","x":[]}"#),
        strict: None,
        custom: None,
    }
}

#[test]
fn parameters_are_converted_for_this_api() {
    let parameters = Parameters {
        max_output_tokens: Some(7),
        temperature: json("1.50"),
        top_p: json("0.1"),
        text: json(
            r#"{"format":{"type":"json_schema","name":"n","schema":{"a":1.0}},"verbosity":"low"}"#,
        ),
        reasoning: json(r#"{"effort":"minimal","summary":"auto"}"#),
        stop: json(r#"["a"]"#),
        user: json("\"u\""),
        safety_identifier: json("\"s\""),
        prompt_cache_key: json("\"k\""),
        service_tier: json("\"auto\""),
        parallel_tool_calls: Some(true),
        ..Parameters::default()
    };

    assert_eq!(
        with(&parameters),
        concat!(
            r#","thinking":{"type":"adaptive","display":"summarized"},"#,
            r#""output_config":{"effort":"low","format":{"type":"json_schema","schema":{"a":1.0}}},"#,
            r#""stop_sequences":["a"],"metadata":{"user_id":"s"},"service_tier":"auto"}"#,
        )
    );
    assert_eq!(with(&Parameters::default()), "}");
}

#[test]
fn reasoning_is_off_or_on_or_the_models_choice() {
    for (reasoning, expected) in [
        ("{}", "}"),
        (r#"{"effort":null,"summary":null}"#, "}"),
        (r#"{"effort":"extreme"}"#, "}"),
        (
            r#"{"effort":"none","summary":"auto"}"#,
            r#","thinking":{"type":"disabled"}}"#,
        ),
        (
            r#"{"effort":"xhigh"}"#,
            r#","thinking":{"type":"adaptive"},"output_config":{"effort":"xhigh"}}"#,
        ),
        (
            r#"{"summary":"concise"}"#,
            r#","thinking":{"type":"adaptive","display":"summarized"}}"#,
        ),
    ] {
        let parameters = Parameters {
            reasoning: json(reasoning),
            ..Parameters::default()
        };
        assert_eq!(with(&parameters), expected, "{reasoning}");
    }
    for text in [
        r#"{"format":{"type":"text"}}"#,
        r#"{"format":{"type":"json_object"}}"#,
    ] {
        let parameters = Parameters {
            text: json(text),
            service_tier: json("\"flex\""),
            user: json("\"\""),
            ..Parameters::default()
        };
        assert_eq!(with(&parameters), "}");
    }
}

#[test]
fn tools_have_a_schema_and_valid_names() {
    let full = Function {
        description: Some("Reads \"it\"".into()),
        parameters: None,
        strict: Some(true),
        ..function("kv.get")
    };
    let choice = ToolChoice::Function("kv.get".into());

    let body = body(
        &[full, function("kv_get")],
        &choice,
        &Parameters::default(),
        &[],
    );

    assert_eq!(
        body,
        concat!(
            r#"],"tools":[{"name":"kv_get","description":"Reads \"it\"","input_schema":{"type":"object"},"strict":true},"#,
            r#"{"name":"kv_get-1","input_schema":{"type":"object","x":[]}}],"#,
            r#""tool_choice":{"type":"tool","name":"kv_get"}}"#,
        )
    );
}

#[test]
fn thinking_disables_a_choice_that_forces_a_call() {
    let parameters = |thinks: bool, parallel| Parameters {
        reasoning: thinks.then(|| Json::parse(r#"{"effort":"low"}"#).unwrap()),
        parallel_tool_calls: parallel,
        ..Parameters::default()
    };
    let function_choice = ToolChoice::Function("f".into());
    for (choice, thinks, parallel, expected) in [
        (&ToolChoice::Auto, false, None, None),
        (&ToolChoice::Auto, true, Some(true), None),
        (
            &ToolChoice::Auto,
            false,
            Some(false),
            Some(r#"{"type":"auto","disable_parallel_tool_use":true}"#),
        ),
        (
            &ToolChoice::None,
            true,
            Some(false),
            Some(r#"{"type":"none"}"#),
        ),
        (
            &ToolChoice::Required,
            false,
            None,
            Some(r#"{"type":"any"}"#),
        ),
        (
            &ToolChoice::Required,
            true,
            None,
            Some(r#"{"type":"auto"}"#),
        ),
        (
            &function_choice,
            false,
            None,
            Some(r#"{"type":"tool","name":"f"}"#),
        ),
        (&function_choice, true, None, Some(r#"{"type":"auto"}"#)),
    ] {
        let body = body(
            &[function("f")],
            choice,
            &parameters(thinks, parallel),
            &[MESSAGE],
        );

        let written = body.split_once(r#","tool_choice":"#).map(|(_, rest)| rest);
        match expected {
            Some(expected) => assert!(written.unwrap().starts_with(expected), "{body}"),
            None => assert_eq!(written, None),
        }
    }
}

#[test]
fn a_conversation_with_calls_declares_tools_that_must_not_be_called() {
    let call = |id: &'static str| PromptItem::Call {
        form: threadkeep_domain::CallForm::Function,
        id: id.into(),
        name: "f".into(),
        arguments: "{}".into(),
    };

    let body = body(
        &[],
        &ToolChoice::Auto,
        &Parameters::default(),
        &[MESSAGE, call("1"), call("2")],
    );

    let expected = r#","tools":[{"name":"f","input_schema":{"type":"object"}}],"tool_choice":{"type":"none"}}"#;
    assert!(body.ends_with(expected), "{body}");
}
