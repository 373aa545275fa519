use actix_web::HttpResponse;
use actix_web::http::StatusCode;

use super::content::{entry_body, entry_head};
use super::object::{EntryDeletion, EntryReceipt};
use super::path::EntryPath;
use super::query::EntryTtlQuery;
use super::write::{EntryConditions, RawBody};
use crate::answer::{ApiResult, json, mark_replay, ok_or_replay};
use crate::problems::{
    AnyAnswerProblems, BackEndProblems, NotFound, PreconditionFailed, RepeatProblems,
};
use crate::request::{AnyAcceptBackEnd, BackEnd, Nothing, Query, ReadConditions};
use crate::schemas::{EntryRepeatHeader, NamespaceParam};
use threadkeep_service::EntryDraft;
use threadkeep_store::{Answered, Reading};
use threadkeep_web::tag;

/// Retrieve an entry
///
/// Returns the body with the content type and encoding of the last put, regardless of `Accept`. Reading an entry does
/// not extend its lifetime.
#[utoipa::path(
    get,
    path = "/v1/kv/{namespace}/{key}",
    params(
        NamespaceParam,
        ("key" = String, Path, min_length = 1, max_length = 1024, description = "The key of the entry: 1 to 1,024 bytes of UTF-8 without control characters, percent-encoded."),
        ("If-None-Match" = Option<String>, Header, description = "Return 304 without a body if the entry has one of these entity tags."),
    ),
    responses(
        (status = 200, description = "The body, exactly as it was put.", body = Vec<u8>, content_type = "*/*", headers(
            ("etag" = String), ("x-thread-version" = u64),
            ("x-expires-at" = String, description = "When the entry expires (RFC 3339). Absent if never."),
        )),
        (status = 304, description = "The entry has one of the entity tags."),
        NotFound,
        PreconditionFailed,
        AnyAnswerProblems,
    ),
)]
pub(crate) async fn get_entry(
    AnyAcceptBackEnd(BackEnd { api, .. }): AnyAcceptBackEnd,
    path: EntryPath,
    conditions: ReadConditions,
    _: Query<Nothing>,
) -> ApiResult {
    let read = api
        .namespaces
        .get(&path.namespace, &path.key, Reading::Plain);
    let entry = read.await?;
    let is_known = conditions.check(entry.head.stamp)?;
    let status = if is_known {
        StatusCode::NOT_MODIFIED
    } else {
        StatusCode::OK
    };
    let mut response = entry_head(status, &entry.head);
    tag(&mut response, entry.head.stamp);
    if is_known {
        return Ok(response.finish());
    }
    Ok(entry_body(response, entry))
}

/// Put an entry
///
/// Creates or replaces an entry, and creates the namespace if it does not exist. The server stores the body unchanged,
/// with its `Content-Type` and `Content-Encoding`.
///
/// Repeating a put changes only the version and the expiration time. With `If-Match`, however, the second put returns
/// 412, because the first put changed the version. To make such a put safe to retry, send an `Idempotency-Key`.
#[utoipa::path(
    put,
    path = "/v1/kv/{namespace}/{key}",
    params(
        NamespaceParam,
        ("key" = String, Path, min_length = 1, max_length = 1024, description = "The key of the entry: 1 to 1,024 bytes of UTF-8 without control characters, percent-encoded."),
        ("ttl_seconds" = Option<u64>, Query, minimum = 0, maximum = 31_536_000, description = "Lifetime of the entry in seconds. 0 means that the entry never expires. By default, the namespace's default lifetime, or else the server's."),
        ("If-Match" = Option<String>, Header, pattern = r#"^(\*|"[0-9]+(-[0-9a-f]{16})?")$"#, description = "Put only if the entry has this entity tag or version (`\"3\"`). `\"0\"` requires that the entry does not exist, and `*` that it exists."),
        ("If-None-Match" = Option<String>, Header, pattern = r"^\*$", description = "`*` puts the entry only if it does not exist. Cannot be combined with `If-Match`."),
        EntryRepeatHeader,
    ),
    request_body(content = Vec<u8>, content_type = "application/octet-stream", description = "The body of the entry: any bytes of any type."),
    responses(
        (status = 200, description = "The entry was replaced.", body = EntryReceipt, headers(("etag" = String), ("x-thread-version" = u64))),
        (status = 201, description = "The entry was created.", body = EntryReceipt, headers(("etag" = String), ("x-thread-version" = u64))),
        PreconditionFailed,
        RepeatProblems,
        BackEndProblems,
    ),
)]
pub(crate) async fn put_entry(
    BackEnd { api, .. }: BackEnd,
    path: EntryPath,
    EntryConditions(terms): EntryConditions,
    Query(EntryTtlQuery(lifetime)): Query<EntryTtlQuery>,
    body: RawBody,
) -> ApiResult {
    let size_bytes = body.bytes.len();
    let draft = EntryDraft {
        body: body.bytes,
        content_type: body.content.content_type,
        content_encoding: body.content.content_encoding,
        lifetime,
    };
    let answered = api.namespaces.put(&path.namespace, &path.key, draft, terms);
    let answered = answered.await?;
    let put = answered.answer;
    let mut response = match put.stamp.version {
        1 => HttpResponse::Created(),
        _ => HttpResponse::Ok(),
    };
    mark_replay(&mut response, answered.replayed);
    tag(&mut response, put.stamp);
    Ok(json(response, &EntryReceipt::of(&put, size_bytes)))
}

/// Delete an entry
#[utoipa::path(
    delete,
    path = "/v1/kv/{namespace}/{key}",
    params(
        NamespaceParam,
        ("key" = String, Path, min_length = 1, max_length = 1024, description = "The key of the entry: 1 to 1,024 bytes of UTF-8 without control characters, percent-encoded."),
        ("If-Match" = Option<String>, Header, pattern = r#"^(\*|"[0-9]+(-[0-9a-f]{16})?")$"#, description = "Delete only if the entry has this entity tag or version. `*` requires that the entry exists."),
        EntryRepeatHeader,
    ),
    responses(
        (status = 200, description = "The entry no longer exists.", body = EntryDeletion),
        PreconditionFailed,
        RepeatProblems,
        BackEndProblems,
    ),
)]
pub(crate) async fn delete_entry(
    BackEnd { api, .. }: BackEnd,
    path: EntryPath,
    EntryConditions(terms): EntryConditions,
    _: Query<Nothing>,
) -> ApiResult {
    let deleted = api.namespaces.delete(&path.namespace, &path.key, terms);
    let Answered { answer, replayed } = deleted.await?;
    let deletion = EntryDeletion { deleted: answer };
    Ok(ok_or_replay(&deletion, replayed))
}
