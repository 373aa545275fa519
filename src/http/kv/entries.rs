//! Entries of namespaces, for back ends.

use actix_web::http::StatusCode;
use actix_web::http::header::ETAG;
use actix_web::{HttpRequest, HttpResponse, HttpResponseBuilder};
use serde::Serialize;

use super::content::{entry_body, entry_head};
use super::object::{EntryDeletion, EntryReceipt};
use super::path::EntryPath;
use super::query::OfLifetime;
use super::write::{AnyBody, EntryConditions};
use crate::http::answer::negotiation::accepts_json;
use crate::http::request::back_end::BackEnd;
use crate::http::request::conditions::ReadConditions;
use crate::http::request::query::{Nothing, Query};
use crate::http::schemas::{EntryProblems, Problem};
use crate::service::EntryDraft;
use crate::store::Reading;
use crate::web::{ApiError, etag};

/// An entry
///
/// The bytes, the type and the encoding are those of its last put, whatever the request accepts. To
/// be read does not change when an entry ends.
#[utoipa::path(
    get,
    path = "/v1/kv/{namespace}/{key}",
    tag = "kv",
    params(
        ("namespace" = String, Path, min_length = 1, max_length = 64, description = "1 to 64 visible characters, percent-encoded."),
        ("key" = String, Path, min_length = 1, max_length = 1024, description = "1 to 1,024 bytes of UTF-8 without control characters, percent-encoded."),
        ("If-None-Match" = Option<String>, Header, description = "Tags that the client has: 304 for one of them."),
    ),
    responses(
        (status = 200, description = "The body as it was put.", body = Vec<u8>, content_type = "*/*", headers(
            ("etag" = String),
            ("x-expires-at" = String, description = "When it ends, RFC 3339; absent: never."),
        )),
        (status = 304, description = "The client has it."),
        (status = 404, description = "There is no such entry, or not any more.", body = Problem, content_type = "application/problem+json"),
        (status = 412, description = "The entry has another version.", body = Problem, content_type = "application/problem+json"),
        EntryProblems,
    ),
    security(("api_key" = [])),
)]
pub(crate) async fn get_entry(
    BackEnd { api }: BackEnd,
    path: EntryPath,
    conditions: ReadConditions,
    _: Query<Nothing>,
) -> Result<HttpResponse, ApiError> {
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
    response.insert_header((ETAG, etag(entry.head.stamp)));
    if is_known {
        return Ok(response.finish());
    }
    Ok(entry_body(response, entry))
}

/// Puts an entry
///
/// In the place of another one or of none; makes the namespace. The body is kept as it comes, with
/// its `Content-Type` and `Content-Encoding`. A put that is repeated changes nothing but the version
/// and the end. Under `If-Match` the repeat gets 412, since the first one has changed the version:
/// then read what is there.
#[utoipa::path(
    put,
    path = "/v1/kv/{namespace}/{key}",
    tag = "kv",
    params(
        ("namespace" = String, Path, min_length = 1, max_length = 64, description = "1 to 64 visible characters, percent-encoded."),
        ("key" = String, Path, min_length = 1, max_length = 1024, description = "1 to 1,024 bytes of UTF-8 without control characters, percent-encoded."),
        ("ttl_seconds" = Option<u64>, Query, minimum = 0, maximum = 31_536_000, description = "How long it lives; 0: for ever. Absent: as its namespace says, or else the server's settings."),
        ("If-Match" = Option<String>, Header, pattern = r#"^(\*|"[0-9]+(-[0-9a-f]{16})?")$"#, description = "What must be there: a whole tag, a version in quotes (`\"0\"`: nothing), or `*`: an entry."),
        ("If-None-Match" = Option<String>, Header, pattern = r"^\*$", description = "`*`: there must be no such entry. Not with `If-Match`."),
    ),
    request_body(content = Vec<u8>, content_type = "application/octet-stream", description = "Any bytes, of any type."),
    responses(
        (status = 200, description = "Put in the place of another one.", body = EntryReceipt, headers(("etag" = String))),
        (status = 201, description = "Put where there was none.", body = EntryReceipt, headers(("etag" = String))),
        (status = 406, description = "The client does not take JSON.", body = Problem, content_type = "application/problem+json"),
        (status = 412, description = "There is something else, or nothing.", body = Problem, content_type = "application/problem+json"),
        (status = 413, description = "The body is too large.", body = Problem, content_type = "application/problem+json"),
        EntryProblems,
    ),
    security(("api_key" = [])),
)]
pub(crate) async fn put_entry(
    request: HttpRequest,
    BackEnd { api }: BackEnd,
    path: EntryPath,
    EntryConditions(precondition): EntryConditions,
    Query(OfLifetime(lifetime)): Query<OfLifetime>,
    body: AnyBody,
) -> Result<HttpResponse, ApiError> {
    accepts_json(&request)?;
    let size_bytes = body.bytes.len();
    let draft = EntryDraft {
        body: body.bytes,
        content_type: body.content.content_type,
        content_encoding: body.content.content_encoding,
        lifetime,
    };
    let put = api
        .namespaces
        .put(&path.namespace, &path.key, draft, precondition);
    let put = put.await?;
    let mut response = match put.stamp.version {
        1 => HttpResponse::Created(),
        _ => HttpResponse::Ok(),
    };
    response.insert_header((ETAG, etag(put.stamp)));
    Ok(json(response, &EntryReceipt::of(&put, size_bytes)))
}

/// Deletes an entry
#[utoipa::path(
    delete,
    path = "/v1/kv/{namespace}/{key}",
    tag = "kv",
    params(
        ("namespace" = String, Path, min_length = 1, max_length = 64, description = "1 to 64 visible characters, percent-encoded."),
        ("key" = String, Path, min_length = 1, max_length = 1024, description = "1 to 1,024 bytes of UTF-8 without control characters, percent-encoded."),
        ("If-Match" = Option<String>, Header, pattern = r#"^(\*|"[0-9]+(-[0-9a-f]{16})?")$"#, description = "What must be there: a whole tag, a version in quotes, or `*`: an entry."),
    ),
    responses(
        (status = 200, description = "There is no such entry any more.", body = EntryDeletion),
        (status = 406, description = "The client does not take JSON.", body = Problem, content_type = "application/problem+json"),
        (status = 412, description = "There is something else, or nothing.", body = Problem, content_type = "application/problem+json"),
        (status = 413, description = "The body is too large.", body = Problem, content_type = "application/problem+json"),
        EntryProblems,
    ),
    security(("api_key" = [])),
)]
pub(crate) async fn delete_entry(
    request: HttpRequest,
    BackEnd { api }: BackEnd,
    path: EntryPath,
    EntryConditions(precondition): EntryConditions,
    _: Query<Nothing>,
) -> Result<HttpResponse, ApiError> {
    accepts_json(&request)?;
    let deleted = api
        .namespaces
        .delete(&path.namespace, &path.key, precondition);
    let deleted = deleted.await?;
    Ok(json(HttpResponse::Ok(), &EntryDeletion { deleted }))
}

fn json(mut response: HttpResponseBuilder, body: &impl Serialize) -> HttpResponse {
    let body = serde_json::to_vec(body).expect("text and numbers always serialize");
    response.content_type("application/json").body(body)
}
