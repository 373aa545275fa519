//! Handlers that write a state.

use std::num::NonZeroU64;

use super::operations::{Increment, Merge, read_increment, read_operations};
use crate::ApiResult;
use crate::answer::receipt::{merge_receipt, receipt};
use crate::problems::WriteProblems;
use crate::request::conditions::WriteConditions;
use crate::request::json_body::{JsonBody, PatchBody};
use crate::request::key_path::KeyPath;
use crate::request::query::{OfNew, Query, Window};
use crate::request::target::Target;
use crate::schemas::{
    DeleteReceipt, IncrementReceipt, KeyParam, MergeReceipt, OfNewParam, PushReceipt, Receipt,
    WriteHeaders,
};
use threadkeep_domain::scope::ScopeId;
use threadkeep_domain::{Json, MergePatch, Mismatch, Operation, Value, keyed_values};
use threadkeep_web::ApiError;

/// Set a key
#[utoipa::path(
    put,
    path = "/v1/threads/current/state/{key}",
    params(KeyParam, WriteHeaders, OfNewParam),
    request_body(content = serde_json::Value, description = "Any JSON value."),
    responses(
        (status = 200, description = "The write is in the store.", body = Receipt, headers(("etag" = String), ("x-thread-version" = u64))),
        WriteProblems,
    ),
)]
pub(crate) async fn put_value(
    target: Target,
    KeyPath(key): KeyPath,
    conditions: WriteConditions,
    Query(of_new): Query<OfNew>,
    body: JsonBody,
) -> ApiResult {
    let value = Value::parse(body.as_str()).map_err(ApiError::InvalidJson)?;
    run(target, conditions, &of_new, Operation::Set { key, value }).await
}

/// Delete a key
#[utoipa::path(
    delete,
    path = "/v1/threads/current/state/{key}",
    params(KeyParam, WriteHeaders, OfNewParam),
    responses(
        (status = 200, description = "The write is in the store.", body = DeleteReceipt, headers(("etag" = String), ("x-thread-version" = u64))),
        WriteProblems,
    ),
)]
pub(crate) async fn delete_value(
    target: Target,
    KeyPath(key): KeyPath,
    conditions: WriteConditions,
    Query(of_new): Query<OfNew>,
) -> ApiResult {
    run(target, conditions, &of_new, Operation::Delete { key }).await
}

/// Push to an array
///
/// Creates the array if the key is absent. With `max_records`, drops the oldest elements beyond it.
#[utoipa::path(
    post,
    path = "/v1/threads/current/state/{key}/push",
    params(
        KeyParam,
        ("max_records" = Option<u64>, Query, minimum = 1, description = "Keep at most this many of the newest elements."),
        WriteHeaders, OfNewParam),
    request_body(content = serde_json::Value, description = "The new element: any JSON value."),
    responses(
        (status = 200, description = "The write is in the store.", body = PushReceipt, headers(("etag" = String), ("x-thread-version" = u64))),
        WriteProblems,
    ),
)]
pub(crate) async fn push_value(
    target: Target,
    KeyPath(key): KeyPath,
    conditions: WriteConditions,
    Query(window): Query<Window>,
    body: JsonBody,
) -> ApiResult {
    let value = Json::parse(body.as_str()).map_err(ApiError::InvalidJson)?;
    let max_records = window.max_records;
    let push = Operation::Push {
        key,
        value,
        max_records: max_records.map(NonZeroU64::get),
        mismatch: Mismatch::Refuse,
    };
    run(target, conditions, &window.of_new, push).await
}

