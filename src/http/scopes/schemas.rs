//! Bodies about scopes.

#![expect(
    dead_code,
    reason = "the scope is opened before the rest is read, and headers are read elsewhere"
)]

use std::collections::BTreeMap;

use serde::Deserialize;
use utoipa::openapi::RefOr;
use utoipa::openapi::response::Response;
use utoipa::{IntoParams, IntoResponses, ToSchema};

use crate::domain::scope::{KV_MAX_KEYS, TASKS_MAX, TaskStatus};
use crate::http::request::json::{List, RawJson, Seconds, Version, Whole};
use crate::http::schemas::problems;

/// As many as a scope may have.
const KEYS: usize = KV_MAX_KEYS as usize;

/// A scope alone.
#[derive(ToSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OnlyScope<'a> {
    /// `thread:current`, `thread:<id>`, `state:<uuid>`, `session:<id>`, `run:<uuid>`,
    /// `tool:<name>` or `personality:<id>`.
    #[schema(value_type = String)]
    #[serde(borrow)]
    pub(super) scope: RawJson<'a>,
}

/// A scope to clear.
#[derive(ToSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ClearScope<'a> {
    #[schema(value_type = String)]
    #[serde(borrow)]
    pub(super) scope: RawJson<'a>,
    /// Whether a task that is not completed is to prevent it.
    #[schema(nullable = false)]
    pub(super) keep_unfinished: Option<bool>,
    /// The version that the scope has to have.
    #[schema(nullable = false, value_type = Option<u64>, minimum = 0)]
    pub(super) if_version: Option<Version>,
}

/// A scope to end.
#[derive(ToSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EndScope<'a> {
    #[schema(value_type = String)]
    #[serde(borrow)]
    pub(super) scope: RawJson<'a>,
    /// The version that the scope has to have.
    #[schema(nullable = false, value_type = Option<u64>, minimum = 0)]
    pub(super) if_version: Option<Version>,
}

/// A key to delete.
#[derive(ToSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OnlyKey<'a> {
    #[schema(value_type = String)]
    #[serde(borrow)]
    pub(super) scope: RawJson<'a>,
    pub(super) key: String,
    /// The version that the scope has to have.
    #[schema(nullable = false, value_type = Option<u64>, minimum = 0)]
    pub(super) if_version: Option<Version>,
}

/// Either `key` or `keys`.
#[derive(ToSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GetValues<'a> {
    #[schema(value_type = String)]
    #[serde(borrow)]
    pub(super) scope: RawJson<'a>,
    /// Free text of at most 1,024 bytes in sessions, tools and personalities; segments parted by
    /// `/` of at most 128 bytes in the others.
    #[schema(nullable = false)]
    pub(super) key: Option<String>,
    #[schema(nullable = false, value_type = Option<Vec<String>>, min_items = 1, max_items = 256)]
    pub(super) keys: Option<List<String, 1, KEYS>>,
}

/// Either one key and its value, or `entries`.
#[derive(ToSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SetValues<'a> {
    #[schema(value_type = String)]
    #[serde(borrow)]
    pub(super) scope: RawJson<'a>,
    #[schema(nullable = false)]
    pub(super) key: Option<String>,
    /// At most 32,768 bytes.
    #[schema(nullable = false)]
    pub(super) value: Option<String>,
    /// How long the key lives; as long as the scope when absent.
    #[schema(nullable = false, value_type = Option<u64>, minimum = 1, maximum = 31_536_000)]
    pub(super) ttl_seconds: Option<Seconds>,
    /// Whether a key that is there stays as it is.
    #[schema(nullable = false)]
    pub(super) if_absent: Option<bool>,
    /// The version that the scope has to have.
    #[schema(nullable = false, value_type = Option<u64>, minimum = 0)]
    pub(super) if_version: Option<Version>,
    #[schema(nullable = false, value_type = Option<Vec<Entry>>, min_items = 1, max_items = 256)]
    pub(super) entries: Option<List<Entry, 1, KEYS>>,
}

/// A key to set.
#[derive(ToSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    pub(super) key: String,
    /// At most 32,768 bytes.
    pub(super) value: String,
    #[schema(nullable = false, value_type = Option<u64>, minimum = 1, maximum = 31_536_000)]
    pub(super) ttl_seconds: Option<Seconds>,
    #[schema(nullable = false)]
    pub(super) if_absent: Option<bool>,
}

