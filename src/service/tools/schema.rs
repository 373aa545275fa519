//! What a model is told of each tool.

use serde_json::{Value, json};

use super::tool::Tool;

impl Tool {
    /// What it does, in a sentence or two for a model.
    #[must_use]
    pub fn description(self) -> &'static str {
        match self {
            Self::KvWrite => {
                "Store a text under a key, in place of what is there, to remember it for later."
            }
            Self::KvRead => "Read the text that is stored under a key.",
            Self::KvList => "List all keys that something is stored under.",
            Self::KvDelete => "Delete a key and the text under it.",
            Self::KvIncrement => {
                "Add to the integer that is stored under a key, and get the sum; an absent key counts as 0."
            }
            Self::TasksWrite => {
                "Replace the whole task list, in order; use it to plan work and to keep track of it."
            }
            Self::TasksRead => "Read the task list, with the id of each task.",
            Self::TasksUpdate => "Change one task of the list, by its id or its place.",
        }
    }

    /// The JSON Schema of its arguments: an object, whole, without references.
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
                        "description": "Forget it after so many seconds.",
                    },
                    "if_absent": {
                        "type": "boolean",
                        "description": "Leave a key that is there as it is; the result then says in `written` whether it was stored.",
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
                        "description": "What to add, may be negative; 1 when absent.",
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
                        "description": "Refuse to drop a task that is not completed: each has to be in the new list, by its id or with the same content.",
                    },
                    "if_version": if_version(),
                }),
            ),
            Self::TasksUpdate => object(
                &[],
                json!({
                    "id": {
                        "type": "string",
                        "description": "The id of the task, as tasks_read tells it. Either this or index.",
                    },
                    "index": {
                        "type": "integer",
                        "minimum": 0,
                        "description": "The place of the task, from 0. Either this or id.",
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

fn object(required: &[&str], properties: Value) -> Value {
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
        "description": "Refuse unless the storage has this version, 0 for nothing stored yet; the result then tells the new version.",
    })
}

fn with_version() -> Value {
    json!({
        "type": "boolean",
        "description": "Whether the result tells the version of the storage, for if_version.",
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
                "description": "What the task is known by; a number when absent.",
            },
            "content": content(),
            "status": status(),
            "active_form": active_form(),
        }),
    )
}

fn content() -> Value {
    json!({"type": "string", "minLength": 1, "description": "What is to be done."})
}

fn status() -> Value {
    json!({"type": "string", "enum": ["pending", "in_progress", "completed"]})
}

fn active_form() -> Value {
    json!({"type": "string", "description": "What is being done while it is worked on."})
}
