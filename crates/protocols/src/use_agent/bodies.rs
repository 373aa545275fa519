//! Reads request bodies. Ignores unknown members, because apps can add their own. Null members count as absent.

use std::time::Duration;

use serde::Deserialize;

use super::naming::TITLE_MAX_CHARS;
use threadkeep_domain::Json;
use threadkeep_http::{
    BodyFault, RawJson, RawObject, ThreadTtl, optional_body_object, read, read_value,
};
use threadkeep_web::ApiError;

/// Number of nesting levels that contain a metadata value: the body and the metadata object.
const AROUND: usize = 2;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Members<'a> {
    #[serde(borrow)]
    id: Option<RawJson<'a>>,
    user_id: Option<RawJson<'a>>,
    channel_key: Option<RawJson<'a>>,
    title: Option<RawJson<'a>>,
    metadata: Option<RawJson<'a>>,
    #[serde(rename = "ttl_seconds")]
    ttl_seconds: Option<RawJson<'a>>,
}

/// `{"id"?, "userId"?, "channelKey"?, "title"?, "metadata"?, "ttl_seconds"?}`
#[derive(Debug)]
pub(super) struct NewThreadBody {
    pub(super) id: Option<String>,
    pub(super) user_id: Option<String>,
    pub(super) channel_key: Option<String>,
    pub(super) title: Option<String>,
    pub(super) metadata: Option<Json>,
    pub(super) ttl: Option<Duration>,
}

/// `{"title"?, "metadata"?}`
#[derive(Debug)]
pub(super) struct PatchBody {
    pub(super) title: Option<String>,
    pub(super) metadata: Option<Json>,
}

impl NewThreadBody {
    pub(super) fn read(body: &str) -> Result<Self, ApiError> {
        let body = optional_body_object(body, AROUND)?;
        let members: Members<'_> = read(&body)?;
        let ttl: Option<ThreadTtl> = given("ttl_seconds", members.ttl_seconds)?;
        Ok(Self {
            id: given("id", members.id)?,
            user_id: given("userId", members.user_id)?,
            channel_key: given("channelKey", members.channel_key)?,
            title: title(members.title)?,
            metadata: metadata(members.metadata)?,
            ttl: ttl.map(ThreadTtl::as_duration),
        })
    }
}

impl PatchBody {
    pub(super) fn read(body: &str) -> Result<Self, ApiError> {
        let body = optional_body_object(body, AROUND)?;
        let members: Members<'_> = read(&body)?;
        Ok(Self {
            title: title(members.title)?,
            metadata: metadata(members.metadata)?,
        })
    }
}

fn given<'a, T: Deserialize<'a>>(
    name: &str,
    value: Option<RawJson<'a>>,
) -> Result<Option<T>, ApiError> {
    let value = value.filter(|RawJson(text)| *text != "null");
    let read = value.map(|RawJson(text)| read_value(text).map_err(|fault| fault.in_member(name)));
    Ok(read.transpose()?)
}

fn title(value: Option<RawJson<'_>>) -> Result<Option<String>, ApiError> {
    let title: Option<String> = given("title", value)?;
    match title {
        Some(title) if title.chars().count() > TITLE_MAX_CHARS => {
            let expected = format!("a text of at most {TITLE_MAX_CHARS} characters");
            Err(BodyFault::unwanted(expected).in_member("title").into())
        }
        title => Ok(title),
    }
}

/// Reads metadata. Its own braces count as a level.
fn metadata(value: Option<RawJson<'_>>) -> Result<Option<Json>, ApiError> {
    let metadata: Option<RawObject<'_>> = given("metadata", value)?;
    let parsed = metadata.map(|RawObject(text)| Json::parse(text).map_err(ApiError::InvalidJson));
    parsed.transpose()
}
