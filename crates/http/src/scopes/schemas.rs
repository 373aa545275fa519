//! Bodies and headers of scope requests. The bodies ignore `scope`, because the extractor has already read it.

use serde::Deserialize;
use serde::de::IgnoredAny;
use utoipa::{IntoParams, ToSchema};

use crate::request::{List, Seconds, Version, Whole};
use threadkeep_domain::scope::{KV_MAX_KEYS, TASKS_MAX, TaskStatus};

const KEYS: usize = KV_MAX_KEYS as usize;

/// The scope to read.
#[derive(ToSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NamedScope {
    /// The scope: `thread:current`, `thread:<id>`, `state:<uuid>`, `session:<id>`, `run:<uuid>`, `tool:<name>` or
    /// `personality:<id>`.
    #[schema(value_type = String)]
    #[serde(rename = "scope")]
    _scope: IgnoredAny,
}

/// A scope to clear.
#[derive(ToSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ClearScope {
    #[schema(value_type = String)]
    #[serde(rename = "scope")]
    _scope: IgnoredAny,
    /// If true, the request fails if a task is not completed.
    #[schema(nullable = false)]
    pub(super) keep_unfinished: Option<bool>,
    /// Write only if the scope has this version.
    #[schema(nullable = false, value_type = Option<u64>, minimum = 0)]
    pub(super) if_version: Option<Version>,
}

/// A scope to end.
#[derive(ToSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EndScope {
    #[schema(value_type = String)]
    #[serde(rename = "scope")]
    _scope: IgnoredAny,
    /// Write only if the scope has this version.
    #[schema(nullable = false, value_type = Option<u64>, minimum = 0)]
    pub(super) if_version: Option<Version>,
}

/// A key to delete.
#[derive(ToSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DeleteKey {
    #[schema(value_type = String)]
    #[serde(rename = "scope")]
    _scope: IgnoredAny,
    pub(super) key: String,
    /// Write only if the scope has this version.
    #[schema(nullable = false, value_type = Option<u64>, minimum = 0)]
    pub(super) if_version: Option<Version>,
}

/// The keys to read: either `key` or `keys`.
#[derive(ToSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GetValues {
    #[schema(value_type = String)]
    #[serde(rename = "scope")]
    _scope: IgnoredAny,
    /// The key. In sessions, tools and personalities, the key is free text of up to 1,024 bytes. In other scopes, the
    /// key consists of segments of up to 128 bytes, separated by `/`.
    #[schema(nullable = false)]
    pub(super) key: Option<String>,
    #[schema(nullable = false, value_type = Option<Vec<String>>, min_items = 1, max_items = 256)]
    pub(super) keys: Option<List<String, 1, KEYS>>,
}

/// The keys to set: either `key` and `value`, or `entries`.
#[derive(ToSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SetValues {
    #[schema(value_type = String)]
    #[serde(rename = "scope")]
    _scope: IgnoredAny,
    #[schema(nullable = false)]
    pub(super) key: Option<String>,
    /// The value: up to 32,768 bytes.
    #[schema(nullable = false)]
    pub(super) value: Option<String>,
    /// Lifetime of the key in seconds. By default, the key lives as long as its scope.
    #[schema(nullable = false, value_type = Option<u64>, minimum = 1, maximum = 31_536_000)]
    pub(super) ttl_seconds: Option<Seconds>,
    /// If true, an existing key keeps its value.
    #[schema(nullable = false)]
    pub(super) if_absent: Option<bool>,
    /// Write only if the scope has this version.
    #[schema(nullable = false, value_type = Option<u64>, minimum = 0)]
    pub(super) if_version: Option<Version>,
    #[schema(nullable = false, value_type = Option<Vec<SetKey>>, min_items = 1, max_items = 256)]
    pub(super) entries: Option<List<SetKey, 1, KEYS>>,
}

/// A key to set.
#[derive(ToSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SetKey {
    pub(super) key: String,
    /// The value: up to 32,768 bytes.
    pub(super) value: String,
    #[schema(nullable = false, value_type = Option<u64>, minimum = 1, maximum = 31_536_000)]
    pub(super) ttl_seconds: Option<Seconds>,
    #[schema(nullable = false)]
    pub(super) if_absent: Option<bool>,
}

