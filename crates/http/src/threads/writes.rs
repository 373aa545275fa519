use std::num::NonZeroU64;

use super::operations::{Increment, Merge, read_increment, read_operations};
use crate::answer::{ApiResult, merge_receipt, receipt};
use crate::problems::WriteProblems;
use crate::request::{
    JsonBody, KeyPath, NewThreadQuery, PatchBody, ThreadWrite, Window, WriteConditions,
};
use crate::schemas::{
    DeleteReceipt, IncrementReceipt, KeyParam, MergeReceipt, NewThreadParam, PushReceipt, Receipt,
    WriteHeaders,
};
use threadkeep_domain::scope::ScopeId;
use threadkeep_domain::{Json, MergePatch, Mismatch, Operation, Value, keyed_values};
use threadkeep_web::ApiError;

/// Set a key
#[utoipa::path(
    put,
    path = "/v1/threads/current/state/{key}",
    params(KeyParam, WriteHeaders, NewThreadParam),
    request_body(content = serde_json::Value, description = "Any JSON value."),
    responses(
        (status = 200, description = "The key was set.", body = Receipt, headers(("etag" = String), ("x-thread-version" = u64))),
        WriteProblems,
    ),
)]
pub(crate) async fn put_value(write: ThreadWrite<KeyPath>, body: JsonBody) -> ApiResult {
    let value = Value::parse(body.as_str()).map_err(ApiError::InvalidJson)?;
    run(write, |KeyPath(key)| Operation::Set { key, value }).await
}

/// Delete a key
#[utoipa::path(
    delete,
    path = "/v1/threads/current/state/{key}",
    params(KeyParam, WriteHeaders, NewThreadParam),
    responses(
        (status = 200, description = "The key no longer exists.", body = DeleteReceipt, headers(("etag" = String), ("x-thread-version" = u64))),
        WriteProblems,
    ),
)]
pub(crate) async fn delete_value(write: ThreadWrite<KeyPath>) -> ApiResult {
    run(write, |KeyPath(key)| Operation::Delete { key }).await
}

/// Push an element to an array
///
/// Creates the array if the key does not exist. With `max_records`, removes the oldest elements beyond that number.
#[utoipa::path(
    post,
    path = "/v1/threads/current/state/{key}/push",
    params(
        KeyParam,
        ("max_records" = Option<u64>, Query, minimum = 1, description = "Maximum number of elements to keep. The oldest elements are removed first."),
        WriteHeaders, NewThreadParam),
    request_body(content = serde_json::Value, description = "The new element: any JSON value."),
    responses(
        (status = 200, description = "The element was appended.", body = PushReceipt, headers(("etag" = String), ("x-thread-version" = u64))),
        WriteProblems,
    ),
)]
pub(crate) async fn push_value(
    write: ThreadWrite<KeyPath, WriteConditions, Window>,
    body: JsonBody,
) -> ApiResult {
    let value = Json::parse(body.as_str()).map_err(ApiError::InvalidJson)?;
    let max_records = write.query.max_records.map(NonZeroU64::get);
    let push = |KeyPath(key)| Operation::Push {
        key,
        value,
        max_records,
        mismatch: Mismatch::Refuse,
    };
    run(write, push).await
}

/// Increment an integer
///
/// A key that does not exist counts as 0. The sum must fit in 64 bits.
#[utoipa::path(
    post,
    path = "/v1/threads/current/state/{key}/increment",
    params(KeyParam, WriteHeaders, NewThreadParam),
    request_body(content = Option<Increment>, description = "The number to add, 1 by default."),
    responses(
        (status = 200, description = "The integer was incremented.", body = IncrementReceipt, headers(("etag" = String), ("x-thread-version" = u64))),
        WriteProblems,
    ),
)]
pub(crate) async fn increment_value(write: ThreadWrite<KeyPath>, body: JsonBody) -> ApiResult {
    let by = read_increment(body.as_str())?;
    run(write, |KeyPath(key)| Operation::Increment { key, by }).await
}

/// Replace the state
#[utoipa::path(
    put,
    path = "/v1/threads/current/state",
    params(WriteHeaders, NewThreadParam),
    request_body(content = BTreeMap<String, serde_json::Value>, description = "The new state."),
    responses(
        (status = 200, description = "The state was replaced.", body = Receipt, headers(("etag" = String), ("x-thread-version" = u64))),
        WriteProblems,
    ),
)]
pub(crate) async fn put_state(write: ThreadWrite, body: JsonBody) -> ApiResult {
    let (service, id, options) = (write.threads(), &write.target.id, write.headers.options);
    let state = keyed_values(body.as_str(), service.policy().max_keys)?;
    let mut written = service.replace(id, state, options).await?;
    // the client did not ask for the results of the individual operations
    written.answers.clear();
    Ok(receipt(&written))
}

/// Merge into the state
///
/// Applies the operations in order, and atomically: either all of them or none.
#[utoipa::path(
    patch,
    path = "/v1/threads/current/state",
    params(WriteHeaders, NewThreadParam),
    request_body(
        content(
            (Merge<'_> = "application/json"),
            (Object = "application/merge-patch+json"),
        ),
        description = "1 to 1,000 operations, or a merge patch (RFC 7396) for the top level of the state with up to `max_keys` keys."
    ),
    responses(
        (status = 200, description = "The changes were merged.", body = MergeReceipt, headers(("etag" = String), ("x-thread-version" = u64))),
        WriteProblems,
    ),
)]
pub(crate) async fn patch_state(write: ThreadWrite, body: PatchBody) -> ApiResult {
    let (service, id, options) = (write.threads(), &write.target.id, write.headers.options);
    match body {
        PatchBody::Operations(body) => {
            let operations = read_operations(body.as_str(), options.idempotency)?;
            let history = write.scopes().policy(&ScopeId::Thread(*id)).history;
            let written = service.merge_with_history(id, &operations, history, options);
            Ok(merge_receipt(&written.await?))
        }
        PatchBody::MergePatch(body) => {
            let patch = MergePatch::parse(body.as_str(), service.policy().max_keys)?;
            let mut written = service.patch_state(id, &patch, options).await?;
            written.answers.clear();
            Ok(receipt(&written))
        }
    }
}

/// Clear the state
#[utoipa::path(
    delete,
    path = "/v1/threads/current/state",
    params(WriteHeaders, NewThreadParam),
    responses(
        (status = 200, description = "The state was cleared.", body = Receipt, headers(("etag" = String), ("x-thread-version" = u64))),
        WriteProblems,
    ),
)]
pub(crate) async fn delete_state(write: ThreadWrite) -> ApiResult {
    run(write, |()| Operation::Clear).await
}

async fn run<P, Q: AsRef<NewThreadQuery>>(
    write: ThreadWrite<P, WriteConditions, Q>,
    operation: impl FnOnce(P) -> Operation,
) -> ApiResult {
    let service = write.target.new_threads(write.query.as_ref());
    let (id, operations) = (&write.target.id, [operation(write.path)]);
    let written = service
        .merge(id, &operations, write.headers.options)
        .await?;
    Ok(receipt(&written))
}
