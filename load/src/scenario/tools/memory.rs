//! The expected content of a scope, and the expected result of each tool.

use std::collections::BTreeMap;

use serde_json::{Value, json};

#[derive(Debug, Clone)]
pub(super) enum Call {
    Write {
        key: String,
        value: String,
    },
    Read {
        key: String,
    },
    List,
    Delete {
        key: String,
    },
    Increment {
        key: String,
        by: i64,
    },
    WriteTasks {
        contents: Vec<String>,
    },
    ReadTasks,
    /// A call without a required argument, which is a mistake that models often make.
    Mistaken,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Memory {
    keys: BTreeMap<String, String>,
    tasks: Vec<String>,
}

impl Call {
    pub(super) fn tool(&self) -> &'static str {
        match self {
            Self::Write { .. } => "kv_write",
            Self::Read { .. } | Self::Mistaken => "kv_read",
            Self::List => "kv_list",
            Self::Delete { .. } => "kv_delete",
            Self::Increment { .. } => "kv_increment",
            Self::WriteTasks { .. } => "tasks_write",
            Self::ReadTasks => "tasks_read",
        }
    }

    pub(super) fn arguments(&self) -> Value {
        match self {
            Self::Write { key, value } => json!({"key": key, "value": value}),
            Self::Read { key } | Self::Delete { key } => json!({"key": key}),
            Self::Increment { key, by } => json!({"key": key, "by": by}),
            Self::WriteTasks { contents } => json!({"tasks": tasks(contents)}),
            Self::List | Self::ReadTasks | Self::Mistaken => json!({}),
        }
    }
}

impl Memory {
    /// Applies a call. Returns the expected result, or `None` if the call is a mistake.
    pub(super) fn call(&mut self, call: &Call) -> Option<Value> {
        Some(match call {
            Call::Write { key, value } => {
                self.keys.insert(key.clone(), value.clone());
                json!({"ok": true})
            }
            Call::Read { key } => match self.keys.get(key) {
                Some(value) => json!({"found": true, "value": value}),
                None => json!({"found": false}),
            },
            Call::List => json!({"keys": self.keys.keys().collect::<Vec<_>>()}),
            Call::Delete { key } => {
                let deleted = self.keys.remove(key).is_some();
                json!({"ok": true, "deleted": deleted})
            }
            Call::Increment { key, by } => {
                let stored = self.keys.entry(key.clone()).or_insert_with(|| "0".into());
                let value = stored.parse::<i64>().map_or(*by, |value| value + by);
                *stored = value.to_string();
                json!({"ok": true, "value": value})
            }
            Call::WriteTasks { contents } => {
                self.tasks.clone_from(contents);
                json!({"ok": true})
            }
            Call::ReadTasks => json!({"tasks": tasks(&self.tasks)}),
            Call::Mistaken => return None,
        })
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &String> {
        self.keys.keys()
    }
}

fn tasks(contents: &[String]) -> Vec<Value> {
    let task = |(number, content): (usize, &String)| {
        let status = ["pending", "in_progress", "completed"][number % 3];
        json!({"id": format!("task-{number}"), "content": content, "status": status})
    };
    contents.iter().enumerate().map(task).collect()
}