/// Increment an integer
///
/// An absent key counts as 0. The sum must fit in 64 bits.
#[utoipa::path(
    post,
    path = "/v1/threads/current/state/{key}/increment",
    params(KeyParam, WriteHeaders, OfNewParam),
    request_body(content = Option<Increment>, description = "The number to add, 1 by default."),
    responses(
        (status = 200, description = "The write is in the store.", body = IncrementReceipt, headers(("etag" = String), ("x-thread-version" = u64))),
        WriteProblems,
    ),
)]
pub(crate) async fn increment_value(
    target: Target,
    KeyPath(key): KeyPath,
    conditions: WriteConditions,
    Query(of_new): Query<OfNew>,
    body: JsonBody,
) -> ApiResult {
    let by = read_increment(body.as_str())?;
    run(
        target,
        conditions,
        &of_new,
        Operation::Increment { key, by },
    )
    .await
}

/// Replace the state
#[utoipa::path(
    put,
    path = "/v1/threads/current/state",
    params(WriteHeaders, OfNewParam),
    request_body(content = BTreeMap<String, serde_json::Value>, description = "The new state."),
    responses(
        (status = 200, description = "The write is in the store.", body = Receipt, headers(("etag" = String), ("x-thread-version" = u64))),
        WriteProblems,
    ),
)]
pub(crate) async fn put_state(
    target: Target,
    conditions: WriteConditions,
    Query(of_new): Query<OfNew>,
    body: JsonBody,
) -> ApiResult {
    let service = target.new_threads(&of_new);
    let state = keyed_values(body.as_str(), service.policy().max_keys)?;
    let mut written = service
        .replace(&target.id, state, conditions.options)
        .await?;
    // the client did not ask for the steps of a replacement
    written.answers.clear();
    Ok(receipt(&written))
}

/// Merge into the state
///
/// Runs all operations in order and atomically, or none of them.
#[utoipa::path(
    patch,
    path = "/v1/threads/current/state",
    params(WriteHeaders, OfNewParam),
    request_body(
        content(
            (Merge<'_> = "application/json"),
            (Object = "application/merge-patch+json"),
        ),
        description = "1 to 1,000 operations, or a merge patch (RFC 7396) of the top level with at most `max_keys` keys."
    ),
    responses(
        (status = 200, description = "The write is in the store.", body = MergeReceipt, headers(("etag" = String), ("x-thread-version" = u64))),
        WriteProblems,
    ),
)]
pub(crate) async fn patch_state(
    target: Target,
    conditions: WriteConditions,
    Query(of_new): Query<OfNew>,
    body: PatchBody,
) -> ApiResult {
    let service = target.new_threads(&of_new);
    match body {
        PatchBody::Operations(body) => {
            let operations = read_operations(body.as_str(), conditions.options.idempotency)?;
            let scope = ScopeId::Thread(target.id);
            let history = target.scopes(&of_new).policy(&scope).history;
            let written = service
                .merge_with_history(&target.id, &operations, history, conditions.options)
                .await?;
            Ok(merge_receipt(&written))
        }
        PatchBody::MergePatch(body) => {
            let patch = MergePatch::parse(body.as_str(), service.policy().max_keys)?;
            let mut written = service
                .patch_state(&target.id, &patch, conditions.options)
                .await?;
            written.answers.clear();
            Ok(receipt(&written))
        }
    }
}

/// Clear the state
#[utoipa::path(
    delete,
    path = "/v1/threads/current/state",
    params(WriteHeaders, OfNewParam),
    responses(
        (status = 200, description = "The write is in the store.", body = Receipt, headers(("etag" = String), ("x-thread-version" = u64))),
        WriteProblems,
    ),
)]
pub(crate) async fn delete_state(
    target: Target,
    conditions: WriteConditions,
    Query(of_new): Query<OfNew>,
) -> ApiResult {
    run(target, conditions, &of_new, Operation::Clear).await
}

async fn run(
    target: Target,
    conditions: WriteConditions,
    of_new: &OfNew,
    operation: Operation,
) -> ApiResult {
    let service = target.new_threads(of_new);
    let written = service
        .merge(&target.id, &[operation], conditions.options)
        .await?;
    Ok(receipt(&written))
}
