use actix_web::HttpResponse;

use super::batch_bodies::{EntriesObject, GetEntries, PutEntries, PutOutcomes};
use super::object::EntryObject;
use super::path::NamespacePath;
use crate::answer::{ApiResult, json, ok_or_replay};
use crate::problems::{BackEndProblems, BodyProblems, RepeatProblems};
use crate::request::{
    BackEnd, IN_LIST, JsonBody, Nothing, OptionalIdempotencyKey, Query, body_object, read,
};
use crate::schemas::NamespaceParam;
use threadkeep_web::ApiError;

/// Retrieve several entries
///
/// Returns entries with their bodies. The response is limited to 2 MiB, but contains at least one entry if any exists.
/// Keys beyond the limit are listed in `unread`. The read is not atomic: entries may be read at different times.
#[utoipa::path(
    post,
    path = "/v1/kv/{namespace}/get",
    params(NamespaceParam),
    request_body(content = GetEntries),
    responses(
        (status = 200, description = "The entries.", body = EntriesObject),
        BodyProblems,
        BackEndProblems,
    ),
)]
pub(crate) async fn get_entries(
    BackEnd { api, .. }: BackEnd,
    NamespacePath(namespace): NamespacePath,
    _: Query<Nothing>,
    body: JsonBody,
) -> ApiResult {
    let body = body_object(body.as_str(), IN_LIST)?;
    let keys = read::<GetEntries>(&body)?.read()?;
    let entries = api
        .namespaces
        .get_many(&namespace, &keys, EntryObject::json_size);
    let entries = EntriesObject::of(&entries.await?);
    Ok(json(HttpResponse::Ok(), &entries))
}

/// Put several entries
///
/// Each put succeeds or fails as a whole, and has its own outcome. The request as a whole is not atomic. If the request
/// fails halfway, retry it with the same `Idempotency-Key` to put the remaining entries. No entry is put twice. An
/// error response means that no entry was put, except for 503, which leaves the outcomes unknown.
#[utoipa::path(
    post,
    path = "/v1/kv/{namespace}/put",
    params(
        NamespaceParam,
        ("Idempotency-Key" = Option<String>, Header, max_length = 128, pattern = "^[!-~]+$", description = "Makes retries safe. For at least a minute, a retry with the same body returns the first outcome of each entry and changes nothing."),
    ),
    request_body(content = PutEntries),
    responses(
        (status = 200, description = "The outcome of each put.", body = PutOutcomes),
        BodyProblems,
        RepeatProblems,
        BackEndProblems,
    ),
)]
pub(crate) async fn put_entries(
    BackEnd { api, .. }: BackEnd,
    NamespacePath(namespace): NamespacePath,
    OptionalIdempotencyKey(idempotency): OptionalIdempotencyKey,
    _: Query<Nothing>,
    body: JsonBody,
) -> ApiResult {
    let body = body_object(body.as_str(), IN_LIST)?;
    let puts = read::<PutEntries>(&body)?.read()?;
    let entries = puts
        .iter()
        .map(|put| (put.key.clone(), put.draft.body.len()));
    let entries: Vec<_> = entries.collect();
    let outcomes = api.namespaces.put_many(&namespace, puts, idempotency);
    let outcomes = outcomes.await?;
    let puts = outcomes.answer.into_iter();
    let puts = puts.map(|put| put.map_err(ApiError::from)).collect();
    let body = PutOutcomes::of(entries.into_iter(), puts);
    Ok(ok_or_replay(&body, outcomes.replayed))
}
