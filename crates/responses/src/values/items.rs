//! Creates output items in the form of OpenAI's Responses API.

use std::borrow::Cow;

use serde_json::{Value, json};

use crate::values::call::PendingCall;
use crate::values::request::FollowedResponse;
use threadkeep_domain::scope::ItemId;
use threadkeep_domain::{
    CallForm, ItemKind, Json, ResponseId, member, member_text, members, object_of, quoted,
};
use threadkeep_service::tools::Outcome;

/// Lengths of the two hexadecimal numbers in an item id: one for the response, and one for the creation time and the
/// item number. Ids from other sources have different lengths.
const RESPONSE_DIGITS: usize = 32;
const NUMBER_DIGITS: usize = 20;
/// Number of an id's low bits that hold the item number. The higher bits hold the creation time of the response.
const NUMBER_BITS: u32 = 16;
/// Member that holds an item's upstream id. Set only if the item's own id cannot contain the upstream id.
const UPSTREAM_ID: &str = "upstream_id";
const QUOTED_UPSTREAM_ID: &str = "\"upstream_id\"";

/// Returns the id of item `number` in a response created at `created_ms`.
///
/// All drivers of the response derive the same id. A response that has been deleted and runs again has a different
/// creation time, so its items get different ids. `number` counts input and output items together.
#[must_use]
pub fn response_item_id(
    prefix: &str,
    response: &ResponseId,
    created_ms: u64,
    number: u64,
) -> String {
    let number = created_ms << NUMBER_BITS | number;
    let response = response.to_string();
    let digits = response.rsplit('_').next().unwrap_or_default();
    format!("{prefix}{digits}{number:0NUMBER_DIGITS$x}")
}

pub fn item_id_of(item: &Json) -> Option<ItemId> {
    let id: String = serde_json::from_str(member(item.as_str(), "id")?).ok()?;
    id.parse().ok()
}

/// Returns the response that an item id identifies, or `None` if this server did not create the id.
pub fn response_of_item(id: &str) -> Option<FollowedResponse> {
    let (_, digits) = id.rsplit_once('_')?;
    if digits.len() != RESPONSE_DIGITS + NUMBER_DIGITS || !digits.is_ascii() {
        return None;
    }
    let (response, number) = digits.split_at(RESPONSE_DIGITS);
    Some(FollowedResponse {
        id: format!("resp_{response}").parse().ok()?,
        created_ms: u64::from_str_radix(number, 16).ok()? >> NUMBER_BITS,
    })
}

