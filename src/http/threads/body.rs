//! Bodies that make or change a thread.

use std::time::Duration;

use crate::domain::{Json, TTL_MAX, TTL_MIN, keyed_values};
use crate::http::request::shape::{body_members, read_body, read_optional_body};
use crate::service::{NewThread, ThreadPatch};
use crate::web::ApiError;

/// Levels around a value: the body, and the state or metadata.
const AROUND: usize = 2;

/// Reads the body of `POST /v1/threads`: the id as it was given, and the thread.
///
/// # Errors
/// [`ApiError`] of the body.
pub(super) fn read_new_thread(
    body: &str,
    max_keys: u32,
) -> Result<(Option<String>, NewThread), ApiError> {
    let body = read_optional_body(body, AROUND)?;
    let [id, metadata, ttl, state] =
        body_members(&body, ["id", "metadata", "ttl_seconds", "state"])?;
    let id = id
        .map(|id| {
            serde_json::from_str(id)
                .map_err(|_| ApiError::InvalidParameter("`id` has to be a string".into()))
        })
        .transpose()?;
    let state = object("state", state)?.unwrap_or("{}");
    let new = NewThread {
        metadata: read_metadata(metadata)?,
        ttl: read_ttl(ttl)?,
        state: keyed_values(state, max_keys)?,
    };
    Ok((id, new))
}

/// Reads the body of `PATCH /v1/threads/current`.
///
/// # Errors
/// [`ApiError`] of the body.
pub(super) fn read_patch(body: &str) -> Result<ThreadPatch, ApiError> {
    let body = read_body(body, AROUND)?;
    let [metadata, ttl] = body_members(&body, ["metadata", "ttl_seconds"])?;
    Ok(ThreadPatch {
        metadata: read_metadata(metadata)?,
        ttl: read_ttl(ttl)?,
    })
}

/// Metadata is a value as any other: its own braces are a level.
fn read_metadata(text: Option<&str>) -> Result<Option<Json>, ApiError> {
    let object = object("metadata", text)?;
    object
        .map(|text| Json::parse(text).map_err(ApiError::InvalidJson))
        .transpose()
}

fn object<'a>(name: &str, text: Option<&'a str>) -> Result<Option<&'a str>, ApiError> {
    match text {
        Some(text) if !text.starts_with('{') => Err(ApiError::InvalidParameter(format!(
            "`{name}` has to be an object"
        ))),
        text => Ok(text),
    }
}

fn read_ttl(text: Option<&str>) -> Result<Option<Duration>, ApiError> {
    let parse = |text: &str| {
        let ttl = Duration::from_secs(text.parse().ok()?);
        (TTL_MIN..=TTL_MAX).contains(&ttl).then_some(ttl)
    };
    let parsed = text.map(|text| {
        parse(text).ok_or_else(|| {
            let detail = "`ttl_seconds` has to be a whole number from 60 to 31,536,000";
            ApiError::InvalidParameter(detail.into())
        })
    });
    parsed.transpose()
}
