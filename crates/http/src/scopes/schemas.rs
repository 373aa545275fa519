//! Bodies and headers of requests about scopes. The scope is opened before the rest of a body is parsed.

use serde::Deserialize;
use serde::de::IgnoredAny;
use utoipa::{IntoParams, ToSchema};

use crate::request::{List, Seconds, Version, Whole};
use threadkeep_domain::scope::{KV_MAX_KEYS, TASKS_MAX, TaskStatus};

const KEYS: usize = KV_MAX_KEYS as usize;

/// A scope without further members.
#[derive(ToSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NamedScope {
    /// `thread:current`, `thread:<id>`, `state:<uuid>`, `session:<id>`, `run:<uuid>`, `tool:<name>` or `personality:<id>`.
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
    /// If true, the server rejects the request while a task is not completed.
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

/// Either `key` or `keys`.
#[derive(ToSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GetValues {
    #[schema(value_type = String)]
    #[serde(rename = "scope")]
    _scope: IgnoredAny,
    /// In sessions, tools and personalities, free text of up to 1,024 bytes. In other scopes, segments of up to 128 bytes,
    /// separated by `/`.
    #[schema(nullable = false)]
    pub(super) key: Option<String>,
    #[schema(nullable = false, value_type = Option<Vec<String>>, min_items = 1, max_items = 256)]
    pub(super) keys: Option<List<String, 1, KEYS>>,
}

/// Either one key and its value, or `entries`.
#[derive(ToSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SetValues {
    #[schema(value_type = String)]
    #[serde(rename = "scope")]
    _scope: IgnoredAny,
    #[schema(nullable = false)]
    pub(super) key: Option<String>,
    /// Up to 32,768 bytes.
    #[schema(nullable = false)]
    pub(super) value: Option<String>,
    /// Lifetime of the key. By default, the scope's.
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
    /// Up to 32,768 bytes.
    pub(super) value: String,
    #[schema(nullable = false, value_type = Option<u64>, minimum = 1, maximum = 31_536_000)]
    pub(super) ttl_seconds: Option<Seconds>,
    #[schema(nullable = false)]
    pub(super) if_absent: Option<bool>,
}

/// Keys to list.
#[derive(ToSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListKeys {
    #[schema(value_type = String)]
    #[serde(rename = "scope")]
    _scope: IgnoredAny,
    /// A prefix of the keys, case-sensitive.
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
    /// 1 by default.
    #[schema(nullable = false)]
    pub(super) by: Option<i64>,
    /// Write only if the scope has this version.
    #[schema(nullable = false, value_type = Option<u64>, minimum = 0)]
    pub(super) if_version: Option<Version>,
}

/// A whole task list.
#[derive(ToSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SetTasks {
    #[schema(value_type = String)]
    #[serde(rename = "scope")]
    _scope: IgnoredAny,
    #[schema(value_type = Vec<NewTaskBody>, max_items = 1_000)]
    pub(super) tasks: List<NewTaskBody, 0, TASKS_MAX>,
    /// If true, the server rejects a list that drops a task that is not completed.
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
    /// By default, the smallest free number.
    #[schema(nullable = false, max_length = 64, pattern = "^[!-~]+$")]
    pub(super) id: Option<String>,
    #[schema(min_length = 1)]
    pub(super) content: String,
    #[schema(value_type = String, pattern = "^(pending|in_progress|completed)$")]
    pub(super) status: TaskStatus,
    #[schema(nullable = false)]
    pub(super) active_form: Option<String>,
}

/// Either `id` or `index`, and the changes.
#[derive(ToSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UpdateTask {
    #[schema(value_type = String)]
    #[serde(rename = "scope")]
    _scope: IgnoredAny,
    #[schema(nullable = false)]
    pub(super) id: Option<String>,
    /// From 0.
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
    /// Makes a retry safe: a repeat with the same body gets the first answer and changes nothing.
    #[param(rename = "Idempotency-Key", max_length = 128, pattern = "^[!-~]+$")]
    _idempotency_key: Option<String>,
    /// Write only if the scope's thread has granted no later turn than this token's.
    #[param(rename = "x-turn-token")]
    _x_turn_token: Option<String>,
}

/// The headers of calls. The handler reads them itself.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
pub(crate) struct RepeatCallsHeader {
    /// Makes a retry safe: a repeat with the same body gets the first response to each call that wrote. Calls that read or
    /// failed run again.
    #[param(rename = "Idempotency-Key", max_length = 128, pattern = "^[!-~]+$")]
    _idempotency_key: Option<String>,
    /// Write only if the scope's thread has granted no later turn than this token's.
    #[param(rename = "x-turn-token")]
    _x_turn_token: Option<String>,
}
