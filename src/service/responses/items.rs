//! Items of an output, in the form of OpenAI's Responses API.

use serde_json::{Value, json};

use super::request::FollowedTurn;
use crate::domain::scope::ItemId;
use crate::domain::{Json, ResponseId, member};
use crate::service::tools::Outcome;

/// Hex digits of a response in the id of an item, and of the item's number. Ids that others make have another length.
const RESPONSE_DIGITS: usize = 32;
const NUMBER_DIGITS: usize = 20;
/// Bits of the number of an item, below those of the time.
const NUMBER_BITS: u32 = 16;

/// The id of the item of that number in a turn that came at that time: the same for each of its drivers, and another one if a
/// forgotten turn is run again. Input and output are counted together.
#[must_use]
pub fn turn_item_id(prefix: &str, response: &ResponseId, created_ms: u64, number: u64) -> String {
    let number = created_ms << NUMBER_BITS | number;
    let response = response.to_string();
    let digits = response.rsplit('_').next().unwrap_or_default();
    format!("{prefix}{digits}{number:0NUMBER_DIGITS$x}")
}

/// The id of an item, as a history has it.
pub(crate) fn item_id_of(item: &Json) -> Option<ItemId> {
    let id: String = serde_json::from_str(member(item.as_str(), "id")?).ok()?;
    id.parse().ok()
}

/// The turn that has given an item that id.
pub(crate) fn turn_of_item(id: &str) -> Option<FollowedTurn> {
    let (_, digits) = id.rsplit_once('_')?;
    if digits.len() != RESPONSE_DIGITS + NUMBER_DIGITS || !digits.is_ascii() {
        return None;
    }
    let (response, number) = digits.split_at(RESPONSE_DIGITS);
    Some(FollowedTurn {
        id: format!("resp_{response}").parse().ok()?,
        created_ms: u64::from_str_radix(number, 16).ok()? >> NUMBER_BITS,
    })
}

/// A message of the model, as [`AnswerPart::Message`](super::AnswerPart::Message) has it. One that follows a call in its answer
/// has the number of that.
pub(super) fn message(id: &str, status: &str, step: Option<u32>, message: &Json) -> Json {
    let message = message.as_str();
    let members = match message.strip_prefix('{') {
        Some(members) => members.to_owned(),
        None => format!(r#""content":{message}}}"#),
    };
    let step = step_member(step);
    Json::from_compact(format!(
        r#"{{"type":"message","id":"{id}","role":"assistant","status":"{status}",{step}{members}"#
    ))
}

/// An item of the upstream, which gets an id unless it has one. Reasoning gets a status too. One that follows a call in its
/// answer has the number of that.
pub(super) fn foreign(id: &str, step: Option<u32>, item: &Json) -> Json {
    let item = item.as_str();
    let lacks = |name| member(item, name).is_none();
    let is_reasoning = member(item, "type") == Some(r#""reasoning""#);
    let id = match lacks("id") {
        true => format!(r#""id":"{id}","#),
        false => String::new(),
    };
    let status = match is_reasoning && lacks("status") {
        true => r#""status":"completed","#,
        false => "",
    };
    let step = step_member(step);
    let members = item.strip_prefix('{').unwrap_or(item);
    Json::from_compact(format!("{{{id}{status}{step}{members}"))
}

fn step_member(step: Option<u32>) -> String {
    step.map(|step| format!(r#""step":{step},"#))
        .unwrap_or_default()
}

/// A call that the client has to run.
pub(super) fn function_call(id: &str, call: &super::course::PendingCall) -> Json {
    let item = json!({
        "type": "function_call",
        "id": id,
        "call_id": call.id,
        "name": call.name,
        "arguments": call.arguments,
        "status": "completed",
        "step": call.step,
    });
    Json::from_compact(item.to_string())
}

/// A call that the server has run.
pub(super) fn executed_call(
    id: &str,
    label: &str,
    call: &super::course::PendingCall,
    outcome: &Outcome,
) -> Json {
    let (output, error, status) = match outcome {
        Outcome::Result(result) => (Value::from(result.to_string()), Value::Null, "completed"),
        Outcome::Mistake(text) => (Value::Null, Value::from(text.as_str()), "failed"),
    };
    let item = json!({
        "type": "mcp_call",
        "id": id,
        "call_id": call.id,
        "server_label": label,
        "name": call.name,
        "arguments": call.arguments,
        "output": output,
        "error": error,
        "status": status,
        "approval_request_id": null,
        "step": call.step,
    });
    Json::from_compact(item.to_string())
}
