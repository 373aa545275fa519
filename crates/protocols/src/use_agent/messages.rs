//! Converts stored items to the client's messages.

use serde_json::Value;

use threadkeep_domain::scope::StoredItem;
use threadkeep_domain::{member, quoted, rfc3339};

pub(super) fn is_of_user(value: &str) -> bool {
    member(value, "kind") == Some("\"user\"")
}

pub(super) struct Message {
    /// The id as JSON.
    pub(super) id: String,
    pub(super) json: String,
}

impl Message {
    /// Converts an item. Returns `None` if it is not a message.
    pub(super) fn of(item: &StoredItem) -> Option<Self> {
        let value = item.value.as_str();
        match member(value, "kind")? {
            "\"user\"" => Some(of_user(item, value)),
            "\"agent\"" => of_agent(item, value),
            _ => None,
        }
    }
}

fn of_user(item: &StoredItem, value: &str) -> Message {
    let id = id(item, &[value]);
    let content = member(value, "content").unwrap_or("\"\"");
    let at = time(item, member(value, "timestamp"));
    let mut json =
        format!(r#"{{"message_id":{id},"type":"user","content":{content},"createdAt":{at}"#);
    if let Some(state) = member(value, "clientState") {
        json.push_str(r#","clientState":"#);
        json.push_str(state);
    }
    json.push('}');
    Message { id, json }
}

fn of_agent(item: &StoredItem, value: &str) -> Option<Message> {
    let result = member(value, "result")?;
    if !result.starts_with('{') {
        return None;
    }
    let id = id(item, &[result, value]);
    let at = time(item, member(result, "createdAt"));
    let name = member(result, "agentName").unwrap_or("null");
    let json = format!(
        r#"{{"message_id":{id},"type":"agent","agentName":{name},"createdAt":{at},"data":{result}}}"#
    );
    Some(Message { id, json })
}

/// Returns the first non-empty `id` member of `objects`, or the item's id if all are empty or missing.
fn id(item: &StoredItem, objects: &[&str]) -> String {
    let own = objects.iter().find_map(|object| {
        let id = member(object, "id")?;
        (id.starts_with('"') && id != "\"\"").then(|| id.to_owned())
    });
    own.unwrap_or_else(|| quoted(item.id.as_str()))
}

/// Returns the message's own time unchanged, or else the item's time.
fn time(item: &StoredItem, own: Option<&str>) -> String {
    let is_time =
        |own: &&str| own.starts_with(|first: char| first == '"' || first.is_ascii_digit());
    let own = own.filter(is_time).map(str::to_owned);
    own.unwrap_or_else(|| Value::from(rfc3339(item.at_ms)).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use threadkeep_domain::Json;

    fn shown(value: &str) -> Option<String> {
        let item = StoredItem {
            seq: 1,
            id: "item".parse().unwrap(),
            at_ms: 1_000,
            value: Json::parse(value).unwrap(),
        };
        Message::of(&item).map(|message| message.json)
    }

    #[test]
    fn messages_are_shown_with_their_values_as_they_are_stored() {
        for (value, json) in [
            (
                r#"{"kind":"user","id":"u","content":"\u0061","timestamp":"T","clientState":{"a":1.0}}"#,
                r#"{"message_id":"u","type":"user","content":"\u0061","createdAt":"T","clientState":{"a":1.0}}"#,
            ),
            (
                r#"{"kind":"user"}"#,
                r#"{"message_id":"item","type":"user","content":"","createdAt":"1970-01-01T00:00:01.000Z"}"#,
            ),
            (
                r#"{"kind":"agent","result":{"id":"r","agentName":"A","output":[1e400],"createdAt":7}}"#,
                r#"{"message_id":"r","type":"agent","agentName":"A","createdAt":7,"data":{"id":"r","agentName":"A","output":[1e400],"createdAt":7}}"#,
            ),
            (
                r#"{"kind":"agent","id":"v","result":{"createdAt":null}}"#,
                r#"{"message_id":"v","type":"agent","agentName":null,"createdAt":"1970-01-01T00:00:01.000Z","data":{"createdAt":null}}"#,
            ),
        ] {
            assert_eq!(shown(value).as_deref(), Some(json), "{value}");
        }
    }

    #[test]
    fn other_items_are_omitted() {
        for value in [
            "1",
            "[]",
            "{}",
            r#"{"kind":"tool"}"#,
            r#"{"kind":"agent"}"#,
            r#"{"kind":"agent","result":[]}"#,
            r#"{"kind":["user"]}"#,
        ] {
            assert_eq!(shown(value), None, "{value}");
        }
    }
}
