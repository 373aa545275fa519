use serde_json::{Value, json};

use super::tool::Tool;

impl Tool {
    /// Name of the tool for display to people.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::KvWrite => "Write a key",
            Self::KvRead => "Read a key",
            Self::KvList => "List keys",
            Self::KvDelete => "Delete a key",
            Self::KvIncrement => "Add to a number",
            Self::TasksWrite => "Replace the task list",
            Self::TasksRead => "Read the task list",
            Self::TasksUpdate => "Change a task",
        }
    }

    /// Returns the JSON Schema of the tool's results, without `$ref`. Error results have a different schema. Later
    /// versions may add members, so clients that store a schema must accept unknown members.
    #[must_use]
    pub fn output_schema(self) -> Value {
        match self {
            Self::KvWrite => result(
                &["ok"],
                json!({
                    "ok": ok(),
                    "written": {
                        "type": "boolean",
                        "description": "With if_absent: whether the text was stored.",
                    },
                }),
            ),
            Self::KvRead => result(
                &["found"],
                json!({
                    "found": {"type": "boolean", "description": "Whether the key exists."},
                    "value": {"type": "string", "description": "The text, if the key exists."},
                }),
            ),
            Self::KvList => result(
                &["keys"],
                json!({
                    "keys": {
                        "type": "array",
                        "items": {"type": "string"},
                        "description": "All keys, in order.",
                    },
                }),
            ),
            Self::KvDelete => result(
                &["ok", "deleted"],
                json!({
                    "ok": ok(),
                    "deleted": {"type": "boolean", "description": "Whether the key existed."},
                }),
            ),
            Self::KvIncrement => result(
                &["ok", "value"],
                json!({
                    "ok": ok(),
                    "value": {"type": "integer", "description": "The sum, of 64 bits."},
                }),
            ),
            Self::TasksWrite | Self::TasksUpdate => result(&["ok"], json!({"ok": ok()})),
            Self::TasksRead => result(
                &["tasks"],
                json!({
                    "tasks": {
                        "type": "array",
                        "items": task(),
                        "description": "All tasks, in order.",
                    },
                }),
            ),
        }
    }
}

/// Returns an object schema with an optional `version`, because only some calls request the version.
fn result(required: &[&str], mut properties: Value) -> Value {
    properties["version"] = json!({
        "type": "integer",
        "minimum": 0,
        "description": "The version of the storage, if the call has if_version or with_version.",
    });
    json!({"type": "object", "properties": properties, "required": required})
}

fn ok() -> Value {
    json!({"type": "boolean", "description": "Always true: a rejected call has an error instead."})
}

fn task() -> Value {
    json!({
        "type": "object",
        "properties": {
            "id": {"type": "string"},
            "content": {"type": "string"},
            "status": {"type": "string", "enum": ["pending", "in_progress", "completed"]},
            "active_form": {"type": "string"},
        },
        "required": ["id", "content", "status"],
    })
}
