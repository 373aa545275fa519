//! Renders the events of a run as ASCII lines, because clients fail on a multi-byte character that is split between two
//! reads.

use std::fmt::Write;

use serde_json::{Value, json};
use uuid::Uuid;

use super::artifacts::{OUTPUTS, TASKS};
use super::run_objects::tasks_object;
use threadkeep_domain::rfc3339;
use threadkeep_domain::scope::{StoredItem, TaskList};
use threadkeep_service::{Digested, Run, RunStatus};
use threadkeep_store::StoreError;

/// An event, and the sequence numbers from which its reader can resume.
#[derive(Debug, PartialEq)]
pub(super) struct Line {
    pub(super) event: &'static str,
    /// One line of JSON.
    pub(super) json: String,
    /// Sequence number of the last run event.
    pub(super) seq: u64,
    /// Sequence number of the last state event. `None` if the stream omits state events.
    pub(super) state_seq: Option<u64>,
}

pub(super) const STARTED_SEQ: u64 = 1;
pub(super) const ENDED_SEQ: u64 = 2;

pub(super) fn started(run: &Run, state_seq: Option<u64>) -> Line {
    let event = "run_started";
    let members = json!({"plan_hash": run.plan.plan_hash});
    Line {
        event,
        json: line(run.id, STARTED_SEQ, run.created_ms, event, members),
        seq: STARTED_SEQ,
        state_seq,
    }
}

/// Returns the event for the end of a run, or `None` if the run is in progress.
pub(super) fn ended(run: &Run, state_seq: Option<u64>) -> Option<Line> {
    let event = match run.status {
        RunStatus::Running => return None,
        RunStatus::Succeeded => "run_completed",
        RunStatus::Failed => "run_failed",
        RunStatus::Canceled => "run_canceled",
    };
    let plan_hash = &run.plan.plan_hash;
    let members = match (run.status, &run.outputs) {
        (RunStatus::Succeeded, Some(outputs)) => {
            json!({"plan_hash": plan_hash, "outputs": artifact(OUTPUTS, outputs, None)})
        }
        _ => json!({"plan_hash": plan_hash, "error": error(run)}),
    };
    Some(Line {
        event,
        json: line(run.id, ENDED_SEQ, run.updated_ms, event, members),
        seq: ENDED_SEQ,
        state_seq,
    })
}

/// Renders a state event. `kv_updated` contains the changed keys (null means all keys), and `task_list_updated`
/// contains the whole list.
pub(super) fn state_event(run: &Run, seq: u64, item: &StoredItem) -> Result<Line, StoreError> {
    let corrupt = || StoreError::Corrupt("an event of a run");
    let value: Value = serde_json::from_str(item.value.as_str()).map_err(|_| corrupt())?;
    let plan_hash = &run.plan.plan_hash;
    let (event, members) = match value["type"].as_str() {
        Some("kv_updated") => {
            let members = json!({"plan_hash": plan_hash, "keys": value["keys"]});
            ("kv_updated", members)
        }
        Some("task_list_updated") => {
            let tasks = TaskList::from_stored(&value["tasks"].to_string()).ok_or_else(corrupt)?;
            let content = tasks_object(&tasks);
            let list = Digested::of(&content.to_string());
            let list = artifact(TASKS, &list, Some(content));
            let members = json!({"plan_hash": plan_hash, "task_list": list});
            ("task_list_updated", members)
        }
        _ => return Err(corrupt()),
    };
    Ok(Line {
        event,
        json: line(run.id, item.seq, item.at_ms, event, members),
        seq,
        state_seq: Some(item.seq),
    })
}

fn artifact(key: &str, info: &Digested, content: Option<Value>) -> Value {
    let is_included = content.is_some();
    let mut artifact = json!({
        "artifact_key": key,
        "info": {"bytes": info.bytes, "sha256": info.sha256, "included": is_included},
    });
    if let Some(content) = content {
        artifact["content"] = content;
    }
    artifact
}

fn error(run: &Run) -> Value {
    match &run.error {
        Some(error) => json!(error),
        None if run.status == RunStatus::Canceled => json!({"message": "the run was canceled"}),
        None => json!({"message": "the run failed"}),
    }
}

fn line(run_id: Uuid, seq: u64, at_ms: u64, event: &str, members: Value) -> String {
    let mut line = json!({
        "envelope_version": "v2",
        "run_id": run_id.to_string(),
        "seq": seq,
        "ts": rfc3339(at_ms),
        "type": event,
    });
    if let (Value::Object(line), Value::Object(members)) = (&mut line, members) {
        line.extend(members);
    }
    ascii(&line.to_string())
}

/// Escapes non-ASCII characters, which occur only in strings.
pub(super) fn ascii(json: &str) -> String {
    let mut ascii = String::with_capacity(json.len());
    for char in json.chars() {
        if char.is_ascii() {
            ascii.push(char);
            continue;
        }
        for unit in char.encode_utf16(&mut [0; 2]) {
            write!(ascii, "\\u{unit:04x}").expect("a string takes any text");
        }
    }
    ascii
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_past_ascii_are_escaped_and_read_back() {
        let json = json!({"é": "日本 😀 \u{7f} \"", "a": "\u{2028}"}).to_string();

        let ascii = ascii(&json);

        assert!(ascii.is_ascii());
        assert!(ascii.contains(r"\ud83d\ude00"), "{ascii}");
        let (back, original): (Value, Value) = (
            serde_json::from_str(&ascii).unwrap(),
            serde_json::from_str(&json).unwrap(),
        );
        assert_eq!(back, original);
    }
}
