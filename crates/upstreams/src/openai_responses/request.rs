//! The body of a request.

use super::input::input;
use crate::json::{Object, array, inside_member};
use crate::names::Names;
use threadkeep_domain::{CallForm, Json, quoted};
use threadkeep_responses::{CustomTool, Function, Parameters, Question, ToolChoice};

/// Bytes of the name of a function.
pub(super) const NAME_MAX_BYTES: usize = 64;
const ANY_OBJECT: &str = r#"{"type":"object","properties":{}}"#;

/// Writes the body, which may ask for a stream. The fields of a question are those of this API, except `stop`, which it has
/// not. `names` gets the names of all functions.
pub(super) fn write(question: &Question<'_>, is_streamed: bool, names: &mut Names) -> String {
    let tools = tools(question, names);
    let body = prompt(question, names)
        .json("store", "false")
        .optional("stream", is_streamed.then_some("true"));
    let body = with_tools(body, question, &tools, names);
    with_parameters(body, question.parameters).close()
}

/// Writes the body of a request that counts the tokens of the question, which takes fewer fields.
pub(super) fn write_counted(question: &Question<'_>) -> String {
    let names = &mut Names::default();
    let tools = tools(question, names);
    let body = with_tools(prompt(question, names), question, &tools, names);
    let Parameters {
        text, reasoning, ..
    } = question.parameters;
    body.optional("text", text.as_ref().map(Json::as_str))
        .optional("reasoning", reasoning.as_ref().map(Json::as_str))
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
        // without tools, servers reject the fields that concern them
        false => body
            .json("tools", &array(tools))
            .optional("tool_choice", choice(question, names).as_deref())
            .optional(
                "parallel_tool_calls",
                question.parameters.parallel_tool_calls.map(boolean),
            ),
    }
}

/// The API takes tools as strict unless they say otherwise.
fn tool(function: &Function, names: &mut Names) -> String {
    let description = function.description.as_deref().map(quoted);
    if let Some(CustomTool { format }) = &function.custom {
        return Object::new()
            .json("type", "\"custom\"")
            .text("name", &names.send(&function.name, NAME_MAX_BYTES))
            .optional("description", description.as_deref())
            .optional("format", format.as_ref().map(Json::as_str))
            .close();
    }
    let parameters = function.parameters.as_ref().map(Json::as_str);
    let parameters = parameters.filter(|schema| schema.starts_with('{'));
    Object::new()
        .json("type", "\"function\"")
        .text("name", &names.send(&function.name, NAME_MAX_BYTES))
        .optional("description", description.as_deref())
        .json("parameters", parameters.unwrap_or(ANY_OBJECT))
        .json("strict", boolean(function.strict.unwrap_or(false)))
        .close()
}

fn choice(question: &Question<'_>, names: &mut Names) -> Option<String> {
    match question.choice {
        // the default
        ToolChoice::Auto => None,
        ToolChoice::None => Some(quoted("none")),
        ToolChoice::Required => Some(quoted("required")),
        ToolChoice::Function(name) => {
            let kind = match question.form_of(name) {
                CallForm::Function => "\"function\"",
                CallForm::Custom => "\"custom\"",
            };
            let choice = Object::new().json("type", kind);
            let name = names.send(name, NAME_MAX_BYTES);
            Some(choice.text("name", &name).close())
        }
    }
}

fn with_parameters(body: Object, parameters: &Parameters) -> Object {
    let json = |value: &'_ Option<Json>| value.as_ref().map(|json| json.as_str().to_owned());
    let number = |value: Option<u64>| value.map(|number| number.to_string());
    [
        ("include", include(parameters)),
        ("max_output_tokens", number(parameters.max_output_tokens)),
        ("temperature", json(&parameters.temperature)),
        ("top_p", json(&parameters.top_p)),
        ("presence_penalty", json(&parameters.presence_penalty)),
        ("frequency_penalty", json(&parameters.frequency_penalty)),
        ("top_logprobs", number(parameters.top_logprobs)),
        ("text", json(&parameters.text)),
        ("reasoning", json(&parameters.reasoning)),
        ("user", json(&parameters.user)),
        ("safety_identifier", json(&parameters.safety_identifier)),
        ("prompt_cache_key", json(&parameters.prompt_cache_key)),
        ("service_tier", json(&parameters.service_tier)),
        ("truncation", json(&parameters.truncation)),
    ]
    .into_iter()
    .fold(body, |body, (name, value)| {
        body.optional(name, value.as_deref())
    })
}

/// Details that the answer is to have.
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

/// Models that do not reason refuse to include it, so it is included only where the request asks for reasoning or for it.
fn asks_for_reasoning(parameters: &Parameters) -> bool {
    let reasoning = parameters.reasoning.as_ref().map_or("", Json::as_str);
    let effort = inside_member(reasoning, "effort");
    effort.is_some_and(|effort| effort != "none") || inside_member(reasoning, "summary").is_some()
}

fn boolean(value: bool) -> &'static str {
    if value { "true" } else { "false" }
}

#[cfg(test)]
mod tests;