/// Creates a message item from an [`AnswerPart::Message`](super::AnswerPart::Message). `step` is set if the message
/// follows a call in the same answer.
pub(crate) fn message(id: &str, status: &str, step: Option<u32>, message: &Json) -> Json {
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

/// Converts an item from an upstream. The new id contains the upstream's id if possible. Adds a status to reasoning
/// that has none. `step` is set if the item follows a call in the same answer.
pub(crate) fn upstream_item(id: &str, step: Option<u32>, item: &Json) -> Json {
    let item = item.as_str();
    let upstream_id = member_text(item, "id").filter(|id| !id.is_empty());
    let combined = upstream_id
        .as_ref()
        .and_then(|upstream_id| with_upstream_id(id, upstream_id));
    let (id, upstream_id) = match (combined, upstream_id) {
        (Some(combined), _) => (combined, None),
        (None, upstream_id) => (id.to_owned(), upstream_id.map(|id| quoted(&id))),
    };
    let is_reasoning = ItemKind::of(item) == Some(ItemKind::Reasoning);
    let status = (is_reasoning && member(item, "status").is_none()).then_some(r#""completed""#);
    let step = step.map(|step| step.to_string());
    let added = [
        (r#""id""#, Some(quoted(&id))),
        (r#""status""#, status.map(str::to_owned)),
        (r#""step""#, step),
        (QUOTED_UPSTREAM_ID, upstream_id),
    ];
    let added = added.iter();
    let added = added.filter_map(|(name, value)| Some((*name, value.as_deref()?)));
    let original = members(item).filter(|(name, _)| *name != r#""id""#);
    Json::from_compact(object_of(added.chain(original)))
}

/// Appends the digits of `id`, which identify the response and the item, to the upstream's id. Returns `None` if the
/// result would be an invalid item id or look like an id without an upstream id.
fn with_upstream_id(id: &str, upstream_id: &str) -> Option<String> {
    let (_, digits) = id.rsplit_once('_').filter(|_| upstream_id.contains('_'))?;
    let combined = format!("{upstream_id}_{digits}");
    combined.parse::<ItemId>().is_ok().then_some(combined)
}

/// Returns the upstream id of an item, or `None` if the upstream assigned no id.
pub fn upstream_id_of(item: &str) -> Option<Cow<'_, str>> {
    if let Some(id) = member_text(item, UPSTREAM_ID) {
        return Some(id);
    }
    let id = member_text(item, "id")?;
    let Some((upstream_id, _)) = id
        .rsplit_once('_')
        .filter(|_| response_of_item(&id).is_some())
    else {
        return Some(id);
    };
    // if the upstream assigned no id, only a prefix precedes the digits
    upstream_id
        .contains('_')
        .then(|| upstream_id.to_owned().into())
}

fn step_member(step: Option<u32>) -> String {
    step.map(|step| format!(r#""step":{step},"#))
        .unwrap_or_default()
}

pub(crate) fn client_call(id: &str, form: CallForm, call: &PendingCall) -> Json {
    let item = json!({
        "type": form.call_kind().as_str(),
        "id": id,
        "call_id": call.id,
        "name": call.name,
        form.arguments_member(): call.arguments,
        "status": "completed",
        "step": call.step,
    });
    Json::from_compact(item.to_string())
}

pub(crate) fn executed_call(id: &str, label: &str, call: &PendingCall, outcome: &Outcome) -> Json {
    let (output, error, status) = match outcome {
        Outcome::Result(result) => (Value::from(result.to_string()), Value::Null, "completed"),
        Outcome::Mistake(text) => (Value::Null, Value::from(text.as_str()), "failed"),
    };
    let item = json!({
        "type": ItemKind::McpCall.as_str(),
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

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: &str = "rs_00000000000000000000000000000001000000000000000000ab";

    fn shown(item: &str) -> Json {
        upstream_item(OURS, None, &Json::parse(item).unwrap())
    }

    #[test]
    fn an_upstream_item_gets_a_new_id_that_contains_the_upstream_id() {
        for (item, id, upstream_id) in [
            (r#"{"type":"reasoning"}"#, OURS.to_owned(), None),
            (
                r#"{"type":"reasoning","id":"rs_68"}"#,
                OURS.replace("rs_", "rs_68_"),
                Some("rs_68"),
            ),
            (r#"{"type":"reasoning","id":""}"#, OURS.to_owned(), None),
        ] {
            let shown = shown(item);

            let shown_id = item_id_of(&shown).unwrap();
            assert_eq!(shown_id.as_str(), id);
            assert_eq!(upstream_id_of(shown.as_str()).as_deref(), upstream_id);
            assert!(response_of_item(shown_id.as_str()).is_some());
        }
    }

    #[test]
    fn an_upstream_id_that_does_not_fit_is_stored_separately() {
        for upstream_id in ["a_".repeat(45), "ä_".to_owned(), "one".to_owned()] {
            let shown = shown(&format!(r#"{{"type":"reasoning","id":"{upstream_id}"}}"#));

            assert_eq!(item_id_of(&shown).unwrap().as_str(), OURS);
            assert_eq!(
                upstream_id_of(shown.as_str()).as_deref(),
                Some(&*upstream_id)
            );
        }
    }

    #[test]
    fn foreign_ids_are_upstream_ids() {
        for id in ["rs_68", "x", "rs_0000"] {
            let item = format!(r#"{{"type":"reasoning","id":"{id}"}}"#);
            assert_eq!(upstream_id_of(&item).as_deref(), Some(id));
        }
    }
}
