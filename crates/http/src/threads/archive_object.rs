use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use threadkeep_domain::rfc3339;
use threadkeep_events::history_url;
use threadkeep_store::ArchiveHead;

/// An ended thread without its state.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ArchiveObject {
    id: String,
    /// The life of the thread: 16 hex digits, as in the entity tag. Distinguishes threads that had the same id.
    life: String,
    /// The last version of the thread.
    version: u64,
    /// Size of the compact JSON state in bytes.
    size_bytes: u64,
    /// Why the thread ended: `expired` or `destroyed`.
    reason: &'static str,
    /// When the thread ended.
    #[schema(format = DateTime)]
    ended_at: Option<String>,
    #[schema(value_type = Object)]
    metadata: Box<RawValue>,
    /// The number of items in the history, if there is a history.
    #[serde(skip_serializing_if = "Option::is_none")]
    history_count: Option<u64>,
    /// The URL of the history, if there is a history.
    #[serde(skip_serializing_if = "Option::is_none")]
    history_url: Option<String>,
    /// The numbers of the checkpoints that ended with the thread. Absent if the thread did not have checkpoints.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    checkpoints: Vec<u32>,
}

/// A page of archives.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ArchiveList {
    /// The archives, oldest first. A page may contain fewer than `limit` archives.
    pub(crate) archives: Vec<ArchiveObject>,
    /// The cursor of the next page. Null on the last page.
    pub(crate) next_cursor: Option<String>,
}

impl ArchiveObject {
    pub(crate) fn of(head: &ArchiveHead, public_url: &str) -> Self {
        let has_history = !head.history.is_empty();
        let metadata = RawValue::from_string(head.metadata.as_str().to_owned());
        Self {
            id: head.id.to_string(),
            life: format!("{:016x}", head.life.0),
            version: head.version,
            size_bytes: head.size_bytes,
            reason: head.reason.as_str(),
            ended_at: rfc3339(head.ended_ms),
            metadata: metadata.unwrap_or_default(),
            history_count: has_history.then(|| head.history.len()),
            history_url: has_history.then(|| history_url(public_url, &head.id, head.life)),
            checkpoints: head.checkpoints.clone(),
        }
    }
}

/// An ended thread.
#[derive(ToSchema, Serialize)]
pub(super) struct ArchiveWithState {
    #[schema(inline)]
    #[serde(flatten)]
    head: ArchiveObject,
    /// The final state.
    state: BTreeMap<String, Value>,
}
