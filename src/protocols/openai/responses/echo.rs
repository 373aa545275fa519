//! The members of a request that its response repeats.
//!
//! A turn keeps them as an object. It stores the instructions and the functions already, so the object omits the
//! instructions, and its last member `tools` has `null` for each function.

use serde_json::{Value, json};

use crate::domain::{Json, elements, member};
use crate::protocols::openai::body::{ObjectBody, required};
use crate::protocols::openai::fault::Fault;
use crate::service::responses::{Function, TurnRequest};

/// The form in which a turn keeps the members.
///
/// # Errors
/// [`Fault`].
pub(super) fn kept(
    body: &ObjectBody,
    [is_background, is_kept]: [bool; 2],
    conversation: Option<&str>,
    created_ms: u64,
) -> Result<Json, Fault> {
    let metadata = body.metadata()?;
    let mut kept = format!(
        r#"{{"created_at":{},"background":{is_background},"truncation":"disabled","store":{is_kept},"conversation":{},"metadata":{}"#,
        created_ms / 1_000,
        conversation.map_or(Value::Null, |id| json!({ "id": id })),
        metadata.as_ref().map_or("{}", Json::as_str),
    );
    let defaults = [
        ("model", Value::Null),
        ("previous_response_id", Value::Null),
        ("max_output_tokens", Value::Null),
        ("max_tool_calls", Value::Null),
        ("parallel_tool_calls", json!(true)),
        ("tool_choice", json!("auto")),
        ("temperature", Value::Null),
        ("top_p", Value::Null),
        ("text", json!({"format": {"type": "text"}})),
        ("reasoning", Value::Null),
        ("service_tier", Value::Null),
        ("prompt_cache_key", Value::Null),
        ("safety_identifier", Value::Null),
        ("user", Value::Null),
    ];
    for (name, default) in defaults {
        let value = body
            .given(name)
            .map_or_else(|| default.to_string(), Into::into);
        kept.push_str(&format!(r#","{name}":{value}"#));
    }
    kept.push_str(r#","tools":["#);
    for (index, tool) in body
        .given("tools")
        .into_iter()
        .flat_map(elements)
        .enumerate()
    {
        kept.push_str(if index > 0 { "," } else { "" });
        let is_function = required(tool, "type", "tools")? == "function";
        kept.push_str(if is_function { "null" } else { tool });
    }
    kept.push_str("]}");
    Ok(Json::from_compact(kept))
}

/// Writes the members, separated by commas.
pub(super) fn write_members(request: &TurnRequest, text: &mut String) {
    let echo = request.echo.as_str();
    let tools = member(echo, "tools").unwrap_or_default();
    let members = echo.strip_suffix(&format!(r#","tools":{tools}}}"#));
    // an earlier version kept all of them
    let Some(members) = members.filter(|_| member(echo, "instructions").is_none()) else {
        return text.push_str(inner(echo));
    };
    text.push_str(members.get(1..).unwrap_or_default());
    text.push_str(r#","instructions":"#);
    text.push_str(&json!(request.instructions).to_string());
    text.push_str(r#","tools":["#);
    let mut functions = request.functions.iter();
    for (index, tool) in elements(tools).enumerate() {
        text.push_str(if index > 0 { "," } else { "" });
        let function = if tool == "null" {
            functions.next()
        } else {
            None
        };
        match function {
            Some(function) => write_function(function, text),
            None => text.push_str(tool),
        }
    }
    text.push(']');
}

/// An object without its braces.
fn inner(object: &str) -> &str {
    let inner = object.strip_prefix('{');
    inner
        .and_then(|inner| inner.strip_suffix('}'))
        .unwrap_or_default()
}

fn write_function(function: &Function, text: &mut String) {
    let Function {
        name,
        description,
        parameters,
        strict,
    } = function;
    let parameters = parameters.as_ref().map_or("null", Json::as_str);
    text.push_str(&format!(
        r#"{{"type":"function","name":{},"description":{},"parameters":{parameters},"strict":{}}}"#,
        json!(name),
        json!(description),
        json!(strict),
    ));
}
