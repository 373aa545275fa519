//! Schemas for the OpenAPI document. Other modules read and write these values as opaque text.

#![expect(dead_code, reason = "only the shapes are used")]

use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

/// The receipt of a write.
#[derive(ToSchema)]
pub(super) struct Receipt {
    /// The thread's version after the write.
    version: u64,
    /// Bytes of the compact serialized state after the write.
    size_bytes: u64,
}

/// The receipt of a push.
#[derive(ToSchema)]
pub(super) struct PushReceipt {
    /// The thread's version after the write.
    version: u64,
    /// Bytes of the compact serialized state after the write.
    size_bytes: u64,
    /// Elements of the array after the push.
    length: u64,
}

/// The receipt of an increment.
#[derive(ToSchema)]
pub(super) struct IncrementReceipt {
    /// The thread's version after the write.
    version: u64,
    /// Bytes of the compact serialized state after the write.
    size_bytes: u64,
    /// The sum.
    value: i64,
}

/// The receipt of a deletion.
#[derive(ToSchema)]
pub(super) struct DeleteReceipt {
    /// The thread's version after the write.
    version: u64,
    /// Bytes of the compact serialized state after the write.
    size_bytes: u64,
    /// Whether the key existed.
    deleted: bool,
}

/// The receipt of a merge.
#[derive(ToSchema)]
pub(super) struct MergeReceipt {
    /// The thread's version after the write.
    version: u64,
    /// Bytes of the compact serialized state after the write.
    size_bytes: u64,
    /// The result of each operation, in order; absent for a merge patch.
    results: Option<Vec<OperationResult>>,
}

/// The result of one operation: `deleted` for a delete, `length` for a push, `values` for a pop, `value` for an increment,
/// and `id`, `seq` and `repeated` for an append.
#[derive(ToSchema)]
pub(super) struct OperationResult {
    deleted: Option<bool>,
    length: Option<u64>,
    /// The removed elements, oldest first.
    values: Option<Vec<serde_json::Value>>,
    value: Option<i64>,
    /// The item's id.
    id: Option<String>,
    /// The item's position in the history.
    seq: Option<u64>,
    /// Whether the history already had the item.
    repeated: Option<bool>,
}

/// The response to a probe.
#[derive(Serialize, ToSchema)]
pub(super) struct Health {
    pub(super) status: &'static str,
}

/// A problem ([RFC 9457](https://www.rfc-editor.org/rfc/rfc9457)). Match on `code`, which is stable; `detail` is for people.
/// Some codes add members, such as `limit_bytes` or `operation`.
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
    /// 1 to 256 bytes of UTF-8 without control characters, percent-encoded.
    #[param(min_length = 1, max_length = 256)]
    key: String,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
pub(super) struct WriteHeaders {
    /// Write only if the thread has one of up to 8 tags or versions (`"3"`). `"0"` requires that it does not exist, and `*`
    /// that it exists. Weak tags never match.
    #[param(
        rename = "If-Match",
        pattern = r#"^(\*|(W/)?"[0-9]+(-[0-9a-f]{16})?"( *, *(W/)?"[0-9]+(-[0-9a-f]{16})?"){0,7})$"#
    )]
    if_match: Option<String>,
    /// Write only if the thread is still in this life. The value is the part of the thread's tag after the hyphen. This
    /// prevents a browser tab from writing into a conversation that another tab has started.
    #[param(rename = "x-thread-life", pattern = "^[0-9a-f]{16}$")]
    x_thread_life: Option<String>,
    /// Makes a retry safe: a repeat with the same body gets the first answer and changes nothing.
    #[param(rename = "Idempotency-Key", max_length = 128, pattern = "^[!-~]+$")]
    idempotency_key: Option<String>,
    /// Write only if no later turn than this token's was granted.
    #[param(rename = "x-turn-token")]
    x_turn_token: Option<String>,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct OfNewParam {
    /// The TTL of the thread if this write creates it.
    #[param(minimum = 60, maximum = 946_080_000)]
    ttl_seconds: Option<u64>,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct PeekParam {
    /// With `true`, this read does not count as a use of the thread, and does not extend its lifetime.
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
    /// The segment's number.
    #[param(minimum = 1)]
    n: u64,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct ItemParam {
    /// The item's id, percent-encoded.
    #[param(max_length = 128, pattern = "^[!-~]+$")]
    item: String,
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
    /// 1 to 64 visible characters, percent-encoded.
    #[param(min_length = 1, max_length = 64)]
    namespace: String,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
pub(super) struct EntryRepeatHeader {
    /// Makes a retry safe: for at least a minute, a repeat with the same body gets the first response and changes nothing.
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

/// Positions in a history, and a page between them.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct PlaceParams {
    /// Return items after this position, oldest first. By default, from the beginning.
    after: Option<u64>,
    /// Return items before this position, newest first. Not with `after`.
    before: Option<u64>,
    /// `desc` without `before` starts at the end.
    #[param(pattern = "^(asc|desc)$")]
    order: Option<String>,
    /// Items on the page, 100 by default.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u64>,
}
