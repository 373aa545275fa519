//! Records changes to a run's state as events. A write that changes keys or tasks also appends an item to the run's
//! history in the same step.

use uuid::{Builder, Uuid};

use threadkeep_domain::Json;
use threadkeep_domain::scope::{HistoryItem, KvOperation, ScopeId, ScopeWrite};

/// Returns the events for a write. The list is empty unless the scope is a run.
pub(crate) fn items(scope: &ScopeId, write: &ScopeWrite<'_>) -> Vec<HistoryItem> {
    if !matches!(scope, ScopeId::Run(_)) {
        return Vec::new();
    }
    let mut items = Vec::new();
    if !write.operations.is_empty() {
        items.push(item(serde_json::json!({
            "type": "kv_updated",
            "keys": keys(write.operations),
        })));
    }
    if let Some(tasks) = write.tasks {
        items.push(item(serde_json::json!({
            "type": "task_list_updated",
            "tasks": tasks.new.tasks(),
        })));
    }
    items
}

/// Returns the distinct keys of the operations in sorted order, or `None` if an operation deletes all keys.
fn keys(operations: &[KvOperation]) -> Option<Vec<&str>> {
    let keys = operations.iter().map(|operation| operation.key());
    let mut keys: Vec<&str> = keys.map(|key| Some(key?.as_str())).collect::<Option<_>>()?;
    keys.sort_unstable();
    keys.dedup();
    Some(keys)
}

fn item(value: serde_json::Value) -> HistoryItem {
    let id: Uuid = Builder::from_random_bytes(rand::random()).into_uuid();
    HistoryItem {
        id: id.to_string().parse().expect("a UUID is visible ASCII"),
        value: Json::from_compact(value.to_string()),
    }
}
