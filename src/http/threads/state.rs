//! Reads of a state.

use actix_web::HttpResponse;
use actix_web::http::header::{HeaderName, HeaderValue};

use crate::http::answer::receipt::content;
use crate::http::request::conditions::ReadConditions;
use crate::http::request::key_path::KeyPath;
use crate::http::request::query::{Keys, Nothing, Part, Query};
use crate::http::request::target::Target;
use crate::http::schemas::{KeyParam, Problem, ReadProblems};
use crate::web::ApiError;

const TOTAL_COUNT: HeaderName = HeaderName::from_static("x-total-count");

/// The whole state, or some of its keys
#[utoipa::path(
    get,
    path = "/v1/threads/current/state",
    tag = "state",
    params(
        ("key" = Option<Vec<String>>, Query, description = "Only these keys."),
        ("If-None-Match" = Option<String>, Header, description = "A tag that is known already."),
    ),
    responses(
        (status = 200, description = "The state, its keys sorted by their bytes.", body = BTreeMap<String, serde_json::Value>, headers(("etag" = String))),
        (status = 304, description = "The tag is that of the state."),
        ReadProblems,
    ),
)]
pub(crate) async fn get_state(
    target: Target,
    conditions: ReadConditions,
    Query(Keys(keys)): Query<Keys>,
) -> Result<HttpResponse, ApiError> {
    let service = &target.api.service;
    let found = if keys.is_empty() {
        service.get_state(&target.id).await?
    } else {
        service.get_values(&target.id, keys).await?
    };
    Ok(content(&conditions, found.stamp, found.content)?.finish())
}

/// One value, or a part of an array
#[utoipa::path(
    get,
    path = "/v1/threads/current/state/{key}",
    tag = "state",
    params(
        KeyParam,
        ("tail" = Option<u64>, Query, description = "Of an array, the newest elements, at most this many."),
        ("offset" = Option<u64>, Query, description = "Of an array, the elements from this one on. Does not go with `tail`."),
        ("limit" = Option<u64>, Query, description = "Of an array, at most this many elements. Does not go with `tail`."),
        ("If-None-Match" = Option<String>, Header, description = "A tag that is known already."),
    ),
    responses(
        (status = 200, description = "The value, exactly as it was sent, or the part of it.", body = serde_json::Value, headers(
            ("etag" = String),
            ("x-total-count" = u64, description = "Elements of the whole array, when a part was asked for."),
        )),
        (status = 304, description = "The tag is that of the state."),
        (status = 404, description = "There is no such key.", body = Problem, content_type = "application/problem+json"),
        (status = 409, description = "A part was asked of something else than an array.", body = Problem, content_type = "application/problem+json"),
        ReadProblems,
    ),
)]
pub(crate) async fn get_value(
    target: Target,
    KeyPath(key): KeyPath,
    conditions: ReadConditions,
    Query(part): Query<Part>,
) -> Result<HttpResponse, ApiError> {
    let service = &target.api.service;
    let found = service.get_value(&target.id, &key, part.slice()).await?;
    let mut answer = content(&conditions, found.stamp, found.content.json)?;
    if let Some(total) = found.content.total {
        answer
            .builder
            .insert_header((TOTAL_COUNT, HeaderValue::from(total)));
    }
    Ok(answer.finish())
}

/// The keys of the state
#[utoipa::path(
    get,
    path = "/v1/threads/current/keys",
    tag = "state",
    params(("If-None-Match" = Option<String>, Header, description = "A tag that is known already.")),
    responses(
        (status = 200, description = "The keys, sorted by their bytes.", body = Vec<String>, headers(("etag" = String))),
        (status = 304, description = "The tag is that of the state."),
        ReadProblems,
    ),
)]
pub(crate) async fn get_keys(
    target: Target,
    conditions: ReadConditions,
    _: Query<Nothing>,
) -> Result<HttpResponse, ApiError> {
    let found = target.api.service.get_keys(&target.id).await?;
    let mut json = vec![b'['];
    for (index, key) in found.content.iter().enumerate() {
        if index > 0 {
            json.push(b',');
        }
        key.write_json(&mut json);
    }
    json.push(b']');
    Ok(content(&conditions, found.stamp, json)?.finish())
}
