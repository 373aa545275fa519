//! Reads the fields of a request that are sent upstream.

use super::body::{DISABLED, flag, whole};
use super::include::Include;
use crate::openai::body::{ObjectBody, object, required};
use crate::openai::fault::Fault;
use threadkeep_domain::{Json, given};
use threadkeep_responses::Parameters;

/// Maximum number of alternative tokens per position for which log probabilities are returned.
const TOP_LOGPROBS_MAX: u64 = 20;
/// Maximum penalty. The minimum is `-PENALTY_MAX`.
const PENALTY_MAX: f64 = 2.0;

pub(super) fn read_parameters(body: &ObjectBody) -> Result<Parameters, Fault> {
    let number = |name: &str| given_as(body, name, "a number", is_number);
    let object = |name: &str| given_as(body, name, "an object", |byte| byte == b'{');
    let text = |name: &str| given_as(body, name, "a string", |byte| byte == b'"');
    let max_output_tokens = body.given("max_output_tokens");
    let max = max_output_tokens.map(|json| whole(json, "max_output_tokens", 1, u64::MAX));
    let include = Include::read(body.given("include"))?;
    let top = body.given("top_logprobs");
    let top = top.map(|json| whole(json, "top_logprobs", 0, TOP_LOGPROBS_MAX));
    let top_logprobs = top.transpose()?.filter(|top| *top > 0);
    body.given("text").map_or(Ok(()), check_text)?;
    Ok(Parameters {
        max_output_tokens: max.transpose()?,
        parallel_tool_calls: flag(body, "parallel_tool_calls")?,
        temperature: number("temperature")?,
        top_p: number("top_p")?,
        presence_penalty: penalty(body, "presence_penalty")?,
        frequency_penalty: penalty(body, "frequency_penalty")?,
        logprobs: include.logprobs || top_logprobs.is_some(),
        top_logprobs,
        text: object("text")?,
        reasoning: object("reasoning")?,
        encrypted_reasoning: include.encrypted_reasoning,
        search_sources: include.search_sources,
        stop: None,
        user: text("user")?,
        safety_identifier: text("safety_identifier")?,
        prompt_cache_key: text("prompt_cache_key")?,
        service_tier: text("service_tier")?,
        truncation: text("truncation")?.filter(|mode| mode.as_str() != DISABLED),
    })
}

/// Returns a penalty, or `None` for 0, the default.
fn penalty(body: &ObjectBody, name: &str) -> Result<Option<Json>, Fault> {
    let Some(given) = given_as(body, name, "a number", is_number)? else {
        return Ok(None);
    };
    match given.as_str().parse::<f64>() {
        Ok(0.0) => Ok(None),
        Ok(number) if number.abs() <= PENALTY_MAX => Ok(Some(given)),
        _ => Err(Fault::wrong_value(name, "a number from -2 to 2")),
    }
}

fn is_number(byte: u8) -> bool {
    matches!(byte, b'-' | b'0'..=b'9')
}

/// Checks the format of the answer. Rejects unknown formats, because the upstream request would omit them silently.
fn check_text(text: &str) -> Result<(), Fault> {
    let name = "text.format";
    let Some(format) = given(text, "format") else {
        return Ok(());
    };
    object(format, name)?;
    match required(format, "type", name)?.as_str() {
        "text" | "json_object" => Ok(()),
        "json_schema" => {
            required(format, "name", name)?;
            match given(format, "schema") {
                Some(schema) if schema.starts_with('{') => Ok(()),
                Some(_) => Err(Fault::wrong_type("text.format.schema", "an object")),
                None => Err(Fault::missing("text.format.schema")),
            }
        }
        _ => Err(Fault::unsupported(
            "unsupported_value",
            "text.format.type",
            "'text', 'json_object' or 'json_schema'",
        )),
    }
}

fn given_as(
    body: &ObjectBody,
    name: &str,
    expected: &str,
    is_first_byte: impl Fn(u8) -> bool,
) -> Result<Option<Json>, Fault> {
    match body.given(name) {
        None => Ok(None),
        Some(json) if is_first_byte(json.as_bytes()[0]) => Ok(Some(Json::from_compact(json))),
        Some(_) => Err(Fault::wrong_type(name, expected)),
    }
}
