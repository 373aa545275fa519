//! Renders conversations and items.

use std::borrow::Cow;

use actix_web::HttpResponse;
use serde_json::Value;

use super::edit::{Edit, edited};
use super::ids::conversation_of;
use threadkeep_domain::scope::{HistoryItem, StoredItem};
use threadkeep_domain::{Thread, ThreadId, member, quoted, text_of};
use threadkeep_http::{json_text, mark_replay};

/// Maximum total size in bytes of the items on a page. An item that is larger is returned alone on a page.
const PAGE_MAX_BYTES: usize = 2 * 1_048_576;

pub(super) fn conversation(id: &ThreadId, thread: &Thread) -> String {
    let (id, seconds) = (conversation_of(id), thread.created_ms / 1_000);
    let metadata = thread.metadata.as_str();
    format!(
        r#"{{"id":"{id}","object":"conversation","created_at":{seconds},"metadata":{metadata}}}"#
    )
}

pub(super) fn deleted(id: &ThreadId) -> String {
    let id = conversation_of(id);
    format!(r#"{{"id":"{id}","object":"conversation.deleted","deleted":true}}"#)
}

/// Renders a history item. Clients of other APIs may have added JSON values that are not valid items. Such a value is
/// rendered as the member `value` of an item with the type `history_item`.
pub(super) fn item(stored: &StoredItem) -> Cow<'_, str> {
    let value = stored.value.as_str();
    let id = quoted(stored.id.as_str());
    if !member(value, "type").is_some_and(|kind| kind.starts_with('"')) {
        return Cow::Owned(foreign(&id, value));
    }
    match member(value, "id") {
        Some(own) if text_of(own).as_deref() == Some(stored.id.as_str()) => Cow::Borrowed(value),
        None => {
            let edit = Edit {
                name: "id",
                json: &id,
            };
            Cow::Owned(edited(value, &[edit]))
        }
        Some(_) => Cow::Owned(foreign(&id, value)),
    }
}

fn foreign(id: &str, value: &str) -> String {
    format!(r#"{{"id":{id},"type":"history_item","value":{value}}}"#)
}

pub(super) fn added(items: &[HistoryItem]) -> String {
    let texts = items
        .iter()
        .map(|item| (item.id.as_str(), Cow::Borrowed(item.value.as_str())));
    list(texts.collect(), false)
}

/// Renders a page of up to `limit` items. Sets `has_more` if `items` contains items that are not on the page.
pub(super) fn page(items: &[StoredItem], limit: usize) -> String {
    let mut bytes = 0;
    let mut shown = Vec::with_capacity(limit.min(items.len()));
    for stored in items.iter().take(limit) {
        let text = item(stored);
        bytes += text.len();
        if bytes > PAGE_MAX_BYTES && !shown.is_empty() {
            break;
        }
        shown.push((stored.id.as_str(), text));
    }
    let has_more = shown.len() < items.len();
    list(shown, has_more)
}

pub(super) fn list(items: Vec<(&str, Cow<'_, str>)>, has_more: bool) -> String {
    let id = |item: Option<&(&str, Cow<'_, str>)>| Value::from(item.map(|(id, _)| *id)).to_string();
    let (first, last) = (id(items.first()), id(items.last()));
    let bytes: usize = items.iter().map(|(_, text)| text.len() + 1).sum();
    let mut json = String::with_capacity(bytes + 400);
    json.push_str(r#"{"object":"list","data":["#);
    for (index, (_, text)) in items.iter().enumerate() {
        json.push_str(if index > 0 { "," } else { "" });
        json.push_str(text);
    }
    json.push_str(&format!(
        r#"],"first_id":{first},"last_id":{last},"has_more":{has_more}}}"#
    ));
    json
}

/// Returns `json` with status 200, marked as a replay if `replayed` is true.
pub(super) fn answer(json: String, replayed: bool) -> HttpResponse {
    let mut response = HttpResponse::Ok();
    mark_replay(&mut response, replayed);
    json_text(response, json)
}

#[cfg(test)]
mod tests {
    use super::*;
    use threadkeep_domain::Json;

    fn stored_item(id: &str, value: &str) -> StoredItem {
        StoredItem {
            seq: 1,
            id: id.parse().unwrap(),
            at_ms: 0,
            value: Json::parse(value).unwrap(),
        }
    }

    #[test]
    fn a_page_ends_at_2_mib_but_has_one_item() {
        let large = format!(
            r#"{{"type":"x","id":"a","v":"{}"}}"#,
            "v".repeat(PAGE_MAX_BYTES)
        );
        let small = r#"{"type":"x","id":"b"}"#;
        let [large, small] = [stored_item("a", &large), stored_item("b", small)];

        let one = page(&[large.clone(), small.clone()], 20);
        assert!(one.ends_with(r#"],"first_id":"a","last_id":"a","has_more":true}"#));
        let one = page(&[small.clone(), large.clone()], 20);
        assert!(one.ends_with(r#"],"first_id":"b","last_id":"b","has_more":true}"#));
        let all = page(&[small.clone(), small.clone()], 2);
        assert!(all.ends_with(r#""has_more":false}"#));
        let first = page(&[small.clone(), small], 1);
        assert!(first.ends_with(r#""has_more":true}"#));
        let none = r#"{"object":"list","data":[],"first_id":null,"last_id":null,"has_more":false}"#;
        assert_eq!(page(&[], 20), none);
    }

    #[test]
    fn values_of_other_clients_are_shown_as_items() {
        for (value, shown) in [
            (
                "[1.0]",
                r#"{"id":"a\"","type":"history_item","value":[1.0]}"#,
            ),
            ("{}", r#"{"id":"a\"","type":"history_item","value":{}}"#),
            (
                r#"{"type":7}"#,
                r#"{"id":"a\"","type":"history_item","value":{"type":7}}"#,
            ),
            (r#"{"type":"x"}"#, r#"{"type":"x","id":"a\""}"#),
            (
                r#"{"type":"x","id":"b"}"#,
                r#"{"id":"a\"","type":"history_item","value":{"type":"x","id":"b"}}"#,
            ),
            (
                r#"{"type":"x","id":"\u0061\""}"#,
                r#"{"type":"x","id":"\u0061\""}"#,
            ),
        ] {
            assert_eq!(item(&stored_item("a\"", value)), shown, "{value}");
        }
    }
}
