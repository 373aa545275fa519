//! The shapes of bodies about scopes, for the OpenAPI document.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use utoipa::openapi::RefOr;
use utoipa::openapi::response::Response;
use utoipa::{IntoParams, IntoResponses, ToSchema};

use crate::http::schemas::problems;

/// A scope alone.
#[derive(ToSchema, Deserialize)]
#[expect(dead_code, reason = "its shape alone is used")]
#[serde(deny_unknown_fields)]
pub(super) struct OnlyScope {
    /// `thread:current`, `thread:<id>`, `state:<uuid>`, `session:<id>`, `run:<uuid>`,
    /// `tool:<name>` or `personality:<id>`.
    scope: String,
}

/// A scope to clear.
#[derive(ToSchema, Deserialize)]
#[expect(dead_code, reason = "its shape alone is used")]
#[serde(deny_unknown_fields)]
pub(super) struct ClearScope {
    scope: String,
    /// Whether a task that is not completed is to prevent it.
    #[schema(nullable = false)]
    keep_unfinished: Option<bool>,
    /// The version that the scope has to have.
    #[schema(nullable = false)]
    if_version: Option<u64>,
}

/// A scope to end.
#[derive(ToSchema, Deserialize)]
#[expect(dead_code, reason = "its shape alone is used")]
#[serde(deny_unknown_fields)]
pub(super) struct EndScope {
    scope: String,
    /// The version that the scope has to have.
    #[schema(nullable = false)]
    if_version: Option<u64>,
}

/// A key to delete.
#[derive(ToSchema, Deserialize)]
#[expect(dead_code, reason = "its shape alone is used")]
#[serde(deny_unknown_fields)]
pub(super) struct OnlyKey {
    scope: String,
    key: String,
    /// The version that the scope has to have.
    #[schema(nullable = false)]
    if_version: Option<u64>,
}

/// Either `key` or `keys`.
#[derive(ToSchema, Deserialize)]
#[expect(dead_code, reason = "its shape alone is used")]
#[serde(deny_unknown_fields)]
pub(super) struct GetValues {
    scope: String,
    /// Free text of at most 1,024 bytes in sessions, tools and personalities; segments parted by
    /// `/` of at most 128 bytes in the others.
    #[schema(nullable = false)]
    key: Option<String>,
    #[schema(nullable = false, min_items = 1, max_items = 256)]
    keys: Option<Vec<String>>,
}

/// Either one key and its value, or `entries`.
#[derive(ToSchema, Deserialize)]
#[expect(dead_code, reason = "its shape alone is used")]
#[serde(deny_unknown_fields)]
pub(super) struct SetValues {
    scope: String,
    #[schema(nullable = false)]
    key: Option<String>,
    /// At most 32,768 bytes.
    #[schema(nullable = false)]
    value: Option<String>,
    /// How long the key lives; as long as the scope when absent.
    #[schema(nullable = false, minimum = 1, maximum = 31_536_000)]
    ttl_seconds: Option<u64>,
    /// Whether a key that is there stays as it is.
    #[schema(nullable = false)]
    if_absent: Option<bool>,
    /// The version that the scope has to have.
    #[schema(nullable = false)]
    if_version: Option<u64>,
    #[schema(nullable = false, min_items = 1, max_items = 256)]
    entries: Option<Vec<Entry>>,
}

/// A key to set.
#[derive(ToSchema, Deserialize)]
#[expect(dead_code, reason = "its shape alone is used")]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    key: String,
    /// At most 32,768 bytes.
    value: String,
    #[schema(nullable = false, minimum = 1, maximum = 31_536_000)]
    ttl_seconds: Option<u64>,
    #[schema(nullable = false)]
    if_absent: Option<bool>,
}

/// Keys to list.
#[derive(ToSchema, Deserialize)]
#[expect(dead_code, reason = "its shape alone is used")]
#[serde(deny_unknown_fields)]
pub(super) struct ListKeys {
    scope: String,
    /// What the keys begin with, in this very case.
    #[schema(nullable = false)]
    prefix: Option<String>,
}

