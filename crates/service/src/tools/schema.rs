use serde_json::{Value, json};

use super::tool::Tool;

impl Tool {
    /// Description for the model, in one or two sentences.
    #[must_use]
    pub fn description(self) -> &'static str {
        match self {
            Self::KvWrite => {
                "Store a text under a key, replacing any earlier text, to remember it for later."
            }
            Self::KvRead => "Read the text under a key.",
            Self::KvList => "List all keys.",
            Self::KvDelete => "Delete a key and the text under it.",
            Self::KvIncrement => {
                "Add to the integer under a key, and return the sum. A key that does not exist counts as 0."
            }
            Self::TasksWrite => {
                "Replace the whole task list, in order. Use it to plan work and to track it."
            }
            Self::TasksRead => "Read the task list, with the id of each task.",
            Self::TasksUpdate => "Change one task of the list, by its id or its index.",
        }
    }

    /// Returns the JSON Schema of the arguments: a single object without `$ref`.
    #[must_use]
    pub fn schema(self) -> Value {
        match self {
            Self::KvWrite => object(
                &["key", "value"],
                json!({
                    "key": key(),
                    "value": {
                        "type": "string",
                        "maxLength": 32_768,
                        "description": "The text, at most 32768 bytes.",
                    },
                    "ttl_seconds": {
                        "type": "integer",
                        "minimum": 1,
                        "maximum": 31_536_000,
                        "description": "Forget it after this number of seconds.",
                    },
                    "if_absent": {
                        "type": "boolean",
                        "description": "Keep the value of a key that exists; `written` in the result then says whether the text was stored.",
                    },
                    "if_version": if_version(),
                }),
            ),
            Self::KvRead => object(
                &["key"],
                json!({"key": key(), "with_version": with_version()}),
            ),
            Self::KvList | Self::TasksRead => object(&[], json!({"with_version": with_version()})),
            Self::KvDelete => object(&["key"], json!({"key": key(), "if_version": if_version()})),
            Self::KvIncrement => object(
                &["key"],
                json!({
                    "key": key(),
                    "by": {
                        "type": "integer",
                        "description": "The number to add, 1 by default. It may be negative.",
                    },
                    "if_version": if_version(),
                }),
            ),
            Self::TasksWrite => object(
                &["tasks"],
                json!({
                    "tasks": {
                        "type": "array",
                        "maxItems": 1_000,
                        "items": task(),
                        "description": "All tasks, in order.",
                    },
                    "keep_unfinished": {
                        "type": "boolean",
                        "description": "Reject a list that drops a task that is not completed: the new list must contain each of them, with the same id or content.",
                    },
                    "if_version": if_version(),
                }),
            ),
            Self::TasksUpdate => object(
                &[],
                json!({
                    "id": {
                        "type": "string",
                        "description": "The id of the task, as in tasks_read. Give either this or index.",
                    },
                    "index": {
                        "type": "integer",
                        "minimum": 0,
                        "description": "The index of the task, from 0. Give either this or id.",
                    },
                    "status": status(),
                    "content": content(),
                    "active_form": active_form(),
                    "if_version": if_version(),
                }),
            ),
        }
    }
}

pub(super) fn object(required: &[&str], properties: Value) -> Value {
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

fn key() -> Value {
    json!({
        "type": "string",
        "maxLength": 128,
        "pattern": "^[A-Za-z0-9][A-Za-z0-9_.-]*(/[A-Za-z0-9][A-Za-z0-9_.-]*)*$",
        "description": "Segments separated by /, such as user/name.",
    })
}

fn if_version() -> Value {
    json!({
        "type": "integer",
        "minimum": 0,
        "description": "Write only if the storage has this version, 0 if nothing was stored yet. The result then has the new version.",
    })
}

fn with_version() -> Value {
    json!({
        "type": "boolean",
        "description": "If true, the result has the version of the storage, for if_version.",
    })
}

fn task() -> Value {
    object(
        &["content", "status"],
        json!({
            "id": {
                "type": "string",
                "maxLength": 64,
                "pattern": "^[!-~]+$",
                "description": "The id of the task; by default a number.",
            },
            "content": content(),
            "status": status(),
            "active_form": active_form(),
        }),
    )
}

fn content() -> Value {
    json!({"type": "string", "minLength": 1, "description": "The task, such as: Book a flight."})
}

fn status() -> Value {
    json!({"type": "string", "enum": ["pending", "in_progress", "completed"]})
}

fn active_form() -> Value {
    json!({"type": "string", "description": "The task while it is in progress, such as: Booking a flight."})
}