/// Keys to list.
#[derive(ToSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListKeys<'a> {
    #[schema(value_type = String)]
    #[serde(borrow)]
    pub(super) scope: RawJson<'a>,
    /// What the keys begin with, in this very case.
    #[schema(nullable = false)]
    pub(super) prefix: Option<String>,
}

/// A key to add to.
#[derive(ToSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct IncrementKey<'a> {
    #[schema(value_type = String)]
    #[serde(borrow)]
    pub(super) scope: RawJson<'a>,
    pub(super) key: String,
    /// 1 when absent.
    #[schema(nullable = false)]
    pub(super) by: Option<i64>,
    /// The version that the scope has to have.
    #[schema(nullable = false, value_type = Option<u64>, minimum = 0)]
    pub(super) if_version: Option<Version>,
}

/// A whole task list.
#[derive(ToSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SetTasks<'a> {
    #[schema(value_type = String)]
    #[serde(borrow)]
    pub(super) scope: RawJson<'a>,
    #[schema(value_type = Vec<NewTaskBody>, max_items = 1_000)]
    pub(super) tasks: List<NewTaskBody, 0, TASKS_MAX>,
    /// Whether a task that is not completed may not be dropped.
    #[schema(nullable = false)]
    pub(super) keep_unfinished: Option<bool>,
    /// The version that the scope has to have.
    #[schema(nullable = false, value_type = Option<u64>, minimum = 0)]
    pub(super) if_version: Option<Version>,
}

/// A task of a new list.
#[derive(ToSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NewTaskBody {
    /// The smallest free number when absent.
    #[schema(nullable = false, max_length = 64, pattern = "^[!-~]+$")]
    pub(super) id: Option<String>,
    #[schema(min_length = 1)]
    pub(super) content: String,
    #[schema(value_type = String, pattern = "^(pending|in_progress|completed)$")]
    pub(super) status: TaskStatus,
    #[schema(nullable = false)]
    pub(super) active_form: Option<String>,
}

/// Either `id` or `index`, and what is changed.
#[derive(ToSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UpdateTask<'a> {
    #[schema(value_type = String)]
    #[serde(borrow)]
    pub(super) scope: RawJson<'a>,
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
    /// The version that the scope has to have.
    #[schema(nullable = false, value_type = Option<u64>, minimum = 0)]
    pub(super) if_version: Option<Version>,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
pub(crate) struct RepeatHeader {
    /// A repeat with the same body gets the first answer and changes nothing.
    #[param(rename = "Idempotency-Key", max_length = 128, pattern = "^[!-~]+$")]
    idempotency_key: Option<String>,
}

/// What makes a repeat of calls harmless. It is read by the handler itself.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
pub(crate) struct RepeatCallsHeader {
    /// In a repeat with the same body, what was written is not written again, and is answered as it
    /// was. Calls that read, and those that were a mistake, are done anew.
    #[param(rename = "Idempotency-Key", max_length = 128, pattern = "^[!-~]+$")]
    idempotency_key: Option<String>,
}

/// What may come back from any path about scopes.
pub(crate) struct ScopeProblems;

impl IntoResponses for ScopeProblems {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        problems(&[
            (
                "400",
                "A parameter, header, the scope, a key or the body is malformed or unknown.",
            ),
            ("401", "The caller may not open the scope."),
            (
                "403",
                "A cross-site cookie came from an origin that is not allowed.",
            ),
            ("404", "There is no such scope, tool or task."),
            ("406", "The client does not take JSON."),
            (
                "409",
                "The write does not go with what is there, or the scope has ended.",
            ),
            ("410", "The thread was destroyed a moment ago."),
            ("412", "The scope has another version."),
            (
                "413",
                "The result would pass a limit, or the body is too large.",
            ),
            ("415", "The body is of another type."),
            (
                "422",
                "An idempotency key or the id of an item came with something else before.",
            ),
            (
                "429",
                "There are too many writes, or new threads, or idempotency keys for now.",
            ),
            (
                "503",
                "The store is not available, or full; an idempotency key makes a retry safe.",
            ),
        ])
    }
}
