use super::dialect::Dialect;
use super::messages::messages;
use crate::json::{Object, array, text};
use crate::parameters::{with_sampling, with_service};
use threadkeep_domain::{CallForm, Json, member, quoted};
use threadkeep_responses::{CustomTool, Function, Parameters, Question, ToolChoice};

/// Writes the request body. Omits `reasoning.summary`, which this API does not support.
pub(super) fn write(question: &Question<'_>, dialect: Dialect, is_streamed: bool) -> String {
    let body = Object::new()
        .text("model", question.model)
        .json("messages", &messages(question, dialect));
    let options = is_streamed.then_some(r#"{"include_usage":true}"#);
    let body = body.flag("stream", is_streamed);
    let body = body.optional("stream_options", options);
    let body = with_tools(body, question);
    with_parameters(body, question.parameters, dialect).close()
}

/// Adds the tools and their settings. Servers reject these settings if there are no tools.
fn with_tools(body: Object, question: &Question<'_>) -> Object {
    if question.functions.is_empty() {
        return body;
    }
    let tools: Vec<_> = question.functions.iter().map(tool).collect();
    body.json("tools", &array(&tools))
        .optional("tool_choice", choice(question).as_deref())
        .boolean(
            "parallel_tool_calls",
            question.parameters.parallel_tool_calls,
        )
}

fn tool(function: &Function) -> String {
    let description = function.description.as_deref().map(quoted);
    if let Some(CustomTool { format }) = &function.custom {
        let format = format.as_ref().map(|format| custom_format(format.as_str()));
        let declared = Object::new()
            .text("name", &function.name)
            .optional("description", description.as_deref())
            .optional("format", format.as_deref());
        let tool = Object::of_type("custom");
        return tool.json("custom", &declared.close()).close();
    }
    let declared = Object::new()
        .text("name", &function.name)
        .optional("description", description.as_deref())
        .given("parameters", function.parameters.as_ref())
        .boolean("strict", function.strict);
    let tool = Object::of_type("function");
    tool.json("function", &declared.close()).close()
}

/// Converts the format of a custom tool. This API wraps the members of a grammar in an object.
fn custom_format(format: &str) -> String {
    let grammar = Object::new().members_of(format, &["syntax", "definition"]);
    let grammar = grammar.close();
    let grammar = Some(&*grammar).filter(|grammar| *grammar != "{}");
    let format = Object::new().members_of(format, &["type"]);
    format.optional("grammar", grammar).close()
}

fn choice(question: &Question<'_>) -> Option<String> {
    match question.choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some(quoted("none")),
        ToolChoice::Required => Some(quoted("required")),
        ToolChoice::Function(name) => {
            let kind = match question.form_of(name) {
                CallForm::Function => "function",
                CallForm::Custom => "custom",
            };
            let tool = Object::new().text("name", name).close();
            Some(Object::of_type(kind).json(kind, &tool).close())
        }
    }
}

fn with_parameters(body: Object, parameters: &Parameters, dialect: Dialect) -> Object {
    let text = parameters.text.as_ref().map_or("", Json::as_str);
    let reasoning = parameters.reasoning.as_ref().map_or("", Json::as_str);
    let format = member(text, "format").and_then(response_format);
    let body = body.number(dialect.max_tokens(), parameters.max_output_tokens);
    let body = with_sampling(body, parameters)
        .flag("logprobs", parameters.logprobs)
        .number("top_logprobs", parameters.top_logprobs)
        .given("stop", parameters.stop.as_ref())
        .optional("response_format", format.as_deref())
        .optional("verbosity", member(text, "verbosity"))
        .optional("reasoning_effort", member(reasoning, "effort"));
    with_service(body, parameters)
}

