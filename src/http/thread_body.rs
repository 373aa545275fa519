//! Bodies that make or change a thread.

use std::time::Duration;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::error::ApiError;
use super::operations::shape;
use crate::domain::{Json, TTL_MAX, TTL_MIN, keyed_values};
use crate::service::{NewThread, ThreadPatch};

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Draft<'a> {
    #[serde(default, borrow, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "present")]
    metadata: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "present")]
    ttl_seconds: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "present")]
    state: Option<&'a RawValue>,
}

/// A member that is there, whatever it is.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Reads the body of `POST /v1/threads`: the id as it was given, and the thread.
///
/// # Errors
/// [`ApiError`] of the body.
pub(super) fn read_new_thread(body: &str) -> Result<(Option<String>, NewThread), ApiError> {
    let draft = read(body)?;
    let id = draft
        .id
        .map(|id| serde_json::from_str(id.get()).map_err(|_| ApiError::InvalidThreadId))
        .transpose()?;
    let state = draft.state.map_or("{}", RawValue::get);
    let new = NewThread {
        metadata: metadata(draft.metadata)?,
        ttl: ttl(draft.ttl_seconds)?,
        state: keyed_values(state).map_err(|fault| within(body, fault.into()))?,
    };
    Ok((id, new))
}

/// Reads the body of `PATCH /v1/threads/current`.
///
/// # Errors
/// [`ApiError`] of the body.
pub(super) fn read_patch(body: &str) -> Result<ThreadPatch, ApiError> {
    let draft = read(body)?;
    if draft.id.is_some() || draft.state.is_some() {
        let detail = "Only `metadata` and `ttl_seconds` can be changed here";
        return Err(ApiError::InvalidParameter(detail.into()));
    }
    Ok(ThreadPatch {
        metadata: metadata(draft.metadata)?,
        ttl: ttl(draft.ttl_seconds)?,
    })
}

fn read(body: &str) -> Result<Draft<'_>, ApiError> {
    if body.is_empty() {
        return Ok(Draft::default());
    }
    serde_json::from_str(body).map_err(|error| shape(body, &error))
}

/// A fault in a part of the body, placed in the whole of it where that is too deep as well.
fn within(body: &str, error: ApiError) -> ApiError {
    match (Json::parse_object(body), error) {
        (Err(whole), ApiError::InvalidJson(_)) => whole.into(),
        (_, error) => error,
    }
}

fn metadata(raw: Option<&RawValue>) -> Result<Option<Json>, ApiError> {
    raw.map(|raw| {
        Json::parse_object(raw.get())
            .map_err(|_| ApiError::InvalidParameter("`metadata` has to be an object".into()))
    })
    .transpose()
}

fn ttl(raw: Option<&RawValue>) -> Result<Option<Duration>, ApiError> {
    let parse = |raw: &RawValue| {
        let ttl = Duration::from_secs(raw.get().parse().ok()?);
        (TTL_MIN..=TTL_MAX).contains(&ttl).then_some(ttl)
    };
    raw.map(|raw| {
        parse(raw).ok_or_else(|| {
            let detail = "`ttl_seconds` has to be a whole number from 60 to 31,536,000";
            ApiError::InvalidParameter(detail.into())
        })
    })
    .transpose()
}
