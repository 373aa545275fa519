use super::input::input;
use crate::json::{Object, array, escaped_member};
use crate::names::Names;
use crate::parameters::{with_sampling, with_service};
use threadkeep_domain::{CallForm, Json, quoted};
use threadkeep_responses::{CustomTool, Function, Parameters, Question, ToolChoice};

const ANY_OBJECT: &str = r#"{"type":"object","properties":{}}"#;

/// Writes the request body. Omits `stop`, which this API does not support. Adds the names of all functions to `names`.
pub(super) fn write(question: &Question<'_>, is_streamed: bool, names: &mut Names) -> String {
    let tools = tools(question, names);
    let body = prompt(question, names)
        .json("store", "false")
        .flag("stream", is_streamed);
    let body = with_tools(body, question, &tools, names);
    with_parameters(body, question.parameters).close()
}

/// Writes the body of a token count request, which accepts fewer fields.
pub(super) fn write_count_request(question: &Question<'_>) -> String {
    let names = &mut Names::default();
    let tools = tools(question, names);
    let body = with_tools(prompt(question, names), question, &tools, names);
    body.given("text", question.parameters.text.as_ref())
        .given("reasoning", question.parameters.reasoning.as_ref())
        .close()
}

fn prompt(question: &Question<'_>, names: &mut Names) -> Object {
    Object::new()
        .text("model", question.model)
        .optional("instructions", question.instructions.map(quoted).as_deref())
        .json("input", &array(&input(question, names)))
}

fn tools(question: &Question<'_>, names: &mut Names) -> Vec<String> {
    let functions = question.functions.iter();
    functions.map(|function| tool(function, names)).collect()
}

fn with_tools(
    body: Object,
    question: &Question<'_>,
    tools: &[String],
    names: &mut Names,
) -> Object {
    match tools.is_empty() {
        true => body,
        // without tools, servers reject the fields that concern tools
        false => body
            .json("tools", &array(tools))
            .optional("tool_choice", choice(question, names).as_deref())
            .boolean(
                "parallel_tool_calls",
                question.parameters.parallel_tool_calls,
            ),
    }
}

/// Converts a function or a custom tool. Always sends `strict`, because this API's default is `true`.
fn tool(function: &Function, names: &mut Names) -> String {
    let description = function.description.as_deref().map(quoted);
    if let Some(CustomTool { format }) = &function.custom {
        return Object::of_type("custom")
            .text("name", &names.encode(&function.name))
            .optional("description", description.as_deref())
            .given("format", format.as_ref())
            .close();
    }
    let parameters = function.parameters.as_ref().map(Json::as_str);
    let parameters = parameters.filter(|schema| schema.starts_with('{'));
    Object::of_type("function")
        .text("name", &names.encode(&function.name))
        .optional("description", description.as_deref())
        .json("parameters", parameters.unwrap_or(ANY_OBJECT))
        .boolean("strict", Some(function.strict.unwrap_or(false)))
        .close()
}

fn choice(question: &Question<'_>, names: &mut Names) -> Option<String> {
    match question.choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some(quoted("none")),
        ToolChoice::Required => Some(quoted("required")),
        ToolChoice::Function(name) => {
            let kind = match question.form_of(name) {
                CallForm::Function => "function",
                CallForm::Custom => "custom",
            };
            let name = names.encode(name);
            Some(Object::of_type(kind).text("name", &name).close())
        }
    }
}

fn with_parameters(body: Object, parameters: &Parameters) -> Object {
    let body = body
        .optional("include", include(parameters).as_deref())
        .number("max_output_tokens", parameters.max_output_tokens);
    let body = with_sampling(body, parameters)
        .number("top_logprobs", parameters.top_logprobs)
        .given("text", parameters.text.as_ref())
        .given("reasoning", parameters.reasoning.as_ref());
    with_service(body, parameters).given("truncation", parameters.truncation.as_ref())
}

fn include(parameters: &Parameters) -> Option<String> {
    let is_encrypted = parameters.encrypted_reasoning || asks_for_reasoning(parameters);
    let names = [
        (is_encrypted, "reasoning.encrypted_content"),
        (parameters.logprobs, "message.output_text.logprobs"),
    ];
    let names = names.into_iter().filter(|(is_wanted, _)| *is_wanted);
    let names: Vec<_> = names.map(|(_, name)| quoted(name)).collect();
    (!names.is_empty()).then(|| array(&names))
}

/// Returns whether the request asks for reasoning. Encrypted reasoning is requested only then or if the client asks for
/// it, because models without reasoning reject such a request.
fn asks_for_reasoning(parameters: &Parameters) -> bool {
    let reasoning = parameters.reasoning.as_ref().map_or("", Json::as_str);
    let effort = escaped_member(reasoning, "effort");
    effort.is_some_and(|effort| effort != "none") || escaped_member(reasoning, "summary").is_some()
}

#[cfg(test)]
mod tests;
