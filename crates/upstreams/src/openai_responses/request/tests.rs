use std::time::Duration;

use super::*;

fn body(functions: &[Function], choice: &ToolChoice, parameters: &Parameters) -> String {
    let question = Question {
        model: "m\"1",
        instructions: Some("Be \"kind\""),
        prompt: &[],
        functions,
        choice,
        parameters,
        left: Duration::from_secs(1),
    };
    let body = write(&question, true, &mut Names::default());
    assert!(Json::parse(&body).is_ok(), "{body}");
    let begin =
        r#"{"model":"m\"1","instructions":"Be \"kind\"","input":[],"store":false,"stream":true"#;
    body.strip_prefix(begin).unwrap().to_owned()
}

fn json(text: &str) -> Option<Json> {
    Some(Json::parse(text).unwrap())
}

fn function(name: &str) -> Function {
    Function {
        name: name.into(),
        description: None,
        parameters: None,
        strict: None,
        custom: None,
    }
}

#[test]
fn parameters_are_sent_unchanged() {
    let parameters = Parameters {
        max_output_tokens: Some(7),
        temperature: json("1.50"),
        text: json(r#"{"format":{"type":"text"},"verbosity":"low"}"#),
        reasoning: json(r#"{"summary":"auto","effort":"high"}"#),
        stop: json(r#"["a"]"#),
        parallel_tool_calls: Some(true),
        user: json("null"),
        ..Parameters::default()
    };

    assert_eq!(
        body(&[], &ToolChoice::Required, &parameters),
        concat!(
            r#","include":["reasoning.encrypted_content"],"max_output_tokens":7,"temperature":1.50,"#,
            r#""text":{"format":{"type":"text"},"verbosity":"low"},"reasoning":{"summary":"auto","effort":"high"}}"#,
        )
    );
}

#[test]
fn encrypted_reasoning_is_included_if_reasoning_is_requested() {
    for (reasoning, is_included) in [
        ("{}", false),
        (r#"{"effort":null,"summary":null}"#, false),
        (r#"{"effort":"none"}"#, false),
        (r#"{"effort":"low"}"#, true),
        (r#"{"summary":"auto"}"#, true),
    ] {
        let parameters = Parameters {
            reasoning: json(reasoning),
            ..Parameters::default()
        };
        let body = body(&[], &ToolChoice::Auto, &parameters);
        assert_eq!(body.contains("include"), is_included, "{reasoning}");
    }
}

#[test]
fn optional_parameters_are_sent() {
    let parameters = Parameters {
        encrypted_reasoning: true,
        logprobs: true,
        top_logprobs: Some(3),
        presence_penalty: json("0.50"),
        frequency_penalty: json("-2"),
        truncation: json("\"auto\""),
        ..Parameters::default()
    };

    assert_eq!(
        body(&[], &ToolChoice::Auto, &parameters),
        concat!(
            r#","include":["reasoning.encrypted_content","message.output_text.logprobs"],"#,
            r#""presence_penalty":0.50,"frequency_penalty":-2,"top_logprobs":3,"truncation":"auto"}"#,
        )
    );
}

#[test]
fn strict_is_always_sent() {
    let full = Function {
        description: Some("Reads \"it\"".into()),
        parameters: json(r#"{"type":"object","x":1.0}"#),
        strict: Some(true),
        ..function("kv.get")
    };
    let parameters = Parameters {
        parallel_tool_calls: Some(false),
        ..Parameters::default()
    };

    let body = body(
        &[full, function("f")],
        &ToolChoice::Function("kv.get".into()),
        &parameters,
    );

    assert_eq!(
        body,
        concat!(
            r#","tools":[{"type":"function","name":"kv_get","description":"Reads \"it\"","#,
            r#""parameters":{"type":"object","x":1.0},"strict":true},"#,
            r#"{"type":"function","name":"f","parameters":{"type":"object","properties":{}},"strict":false}],"#,
            r#""tool_choice":{"type":"function","name":"kv_get"},"parallel_tool_calls":false}"#,
        )
    );
}
