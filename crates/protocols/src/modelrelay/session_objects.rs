use std::collections::BTreeMap;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::PROJECT_ID;
use super::run_objects::TaskObject;
use threadkeep_domain::rfc3339;
use threadkeep_domain::scope::{ScopeKey, ScopeValue, StoredItem};
use threadkeep_service::Session;

/// Prefix of metadata names that are shown but not stored.
pub(super) const RESERVED: &str = "modelrelay.";

#[derive(Serialize)]
pub(super) struct SessionObject<'a> {
    id: String,
    project_id: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    customer_id: Option<String>,
    metadata: Metadata<'a>,
    message_count: u64,
    created_at: String,
    updated_at: String,
}

#[derive(Serialize)]
pub(super) struct SessionList<'a> {
    pub(super) sessions: Vec<SessionObject<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) next_cursor: Option<String>,
}

/// A session's metadata, and the state of its tools.
struct Metadata<'a>(&'a Session);

impl<'a> SessionObject<'a> {
    pub(super) fn of(session: &'a Session) -> Self {
        Self {
            id: session.id.to_string(),
            project_id: PROJECT_ID,
            customer_id: session.customer_id.map(|id| id.to_string()),
            metadata: Metadata(session),
            message_count: session.message_count,
            created_at: rfc3339(session.created_ms).unwrap_or_default(),
            updated_at: rfc3339(session.updated_ms).unwrap_or_default(),
        }
    }

    /// Renders the session with its messages.
    pub(super) fn with_messages(&self, messages: &[StoredItem]) -> String {
        let mut json = serde_json::to_string(self).expect("names are text");
        json.pop();
        json.push_str(r#","messages":["#);
        for (index, message) in messages.iter().enumerate() {
            if index > 0 {
                json.push(',');
            }
            json.push_str(&message_object(message));
        }
        json.push_str("]}");
        json
    }
}

impl Serialize for Metadata<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, value) in self.0.metadata.iter() {
            map.serialize_entry(name, value)?;
        }
        let tools = &self.0.tools;
        if !tools.kv.is_empty() {
            map.serialize_entry("modelrelay.kv", &kv_object(&tools.kv))?;
        }
        if !tools.tasks.is_empty() {
            map.serialize_entry("modelrelay.tasks", &TaskObject::all(&tools.tasks))?;
        }
        map.end()
    }
}

pub(super) fn kv_object(kv: &[(ScopeKey, ScopeValue)]) -> BTreeMap<&str, &str> {
    let kv = kv.iter();
    kv.map(|(key, value)| (key.as_str(), value.as_str()))
        .collect()
}

/// Renders a message: the members from the client, and the id, sequence number and time from the store.
pub(super) fn message_object(message: &StoredItem) -> String {
    let id = &message.id;
    let seq = message.seq;
    let members = message.value.as_str();
    let members = members
        .strip_prefix('{')
        .and_then(|members| members.strip_suffix('}'));
    let members = members.unwrap_or_default();
    let created_at = rfc3339(message.at_ms).unwrap_or_default();
    format!(r#"{{"id":"{id}","seq":{seq},{members},"created_at":"{created_at}"}}"#)
}
