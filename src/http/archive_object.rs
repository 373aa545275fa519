//! What is left of a thread, as it is told.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::domain::rfc3339;
use crate::store::ArchiveHead;

/// What is left of a thread, but for its state.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ArchiveObject {
    id: String,
    /// Which life of the id, 16 hex digits as in the entity tag.
    life: String,
    /// Its last version.
    version: u64,
    /// Of the compact serialized state.
    size_bytes: u64,
    /// `expired` or `destroyed`.
    reason: &'static str,
    /// When it was over.
    #[schema(format = DateTime)]
    ended_at: Option<String>,
    #[schema(value_type = Object)]
    metadata: Box<RawValue>,
}

/// A part of the list of archives.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ArchiveList {
    /// In the order in which they were archived; perhaps fewer than were asked for.
    pub(super) archives: Vec<ArchiveObject>,
    /// Where to go on; null: there are no more.
    pub(super) next_cursor: Option<String>,
}

impl ArchiveObject {
    pub(super) fn of(head: &ArchiveHead) -> Self {
        let metadata = RawValue::from_string(head.metadata.as_str().to_owned());
        Self {
            id: head.id.to_string(),
            life: format!("{:016x}", head.life.0),
            version: head.version,
            size_bytes: head.size_bytes,
            reason: head.reason.as_str(),
            ended_at: rfc3339(head.ended_ms),
            metadata: metadata.unwrap_or_default(),
        }
    }
}

/// What is left of a thread.
#[derive(ToSchema, Serialize)]
pub(super) struct ArchiveWithState {
    #[schema(inline)]
    #[serde(flatten)]
    head: ArchiveObject,
    /// The final state.
    state: BTreeMap<String, Value>,
}
