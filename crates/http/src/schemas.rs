//! Schemas that only the OpenAPI document uses. The handlers read and write these values as JSON text.

#![expect(dead_code, reason = "only the shapes are used")]

use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

/// The receipt of a write.
#[derive(ToSchema)]
pub(super) struct Receipt {
    /// The thread's version after the write.
    version: u64,
    /// Size of the compact JSON state after the write, in bytes.
    size_bytes: u64,
}

/// The receipt of a push.
#[derive(ToSchema)]
pub(super) struct PushReceipt {
    /// The thread's version after the write.
    version: u64,
    /// Size of the compact JSON state after the write, in bytes.
    size_bytes: u64,
    /// Number of elements in the array after the push.
    length: u64,
}

/// The receipt of an increment.
#[derive(ToSchema)]
pub(super) struct IncrementReceipt {
    /// The thread's version after the write.
    version: u64,
    /// Size of the compact JSON state after the write, in bytes.
    size_bytes: u64,
    /// The value after the increment.
    value: i64,
}

/// The receipt of a deletion.
#[derive(ToSchema)]
pub(super) struct DeleteReceipt {
    /// The thread's version after the write.
    version: u64,
    /// Size of the compact JSON state after the write, in bytes.
    size_bytes: u64,
    /// True if the key existed.
    deleted: bool,
}

/// The receipt of a merge.
#[derive(ToSchema)]
pub(super) struct MergeReceipt {
    /// The thread's version after the write.
    version: u64,
    /// Size of the compact JSON state after the write, in bytes.
    size_bytes: u64,
    /// The result of each operation, in order; absent for a merge patch.
    results: Option<Vec<OperationResult>>,
}

/// The result of an operation: `deleted` for a delete, `length` for a push, `values` for a pop, `value` for an
/// increment, `id`, `seq` and `repeated` for an append, or `state` and `repeated` for a settle.
#[derive(ToSchema)]
pub(super) struct OperationResult {
    deleted: Option<bool>,
    length: Option<u64>,
    /// The removed elements, oldest first.
    values: Option<Vec<serde_json::Value>>,
    value: Option<i64>,
    /// The id of the item.
    id: Option<String>,
    /// The position of the item in the history.
    seq: Option<u64>,
    /// The state of the settled call: `done` or `failed`.
    state: Option<String>,
    /// True if the history already contained the item, or if the call was already settled with this value.
    repeated: Option<bool>,
}

/// The response to a probe.
#[derive(Serialize, ToSchema)]
pub(super) struct Health {
    pub(super) status: &'static str,
}

/// An error, in the format of [RFC 9457](https://www.rfc-editor.org/rfc/rfc9457). Identify errors by `code`, which is
/// stable. `detail` is for people. Some codes add members, such as `limit_bytes` or `operation`.
#[derive(ToSchema)]
pub(super) struct Problem {
    r#type: String,
    title: String,
    status: u16,
    code: String,
    detail: String,
    request_id: String,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct KeyParam {
    /// The key: 1 to 256 bytes of UTF-8 without control characters, percent-encoded.
    #[param(min_length = 1, max_length = 256)]
    key: String,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
pub(super) struct WriteHeaders {
    /// Write only if the thread has one of these entity tags or versions, such as `"3"`. Up to 8 are allowed. `"0"`
    /// requires that the thread does not exist, and `*` that it exists. Weak tags never match.
    #[param(
        rename = "If-Match",
        pattern = r#"^(\*|(W/)?"[0-9]+(-[0-9a-f]{16})?"( *, *(W/)?"[0-9]+(-[0-9a-f]{16})?"){0,7})$"#
    )]
    if_match: Option<String>,
    /// Write only if the thread is still in this life. A thread that is created again under the same id starts a new
    /// life. The value is the part of the thread's entity tag after the hyphen. Use this header to prevent a browser
    /// tab from writing into a conversation that a different tab has started.
    #[param(rename = "x-thread-life", pattern = "^[0-9a-f]{16}$")]
    x_thread_life: Option<String>,
    /// Makes retries safe. A retry with the same body returns the first response and changes nothing.
    #[param(rename = "Idempotency-Key", max_length = 128, pattern = "^[!-~]+$")]
    idempotency_key: Option<String>,
    /// The token of a turn. Write only if a later turn has not been granted.
    #[param(rename = "x-turn-token")]
    x_turn_token: Option<String>,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct NewThreadParam {
    /// Lifetime in seconds after the last use, if this write creates the thread.
    #[param(minimum = 60, maximum = 946_080_000)]
    ttl_seconds: Option<u64>,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct PeekParam {
    /// If `true`, the read does not count as a use of the thread and does not extend its lifetime.
    peek: Option<bool>,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct CheckpointParam {
    /// The number of the checkpoint.
    #[param(minimum = 1)]
    n: u64,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct SegmentParam {
    /// The number of the segment.
    #[param(minimum = 1)]
    n: u64,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct ItemParam {
    /// The id of the item, percent-encoded.
    #[param(max_length = 128, pattern = "^[!-~]+$")]
    item: String,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct EffectParam {
    /// The id of the tool call, percent-encoded. Usually the id that the model gave to it.
    #[param(max_length = 128, pattern = "^[!-~]+$")]
    effect: String,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
pub(super) struct TokenHeader {
    /// The token of the turn.
    #[param(rename = "x-turn-token")]
    x_turn_token: String,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct NamespaceParam {
    /// The namespace: 1 to 64 visible characters, percent-encoded.
    #[param(min_length = 1, max_length = 64)]
    namespace: String,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
pub(super) struct EntryRepeatHeader {
    /// Makes retries safe. For at least a minute, a retry with the same body returns the first response and changes
    /// nothing.
    #[param(rename = "Idempotency-Key", max_length = 128, pattern = "^[!-~]+$")]
    idempotency_key: Option<String>,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct WebhookParam {
    /// The id of the endpoint.
    #[param(pattern = "^whk_[0-9a-f]{32}$")]
    id: String,
}

/// Query parameters for a page of a history.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct HistoryPageParams {
    /// Return items after this position, oldest first. By default, starts at the oldest item.
    after: Option<u64>,
    /// Return items before this position, newest first. Cannot be combined with `after`.
    before: Option<u64>,
    /// The order of the items: `asc` (oldest first) or `desc` (newest first). `desc` without `before` starts at the
    /// newest item.
    #[param(pattern = "^(asc|desc)$")]
    order: Option<String>,
    /// Maximum number of items per page, 100 by default.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u64>,
}
