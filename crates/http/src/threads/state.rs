use actix_web::HttpResponse;
use actix_web::http::header::HeaderValue;

use crate::answer::{AcceptsGzip, ApiResult, TOTAL_COUNT, content, not_modified, padded, state};
use crate::problems::{Conflict, NotFound, ReadProblems};
use crate::request::{KeyPath, Keys, Part, Query, ReadConditions, Reading, Target};
use crate::schemas::{KeyParam, PeekParam};
use threadkeep_domain::Stamp;
use threadkeep_identity::Source;
use threadkeep_service::ServiceError;
use threadkeep_store::{Found, StateBody};

/// Retrieve the state
///
/// Returns the whole state, or only the keys that `key` names.
#[utoipa::path(
    get,
    path = "/v1/threads/current/state",
    params(
        PeekParam,
        ("key" = Option<Vec<String>>, Query, description = "Return only these keys."),
        ("If-None-Match" = Option<String>, Header, description = "Return 304 without a body if this entity tag is still current."),
    ),
    responses(
        (status = 200, description = "The state, with keys in byte order. The response may be compressed if the client sends `Accept-Encoding: gzip`.", body = BTreeMap<String, serde_json::Value>, headers(("etag" = String), ("x-thread-version" = u64))),
        (status = 304, description = "The state still has this entity tag."),
        ReadProblems,
    ),
)]
pub(crate) async fn get_state(
    target: Target,
    conditions: ReadConditions,
    AcceptsGzip(accepts_gzip): AcceptsGzip,
    Query(Keys { keys, reading }): Query<Keys>,
) -> ApiResult {
    let service = target.threads_for_read(&reading);
    let get_stamp = async || service.get_stamp(&target.id).await;
    if let Some(answer) = check_conditions(&conditions, get_stamp).await? {
        return Ok(answer);
    }
    if !keys.is_empty() {
        let found = service.get_values(&target.id, keys).await?;
        return Ok(content(&conditions, found.stamp, found.content)?.finish());
    }
    let Found {
        stamp,
        content: body,
    } = match accepts_gzip {
        true => service.get_state_body(&target.id).await?,
        false => service.get_state(&target.id).await?.map(StateBody::Text),
    };
    if let StateBody::Compressible(text) = &body {
        target.compress(text.clone());
    }
    let body = match body {
        StateBody::Gzip(gzip) if matches!(target.source, Source::Cookie | Source::Provider) => {
            StateBody::Gzip(padded(&gzip))
        }
        body => body,
    };
    Ok(state(&conditions, stamp, body)?.finish())
}

/// Retrieve a value
///
/// Returns the value of a key. With `tail`, `offset` or `limit`, returns part of an array.
#[utoipa::path(
    get,
    path = "/v1/threads/current/state/{key}",
    params(
        KeyParam,
        PeekParam,
        ("tail" = Option<u64>, Query, description = "Return only the newest elements of an array, up to this number. Cannot be combined with `offset` and `limit`."),
        ("offset" = Option<u64>, Query, description = "Return the elements of an array from this index on. Cannot be combined with `tail`."),
        ("limit" = Option<u64>, Query, description = "Maximum number of array elements to return. Cannot be combined with `tail`."),
        ("If-None-Match" = Option<String>, Header, description = "Return 304 without a body if this entity tag is still current."),
    ),
    responses(
        (status = 200, description = "The value, or the requested part, exactly as it was sent.", body = serde_json::Value, headers(
            ("etag" = String), ("x-thread-version" = u64),
            ("x-total-count" = u64, description = "The length of the whole array, if the request asked for a part."),
        )),
        (status = 304, description = "The state still has this entity tag."),
        NotFound,
        Conflict,
        ReadProblems,
    ),
)]
pub(crate) async fn get_value(
    target: Target,
    KeyPath(key): KeyPath,
    conditions: ReadConditions,
    Query(part): Query<Part>,
) -> ApiResult {
    let service = target.threads_for_read(&part.reading);
    let slice = part.slice();
    // a missing value returns 404 regardless of the conditions (RFC 9110, section 13.2.1)
    let find = async || service.find_key(&target.id, &key).await;
    if slice.is_none()
        && let Some(answer) = check_conditions(&conditions, find).await?
    {
        return Ok(answer);
    }
    let found = service.get_value(&target.id, &key, slice).await?;
    let mut answer = content(&conditions, found.stamp, found.content.json)?;
    if let Some(total) = found.content.total {
        answer
            .builder
            .insert_header((TOTAL_COUNT, HeaderValue::from(total)));
    }
    Ok(answer.finish())
}

/// List the keys of the state
#[utoipa::path(
    get,
    path = "/v1/threads/current/keys",
    params(
        PeekParam,
        ("If-None-Match" = Option<String>, Header, description = "Return 304 without a body if this entity tag is still current."),
    ),
    responses(
        (status = 200, description = "The keys, in byte order.", body = Vec<String>, headers(("etag" = String), ("x-thread-version" = u64))),
        (status = 304, description = "The state still has this entity tag."),
        ReadProblems,
    ),
)]
pub(crate) async fn get_keys(
    target: Target,
    conditions: ReadConditions,
    Query(reading): Query<Reading>,
) -> ApiResult {
    let service = target.threads_for_read(&reading);
    let get_stamp = async || service.get_stamp(&target.id).await;
    if let Some(answer) = check_conditions(&conditions, get_stamp).await? {
        return Ok(answer);
    }
    let found = service.get_keys(&target.id).await?;
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

/// Checks the conditions before the content is read, so that 304 and 412 responses cost the same for content of any
/// size.
async fn check_conditions(
    conditions: &ReadConditions,
    stamp: impl AsyncFnOnce() -> Result<Stamp, ServiceError>,
) -> ApiResult<Option<HttpResponse>> {
    if !conditions.has_conditions() {
        return Ok(None);
    }
    let stamp = stamp().await?;
    let is_known = conditions.check(stamp)?;
    Ok(is_known.then(|| not_modified(stamp)))
}
