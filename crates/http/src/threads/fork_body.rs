//! The body of a fork.

use serde::Deserialize;
use utoipa::ToSchema;

use crate::answer::ApiResult;
use crate::request::{IN_OBJECT, List, OwnerText, RawObject, Whole, optional_body_object, read};
use threadkeep_domain::{Included, Json};
use threadkeep_service::ForkDraft;
use threadkeep_web::ApiError;

/// A copy to make.
#[derive(ToSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ForkBody<'a> {
    /// The id of the copy. Choosing it needs an API key.
    #[schema(nullable = false, pattern = "^thrd_[a-zA-Z0-9]{27,59}$")]
    id: Option<String>,
    /// The owner of the copy; by default the caller, or else the owner of the thread. Setting it needs an API key.
    #[schema(nullable = false, value_type = Option<String>, min_length = 1, max_length = 256)]
    owner: Option<OwnerText>,
    /// The checkpoint that state and metadata are copied from; by default, the thread has them.
    #[schema(nullable = false, value_type = Option<u32>, minimum = 1)]
    from_checkpoint: Option<Whole<1, { u32::MAX as u64 }>>,
    /// The metadata of the copy, to which the server adds `forked_from`; by default the copied ones.
    #[schema(nullable = false, value_type = Option<Object>)]
    #[serde(borrow)]
    metadata: Option<RawObject<'a>>,
    /// The parts to copy, by default all.
    #[schema(nullable = false, value_type = Option<Vec<ForkPart>>, max_items = 3)]
    include: Option<List<ForkPart, 0, 3>>,
}

/// A part of a thread: `scope` stands for its keys and tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ToSchema, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ForkPart {
    State,
    Scope,
    History,
}

/// Reads the body: the id as it was given, and the copy.
pub(super) fn read_fork(body: &str) -> ApiResult<(Option<String>, ForkDraft)> {
    let body = optional_body_object(body, IN_OBJECT)?;
    let body: ForkBody<'_> = read(&body)?;
    let metadata = body.metadata.map(|RawObject(text)| Json::parse(text));
    let draft = ForkDraft {
        metadata: metadata.transpose().map_err(ApiError::InvalidJson)?,
        owner: body.owner.map(|OwnerText(owner)| owner),
        included: body.include.map_or(Included::ALL, |List(parts)| Included {
            state: parts.contains(&ForkPart::State),
            scope: parts.contains(&ForkPart::Scope),
            history: parts.contains(&ForkPart::History),
        }),
        checkpoint: body.from_checkpoint.map(|Whole(number)| number as u32),
        ..ForkDraft::default()
    };
    Ok((body.id, draft))
}