/// A key to add to.
#[derive(ToSchema, Deserialize)]
#[expect(dead_code, reason = "its shape alone is used")]
#[serde(deny_unknown_fields)]
pub(super) struct IncrementKey {
    scope: String,
    key: String,
    /// 1 when absent.
    #[schema(nullable = false)]
    by: Option<i64>,
    /// The version that the scope has to have.
    #[schema(nullable = false)]
    if_version: Option<u64>,
}

/// A whole task list.
#[derive(ToSchema, Deserialize)]
#[expect(dead_code, reason = "its shape alone is used")]
#[serde(deny_unknown_fields)]
pub(super) struct SetTasks {
    scope: String,
    #[schema(max_items = 1_000)]
    tasks: Vec<NewTaskBody>,
    /// Whether a task that is not completed may not be dropped.
    #[schema(nullable = false)]
    keep_unfinished: Option<bool>,
    /// The version that the scope has to have.
    #[schema(nullable = false)]
    if_version: Option<u64>,
}

/// A task of a new list.
#[derive(ToSchema, Deserialize)]
#[expect(dead_code, reason = "its shape alone is used")]
#[serde(deny_unknown_fields)]
pub(super) struct NewTaskBody {
    /// The smallest free number when absent.
    #[schema(nullable = false, max_length = 64, pattern = "^[!-~]+$")]
    id: Option<String>,
    #[schema(min_length = 1)]
    content: String,
    #[schema(pattern = "^(pending|in_progress|completed)$")]
    status: String,
    #[schema(nullable = false)]
    active_form: Option<String>,
}

/// Either `id` or `index`, and what is changed.
#[derive(ToSchema, Deserialize)]
#[expect(dead_code, reason = "its shape alone is used")]
#[serde(deny_unknown_fields)]
pub(super) struct UpdateTask {
    scope: String,
    #[schema(nullable = false)]
    id: Option<String>,
    /// From 0.
    #[schema(nullable = false)]
    index: Option<u64>,
    #[schema(nullable = false, pattern = "^(pending|in_progress|completed)$")]
    status: Option<String>,
    #[schema(nullable = false, min_length = 1)]
    content: Option<String>,
    #[schema(nullable = false)]
    active_form: Option<String>,
    /// The version that the scope has to have.
    #[schema(nullable = false)]
    if_version: Option<u64>,
}

/// Either one item, or `items`.
#[derive(ToSchema, Deserialize)]
#[expect(dead_code, reason = "its shape alone is used")]
#[serde(deny_unknown_fields)]
pub(crate) struct NewItems {
    #[schema(nullable = false, max_length = 128, pattern = "^[!-~]+$")]
    id: Option<String>,
    /// Any JSON.
    value: Option<Value>,
    #[schema(nullable = false, min_items = 1, max_items = 1_000)]
    items: Option<Vec<NewItem>>,
}

/// Something to be added.
#[derive(ToSchema, Deserialize)]
#[expect(dead_code, reason = "its shape alone is used")]
#[serde(deny_unknown_fields)]
pub(super) struct NewItem {
    /// What it is recognized by when it is sent again.
    #[schema(max_length = 128, pattern = "^[!-~]+$")]
    id: String,
    /// Any JSON.
    value: Value,
}

#[derive(IntoParams)]
#[expect(dead_code, reason = "its shape alone is used")]
#[into_params(parameter_in = Header)]
pub(crate) struct RepeatHeader {
    /// A repeat with the same body gets the first answer and changes nothing.
    #[param(rename = "Idempotency-Key", max_length = 128, pattern = "^[!-~]+$")]
    idempotency_key: Option<String>,
}

/// What makes a repeat of calls harmless. It is read by the handler itself.
#[derive(IntoParams)]
#[expect(dead_code, reason = "its shape alone is used")]
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