/// The keys to list.
#[derive(ToSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListKeys {
    #[schema(value_type = String)]
    #[serde(rename = "scope")]
    _scope: IgnoredAny,
    /// Return only keys with this prefix, which is case-sensitive.
    #[schema(nullable = false)]
    pub(super) prefix: Option<String>,
}

/// A key to increment.
#[derive(ToSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct IncrementKey {
    #[schema(value_type = String)]
    #[serde(rename = "scope")]
    _scope: IgnoredAny,
    pub(super) key: String,
    /// The number to add, 1 by default.
    #[schema(nullable = false)]
    pub(super) by: Option<i64>,
    /// Write only if the scope has this version.
    #[schema(nullable = false, value_type = Option<u64>, minimum = 0)]
    pub(super) if_version: Option<Version>,
}

/// The new task list.
#[derive(ToSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SetTasks {
    #[schema(value_type = String)]
    #[serde(rename = "scope")]
    _scope: IgnoredAny,
    #[schema(value_type = Vec<NewTaskBody>, max_items = 1_000)]
    pub(super) tasks: List<NewTaskBody, 0, TASKS_MAX>,
    /// If true, the new list must contain every task that is not completed. Otherwise, the request fails.
    #[schema(nullable = false)]
    pub(super) keep_unfinished: Option<bool>,
    /// Write only if the scope has this version.
    #[schema(nullable = false, value_type = Option<u64>, minimum = 0)]
    pub(super) if_version: Option<Version>,
}

/// A task of a new list.
#[derive(ToSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NewTaskBody {
    /// The id of the task. By default, the smallest free number.
    #[schema(nullable = false, max_length = 64, pattern = "^[!-~]+$")]
    pub(super) id: Option<String>,
    #[schema(min_length = 1)]
    pub(super) content: String,
    #[schema(value_type = String, pattern = "^(pending|in_progress|completed)$")]
    pub(super) status: TaskStatus,
    #[schema(nullable = false)]
    pub(super) active_form: Option<String>,
}

/// The task to update, given by `id` or `index`, and the changes.
#[derive(ToSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UpdateTask {
    #[schema(value_type = String)]
    #[serde(rename = "scope")]
    _scope: IgnoredAny,
    #[schema(nullable = false)]
    pub(super) id: Option<String>,
    /// The index of the task, from 0.
    #[schema(nullable = false, value_type = Option<u64>, minimum = 0)]
    pub(super) index: Option<Whole<0, { i64::MAX as u64 }>>,
    #[schema(nullable = false, value_type = Option<String>, pattern = "^(pending|in_progress|completed)$")]
    pub(super) status: Option<TaskStatus>,
    #[schema(nullable = false, min_length = 1)]
    pub(super) content: Option<String>,
    #[schema(nullable = false)]
    pub(super) active_form: Option<String>,
    /// Write only if the scope has this version.
    #[schema(nullable = false, value_type = Option<u64>, minimum = 0)]
    pub(super) if_version: Option<Version>,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
pub(crate) struct RepeatHeader {
    /// Makes retries safe. A retry with the same body returns the first response and changes nothing.
    #[param(rename = "Idempotency-Key", max_length = 128, pattern = "^[!-~]+$")]
    _idempotency_key: Option<String>,
    /// The token of a turn. Write only if the scope's thread has not granted a later turn.
    #[param(rename = "x-turn-token")]
    _x_turn_token: Option<String>,
}

/// Headers of tool calls, for the OpenAPI document only. The handler does not use this type.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
pub(crate) struct RepeatCallsHeader {
    /// Makes retries safe. A retry with the same body returns the first result of each call that wrote data. Calls that
    /// only read, and calls that failed, run again.
    #[param(rename = "Idempotency-Key", max_length = 128, pattern = "^[!-~]+$")]
    _idempotency_key: Option<String>,
    /// The token of a turn. Write only if the scope's thread has not granted a later turn.
    #[param(rename = "x-turn-token")]
    _x_turn_token: Option<String>,
}