/// Converts the format of the answer. Returns `None` for text, the default.
fn response_format(format: &str) -> Option<String> {
    let kind = text(member(format, "type")?)?;
    match &*kind {
        "json_object" => Some(Object::of_type("json_object").close()),
        "json_schema" => {
            let names = ["name", "description", "schema", "strict"];
            let schema = Object::new().members_of(format, &names).close();
            let format = Object::of_type("json_schema");
            Some(format.json("json_schema", &schema).close())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn body(functions: &[Function], choice: &ToolChoice, parameters: &Parameters) -> String {
        let question = Question {
            model: "m\"1",
            instructions: None,
            prompt: &[],
            functions,
            choice,
            parameters,
            left: Duration::from_secs(1),
        };
        let body = write(&question, Dialect::Compatible, false);
        let rest = body.strip_prefix(r#"{"model":"m\"1","messages":[]"#);
        rest.unwrap().to_owned()
    }

    fn json(text: &str) -> Option<Json> {
        Some(Json::parse(text).unwrap())
    }

    fn function() -> Function {
        Function {
            name: "kv_get".into(),
            description: None,
            parameters: None,
            strict: None,
            custom: None,
        }
    }

    #[test]
    fn a_request_without_tools_and_parameters_has_only_messages() {
        let required = ToolChoice::Required;
        let parameters = Parameters {
            parallel_tool_calls: Some(true),
            ..Parameters::default()
        };

        assert_eq!(body(&[], &required, &parameters), "}");
    }

    #[test]
    fn tools_have_only_the_given_fields() {
        let full = Function {
            description: Some("Reads \"it\"".into()),
            parameters: json(r#"{"type":"object","x":1.0}"#),
            strict: Some(false),
            ..function()
        };
        let parameters = Parameters {
            parallel_tool_calls: Some(false),
            ..Parameters::default()
        };

        let body = body(&[function(), full], &ToolChoice::Auto, &parameters);

        assert_eq!(
            body,
            concat!(
                r#","tools":[{"type":"function","function":{"name":"kv_get"}},"#,
                r#"{"type":"function","function":{"name":"kv_get","description":"Reads \"it\"","#,
                r#""parameters":{"type":"object","x":1.0},"strict":false}}],"parallel_tool_calls":false}"#,
            )
        );
    }

    #[test]
    fn choices_other_than_the_default_are_sent() {
        for (choice, text) in [
            (ToolChoice::Auto, ""),
            (ToolChoice::None, r#","tool_choice":"none""#),
            (ToolChoice::Required, r#","tool_choice":"required""#),
            (
                ToolChoice::Function("a\"".into()),
                r#","tool_choice":{"type":"function","function":{"name":"a\""}}"#,
            ),
        ] {
            let body = body(&[function()], &choice, &Parameters::default());

            assert!(body.ends_with(&format!("}}}}]{text}}}")), "{body}");
        }
    }

    #[test]
    fn parameters_are_sent_unchanged() {
        let parameters = Parameters {
            max_output_tokens: Some(7),
            temperature: json("1.50"),
            top_p: json("1e-1"),
            text: json(r#"{"format":{"type":"text"},"verbosity":"low"}"#),
            reasoning: json(r#"{"summary":"auto","effort":"high"}"#),
            stop: json(r#"["a","\u0062"]"#),
            user: json("null"),
            service_tier: json("\"flex\""),
            ..Parameters::default()
        };

        assert_eq!(
            body(&[], &ToolChoice::Auto, &parameters),
            concat!(
                r#","max_tokens":7,"temperature":1.50,"top_p":1e-1,"stop":["a","\u0062"],"#,
                r#""verbosity":"low","reasoning_effort":"high","service_tier":"flex"}"#,
            )
        );
    }

    #[test]
    fn optional_parameters_are_sent() {
        let parameters = Parameters {
            logprobs: true,
            top_logprobs: Some(3),
            presence_penalty: json("0.50"),
            frequency_penalty: json("-2"),
            encrypted_reasoning: true,
            truncation: json("\"auto\""),
            ..Parameters::default()
        };

        assert_eq!(
            body(&[], &ToolChoice::Auto, &parameters),
            r#","presence_penalty":0.50,"frequency_penalty":-2,"logprobs":true,"top_logprobs":3}"#
        );
    }

    #[test]
    fn formats_are_converted_for_this_api() {
        for (format, expected) in [
            (r#"{"type":"text"}"#, "}"),
            (r#"{"type":"grammar"}"#, "}"),
            ("null", "}"),
            (
                r#"{"type":"json_object"}"#,
                r#","response_format":{"type":"json_object"}}"#,
            ),
            (
                r#"{"type":"json_schema","schema":{"a":[1.0]},"name":"n","strict":true,"description":null}"#,
                r#","response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"a":[1.0]},"strict":true}}}"#,
            ),
        ] {
            let parameters = Parameters {
                text: json(&format!(r#"{{"format":{format}}}"#)),
                ..Parameters::default()
            };

            assert_eq!(body(&[], &ToolChoice::Auto, &parameters), expected);
        }
    }
}
