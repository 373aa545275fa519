use serde::Deserialize;
use utoipa::ToSchema;

use crate::answer::ApiResult;
use crate::request::{
    IN_OBJECT, NewOwner, OwnerText, RawObject, ThreadTtl, body_object, optional_body_object, read,
};
use threadkeep_domain::{Json, keyed_values};
use threadkeep_service::{NewThread, ThreadPatch};
use threadkeep_web::ApiError;

/// The thread to create.
#[derive(ToSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NewThreadBody<'a> {
    /// The id of the thread. Setting the id requires an API key. By default, the server generates an id.
    #[schema(nullable = false, pattern = "^thrd_[a-zA-Z0-9]{27,59}$")]
    id: Option<String>,
    /// The metadata: up to 16 KiB of compact JSON.
    #[schema(nullable = false, value_type = Option<Object>)]
    #[serde(borrow)]
    metadata: Option<RawObject<'a>>,
    /// Lifetime in seconds after the last use. By default, the server's setting applies.
    #[schema(nullable = false, value_type = Option<u64>, minimum = 60, maximum = 946_080_000)]
    ttl_seconds: Option<ThreadTtl>,
    /// The owner: 1 to 256 bytes without control characters. Setting the owner requires an API key.
    #[schema(nullable = false, value_type = Option<String>, min_length = 1, max_length = 256)]
    owner: Option<OwnerText>,
    /// The initial state.
    #[schema(nullable = false, value_type = Option<BTreeMap<String, Value>>)]
    state: Option<RawObject<'a>>,
}

/// The changes to a thread.
#[derive(ToSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ThreadPatchBody<'a> {
    /// A merge patch (RFC 7396) for the metadata. The result is limited to 16 KiB of compact JSON.
    #[schema(nullable = false, value_type = Option<Object>)]
    #[serde(borrow)]
    metadata: Option<RawObject<'a>>,
    /// The new lifetime in seconds after the last use. If absent, an existing thread keeps its lifetime.
    #[schema(nullable = false, value_type = Option<u64>, minimum = 60, maximum = 946_080_000)]
    ttl_seconds: Option<ThreadTtl>,
    /// The new owner, or null to remove the owner. Changing the owner requires an API key.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 256)]
    owner: Option<NewOwner>,
}

pub(super) fn read_new_thread(body: &str, max_keys: u32) -> ApiResult<(Option<String>, NewThread)> {
    let body = optional_body_object(body, IN_OBJECT)?;
    let body: NewThreadBody<'_> = read(&body)?;
    let state = body.state.map_or("{}", |RawObject(state)| state);
    let new = NewThread {
        metadata: read_metadata(body.metadata)?,
        ttl: body.ttl_seconds.map(ThreadTtl::as_duration),
        owner: body.owner.map(|OwnerText(owner)| owner),
        state: keyed_values(state, max_keys)?,
    };
    Ok((body.id, new))
}

pub(super) fn read_patch(body: &str) -> ApiResult<ThreadPatch> {
    let body = body_object(body, IN_OBJECT)?;
    let body: ThreadPatchBody<'_> = read(&body)?;
    Ok(ThreadPatch {
        metadata: read_metadata(body.metadata)?,
        ttl: body.ttl_seconds.map(ThreadTtl::as_duration),
        owner: body.owner.map(|NewOwner(owner)| owner),
    })
}

/// Parses metadata. The braces of the metadata count as a nesting level.
fn read_metadata(object: Option<RawObject<'_>>) -> ApiResult<Option<Json>> {
    let parsed = object.map(|RawObject(text)| Json::parse(text).map_err(ApiError::InvalidJson));
    parsed.transpose()
}
