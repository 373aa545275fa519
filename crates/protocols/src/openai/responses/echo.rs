//! The settings that a response repeats from its request.
//!
//! A response stores its settings as a JSON object. The object omits the instructions, because the response stores them
//! separately. In the last member, `tools`, each function and custom tool is replaced by `null` for the same reason.

use serde_json::{Value, json};

use crate::openai::body::{ObjectBody, required};
use crate::openai::fault::Fault;
use threadkeep_domain::{Json, elements, given, is_named, member, members, object_of};
use threadkeep_responses::{CustomTool, Function, ResponseRequest};

/// The settings and their defaults. `ResponseResource` of the Open Responses specification (2026-04-24) requires all
/// settings except `user`.
static SETTINGS: [(&str, &str); 18] = [
    ("truncation", r#""disabled""#),
    ("model", "null"),
    ("previous_response_id", "null"),
    ("max_output_tokens", "null"),
    ("max_tool_calls", "null"),
    ("parallel_tool_calls", "true"),
    ("tool_choice", r#""auto""#),
    ("temperature", "1"),
    ("top_p", "1"),
    ("presence_penalty", "0"),
    ("frequency_penalty", "0"),
    ("top_logprobs", "0"),
    ("text", TEXT),
    ("reasoning", "null"),
    ("service_tier", r#""default""#),
    ("prompt_cache_key", "null"),
    ("safety_identifier", "null"),
    ("user", "null"),
];
const TEXT: &str = r#"{"format":{"type":"text"}}"#;
static TEXT_MEMBERS: [(&str, &str); 1] = [("format", r#"{"type":"text"}"#)];
static SCHEMA_MEMBERS: [(&str, &str); 2] = [("description", "null"), ("strict", "false")];
static REASONING_MEMBERS: [(&str, &str); 2] = [("effort", "null"), ("summary", "null")];
static CHOICE_MEMBERS: [(&str, &str); 1] = [("mode", r#""auto""#)];
static FUNCTION_MEMBERS: [(&str, &str); 3] = [
    ("description", "null"),
    ("parameters", "null"),
    ("strict", "null"),
];

/// Returns the settings in their stored form.
pub(super) fn stored_settings(
    body: &ObjectBody,
    functions: &[Function],
    [is_background, is_kept]: [bool; 2],
    conversation: Option<&str>,
    created_ms: u64,
) -> Result<Json, Fault> {
    let is_function_name = |name: String| functions.iter().any(|function| function.name == name);
    let metadata = body.metadata()?;
    let mut settings = format!(
        r#"{{"created_at":{},"background":{is_background},"store":{is_kept},"conversation":{},"metadata":{}"#,
        created_ms / 1_000,
        conversation.map_or(Value::Null, |id| json!({ "id": id })),
        metadata.as_ref().map_or("{}", Json::as_str),
    );
    for (name, default) in SETTINGS {
        let value = body.given(name).unwrap_or(default);
        settings.push_str(&format!(r#","{name}":{value}"#));
    }
    settings.push_str(r#","tools":["#);
    for (index, tool) in body
        .given("tools")
        .into_iter()
        .flat_map(elements)
        .enumerate()
    {
        settings.push_str(if index > 0 { "," } else { "" });
        let kind = required(tool, "type", "tools")?;
        let is_function = matches!(kind.as_str(), "function" | "custom")
            && required(tool, "name", "tools").is_ok_and(is_function_name);
        settings.push_str(if is_function { "null" } else { tool });
    }
    settings.push_str("]}");
    Ok(Json::from_compact(settings))
}

/// Appends the settings as members, separated by commas. In responses from earlier versions, settings may be missing or
/// `null`, and the object may contain the instructions and functions.
pub(super) fn write_members(request: &ResponseRequest, text: &mut String) {
    let echo = request.echo.as_str();
    let settings = with_defaults(echo, &SETTINGS);
    for (key, value) in members(&settings) {
        let is = |name| is_named(key, name);
        if is("tools") || is("instructions") {
            continue;
        }
        text.push_str(key);
        text.push(':');
        if is("text") {
            text.push_str(&with_text_defaults(value));
        } else if is("reasoning") {
            text.push_str(&with_defaults(value, &REASONING_MEMBERS));
        } else if is("tool_choice") && given(value, "type") == Some(r#""allowed_tools""#) {
            text.push_str(&with_defaults(value, &CHOICE_MEMBERS));
        } else {
            text.push_str(value);
        }
        text.push(',');
    }
    text.push_str(r#""instructions":"#);
    text.push_str(&json!(request.instructions).to_string());
    text.push_str(r#","tools":["#);
    let mut functions = request.functions.iter();
    let tools = member(echo, "tools").unwrap_or_default();
    for (index, tool) in elements(tools).enumerate() {
        text.push_str(if index > 0 { "," } else { "" });
        let function = (tool == "null").then(|| functions.next()).flatten();
        match function {
            Some(function) => write_function(function, text),
            None if given(tool, "type") == Some(r#""function""#) => {
                text.push_str(&with_defaults(tool, &FUNCTION_MEMBERS));
            }
            None => text.push_str(tool),
        }
    }
    text.push(']');
}

/// Adds defaults to the setting `text` and to its format.
fn with_text_defaults(given_text: &str) -> String {
    let text = with_defaults(given_text, &TEXT_MEMBERS);
    let format = given(&text, "format").unwrap_or_default();
    if given(format, "type") != Some(r#""json_schema""#) {
        return text;
    }
    let format = with_defaults(format, &SCHEMA_MEMBERS);
    object_of(
        members(&text).map(|(key, value)| match is_named(key, "format") {
            true => (key, format.as_str()),
            false => (key, value),
        }),
    )
}

/// Adds defaults for missing or `null` members to a compact object. If the value is not an object, returns it
/// unchanged.
fn with_defaults(object: &str, defaults: &[(&str, &str)]) -> String {
    if !object.starts_with('{') {
        return object.into();
    }
    let default = |key: &str| defaults.iter().find(|(name, _)| is_named(key, name));
    let present = members(object).map(|(key, value)| match default(key) {
        Some((_, default)) if value == "null" => format!("{key}:{default}"),
        _ => format!("{key}:{value}"),
    });
    let is_missing = |name: &str| member(object, name).is_none();
    let missing = defaults.iter().filter(|(name, _)| is_missing(name));
    let missing = missing.map(|(name, default)| format!(r#""{name}":{default}"#));
    let all: Vec<_> = present.chain(missing).collect();
    format!("{{{}}}", all.join(","))
}

fn write_function(function: &Function, text: &mut String) {
    let Function {
        name,
        description,
        parameters,
        strict,
        custom,
    } = function;
    if let Some(CustomTool { format }) = custom {
        let format = format.as_ref().map_or(r#"{"type":"text"}"#, Json::as_str);
        text.push_str(&format!(
            r#"{{"type":"custom","name":{},"description":{},"format":{format}}}"#,
            json!(name),
            json!(description),
        ));
        return;
    }
    let parameters = parameters.as_ref().map_or("null", Json::as_str);
    text.push_str(&format!(
        r#"{{"type":"function","name":{},"description":{},"parameters":{parameters},"strict":{}}}"#,
        json!(name),
        json!(description),
        json!(strict),
    ));
}

#[cfg(test)]
mod tests;
