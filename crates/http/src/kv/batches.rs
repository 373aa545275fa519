use actix_web::HttpResponse;

use super::batch_bodies::{EntriesObject, GetEntries, PutEntries, PutOutcomes};
use super::object::EntryObject;
use super::path::NamespacePath;
use crate::answer::{ApiResult, json, ok_or_replay};
use crate::problems::{BackEndProblems, BodyProblems, RepeatProblems};
use crate::request::{BackEnd, IN_LIST, JsonBody, Nothing, OnlyRepeat, Query, body_object, read};
use crate::schemas::NamespaceParam;
use threadkeep_web::ApiError;

/// Read several entries
///
/// Returns the entries with their bodies. The response ends at 2 MiB, but has at least one entry if any exists, and lists
/// the keys that it did not read. Each entry is read at its own moment.
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
        .get_many(&namespace, &keys, EntryObject::weigh);
    let entries = EntriesObject::of(&entries.await?);
    Ok(json(HttpResponse::Ok(), &entries))
}

/// Put several entries
///
/// Puts each entry whole or not at all, with an outcome of its own. The request as a whole is not atomic. If it fails
/// halfway, a repeat with the same `Idempotency-Key` puts the remaining entries, and none twice. An error for the whole
/// request means that nothing was put, or, with 503, that no outcome is known.
#[utoipa::path(
    post,
    path = "/v1/kv/{namespace}/put",
    params(
        NamespaceParam,
        ("Idempotency-Key" = Option<String>, Header, max_length = 128, pattern = "^[!-~]+$", description = "Makes a retry safe: for a minute at least, a repeat with the same body gets the first outcome of each entry and changes nothing."),
    ),
    request_body(content = PutEntries),
    responses(
        (status = 200, description = "The outcomes.", body = PutOutcomes),
        BodyProblems,
        RepeatProblems,
        BackEndProblems,
    ),
)]
pub(crate) async fn put_entries(
    BackEnd { api, .. }: BackEnd,
    NamespacePath(namespace): NamespacePath,
    OnlyRepeat(idempotency): OnlyRepeat,
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
