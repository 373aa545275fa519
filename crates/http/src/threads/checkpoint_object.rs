use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::answer::json_with;
use crate::request::CheckpointNameText;
use threadkeep_domain::{Stamp, rfc3339};
use threadkeep_store::{Checkpoint, CheckpointHead, Found};

/// The checkpoint to save.
#[derive(ToSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NewCheckpointBody {
    /// The name: 1 to 128 bytes without control characters. Names need not be unique.
    #[schema(nullable = false, value_type = Option<String>, min_length = 1, max_length = 128)]
    pub(super) name: Option<CheckpointNameText>,
}

/// A checkpoint without its state.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct CheckpointObject {
    /// The number of the checkpoint, starting at 1. Numbers are never reused while the thread exists.
    checkpoint: u32,
    name: Option<String>,
    /// The version of the thread when the checkpoint was saved.
    version: u64,
    /// Size of the compact JSON state in bytes.
    size_bytes: u64,
    #[schema(format = DateTime)]
    created_at: Option<String>,
}

/// The checkpoints of a thread.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct CheckpointList {
    /// The checkpoints, newest first.
    checkpoints: Vec<CheckpointObject>,
}

/// A checkpoint.
#[derive(ToSchema, Serialize)]
pub(super) struct CheckpointWithState {
    #[schema(inline)]
    #[serde(flatten)]
    head: CheckpointObject,
    /// The saved metadata.
    metadata: BTreeMap<String, Value>,
    /// The saved state, unchanged.
    state: BTreeMap<String, Value>,
}

impl From<&CheckpointHead> for CheckpointObject {
    fn from(head: &CheckpointHead) -> Self {
        Self {
            checkpoint: head.number,
            name: head.name.as_ref().map(|name| name.as_str().to_owned()),
            version: head.version,
            size_bytes: head.size_bytes,
            created_at: rfc3339(head.created_ms),
        }
    }
}

impl CheckpointList {
    pub(super) fn of(found: Option<Found<Vec<CheckpointHead>>>) -> (Self, Stamp) {
        let (heads, stamp) = match found {
            Some(Found { stamp, content }) => (content, stamp),
            None => (Vec::new(), Stamp::default()),
        };
        let checkpoints = heads.iter().map(CheckpointObject::from).collect();
        (Self { checkpoints }, stamp)
    }
}

pub(super) fn full_json(checkpoint: &Checkpoint) -> Vec<u8> {
    let Checkpoint { head, content } = checkpoint;
    let metadata = content.metadata.as_str().as_bytes();
    let members = [("metadata", metadata), ("state", &*content.state)];
    json_with(&CheckpointObject::from(head), &members)
}
