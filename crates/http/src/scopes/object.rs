use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use threadkeep_domain::rfc3339;
use threadkeep_domain::scope::{KV_MAX_BYTES, KV_MAX_KEYS, ScopeId, ScopePolicy, Task, TaskStatus};
use threadkeep_store::ScopeView;

/// A scope without its keys and tasks. The times of a scope that does not exist are null.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ScopeObject {
    scope: String,
    exists: bool,
    /// Increases by 1 with each write; 0 if the scope does not exist.
    version: u64,
    /// The number of keys.
    keys: u32,
    limit_keys: u32,
    /// Size of all values in bytes.
    size_bytes: u64,
    limit_bytes: u64,
    /// The number of tasks.
    tasks: usize,
    /// The number of tasks that are not completed.
    unfinished_tasks: usize,
    /// The number of items in the history.
    history: u64,
    history_bytes: u64,
    history_limit_bytes: u64,
    /// True if the scope was ended. An ended scope rejects writes.
    is_ended: bool,
    #[schema(format = DateTime)]
    created_at: Option<String>,
    #[schema(format = DateTime)]
    updated_at: Option<String>,
    /// When the scope expires. Null if the scope lives as long as its thread, or until you end it.
    #[schema(format = DateTime)]
    expires_at: Option<String>,
}

impl ScopeObject {
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

/// The receipt of a write.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ScopeReceipt {
    /// False if the key already existed and the request had `if_absent`.
    pub(crate) ok: bool,
    /// The scope's version after the write.
    pub(crate) version: u64,
    /// The result of each entry, in the order of the request, if the request had `entries`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) results: Option<Vec<EntryResult>>,
}

/// The result of one entry.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct EntryResult {
    /// False if the key already existed and the entry had `if_absent`.
    pub(crate) ok: bool,
}

/// The value of one key, or the values of several keys.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum KeyValues {
    /// The response to a request with `key`.
    One {
        /// Null if the key does not exist.
        value: Option<String>,
        /// The scope's version.
        version: u64,
    },
    /// The response to a request with `keys`.
    Many {
        /// The values by key. Null for keys that do not exist.
        #[schema(value_type = std::collections::BTreeMap<String, Option<String>>)]
        values: Map<String, Value>,
        /// The scope's version.
        version: u64,
    },
}

/// The receipt of a deletion.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct DeleteKeyReceipt {
    /// True if the key existed.
    pub(crate) deleted: bool,
    /// The scope's version after the write.
    pub(crate) version: u64,
}

/// A list of keys.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct KeyList {
    /// The keys, in byte order.
    pub(crate) keys: Vec<String>,
    /// The scope's version.
    pub(crate) version: u64,
}

/// The receipt of an increment.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct IncrementKeyReceipt {
    /// The value after the increment, a 64-bit integer.
    pub(crate) value: i64,
    /// The scope's version after the write.
    pub(crate) version: u64,
}

/// A task list.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct TasksObject {
    /// The tasks, in order.
    pub(crate) tasks: Vec<TaskObject>,
    /// The scope's version.
    pub(crate) version: u64,
}

/// A task.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct TaskObject {
    /// The id of the task within its list.
    id: String,
    /// The text of the task, such as "Book a flight".
    content: String,
    /// The status: `pending`, `in_progress` or `completed`.
    #[schema(value_type = String, pattern = "^(pending|in_progress|completed)$")]
    status: TaskStatus,
    /// The text to show while the task is in progress, such as "Booking a flight".
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

/// The receipt of ending a scope.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ScopeEnded {
    /// True if the scope existed.
    pub(crate) ended: bool,
}
