//! Scopes and what was done to them, as they are told.

use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::domain::rfc3339;
use crate::domain::scope::{KV_MAX_BYTES, KV_MAX_KEYS, ScopeId, ScopePolicy, Task, TaskStatus};
use crate::store::ScopeView;

/// All about a scope but what it holds. Of one that does not exist the times are null.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ScopeObject {
    scope: String,
    exists: bool,
    /// +1 for each write; 0: it does not exist.
    version: u64,
    /// Number of keys.
    keys: u32,
    limit_keys: u32,
    /// Of all values.
    size_bytes: u64,
    limit_bytes: u64,
    /// Number of tasks.
    tasks: usize,
    /// Number of tasks that are not completed.
    unfinished_tasks: usize,
    /// Number of items of the history.
    history: u64,
    history_bytes: u64,
    history_limit_bytes: u64,
    /// Whether it takes no more writes.
    is_ended: bool,
    #[schema(format = DateTime)]
    created_at: Option<String>,
    #[schema(format = DateTime)]
    updated_at: Option<String>,
    /// Null too of one that lives with its thread, or until it is ended.
    #[schema(format = DateTime)]
    expires_at: Option<String>,
}

impl ScopeObject {
    /// The scope as it was read, with its tasks.
    pub(crate) fn of(scope: &ScopeId, view: &ScopeView, policy: &ScopePolicy) -> Self {
        let exists = view.stamp.version > 0;
        let time = |ms| exists.then(|| rfc3339(ms)).flatten();
        let unfinished = view
            .tasks
            .tasks()
            .iter()
            .filter(|task| !task.is_completed());
        Self {
            scope: scope.to_string(),
            exists,
            version: view.stamp.version,
            keys: view.key_count,
            limit_keys: KV_MAX_KEYS,
            size_bytes: view.kv_bytes,
            limit_bytes: KV_MAX_BYTES,
            tasks: view.tasks.tasks().len(),
            unfinished_tasks: unfinished.count(),
            history: view.history.len(),
            history_bytes: view.history.bytes,
            history_limit_bytes: policy.history.max_bytes,
            is_ended: view.is_sealed,
            created_at: time(view.created_ms),
            updated_at: time(view.updated_ms),
            expires_at: view.expires_ms.and_then(rfc3339),
        }
    }
}

/// What was written.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ScopeReceipt {
    /// False only if a key was to be set if absent, and was not.
    pub(crate) ok: bool,
    /// The scope's version afterwards.
    pub(crate) version: u64,
    /// Of several entries: what came of each, in order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) results: Option<Vec<EntryResult>>,
}

/// What came of an entry.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct EntryResult {
    /// False if it was to be set if absent, and was not.
    pub(crate) ok: bool,
}

/// What is under a key, or several.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum Values {
    /// Of one key.
    One {
        /// Null: there is no such key.
        value: Option<String>,
        /// The scope's version.
        version: u64,
    },
    /// Of several.
    Many {
        /// By their keys; null: there is no such key.
        #[schema(value_type = std::collections::BTreeMap<String, Option<String>>)]
        values: Map<String, Value>,
        /// The scope's version.
        version: u64,
    },
}

/// What was deleted.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct KeyDeleted {
    /// Whether there was such a key.
    pub(crate) deleted: bool,
    /// The scope's version afterwards.
    pub(crate) version: u64,
}

/// Keys.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct KeyList {
    /// Sorted by their bytes.
    pub(crate) keys: Vec<String>,
    /// The scope's version.
    pub(crate) version: u64,
}

/// A sum.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Sum {
    /// An integer of 64 bits.
    pub(crate) value: i64,
    /// The scope's version afterwards.
    pub(crate) version: u64,
}

/// A task list.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct TasksObject {
    /// In order.
    pub(crate) tasks: Vec<TaskObject>,
    /// The scope's version.
    pub(crate) version: u64,
}

/// A task.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct TaskObject {
    /// What it is known by within its list.
    id: String,
    /// What is to be done.
    content: String,
    /// How far it is.
    #[schema(value_type = String, pattern = "^(pending|in_progress|completed)$")]
    status: TaskStatus,
    /// What is being done while it is worked on; absent if it was not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    active_form: Option<String>,
}

impl From<&Task> for TaskObject {
    fn from(task: &Task) -> Self {
        Self {
            id: task.id.clone(),
            content: task.content.clone(),
            status: task.status,
            active_form: task.active_form.clone(),
        }
    }
}

/// Whether there was a scope.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ScopeEnded {
    pub(crate) ended: bool,
}
