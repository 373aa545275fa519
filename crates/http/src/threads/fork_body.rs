use serde::Deserialize;
use utoipa::ToSchema;

use crate::answer::ApiResult;
use crate::request::{IN_OBJECT, List, OwnerText, RawObject, Whole, optional_body_object, read};
use threadkeep_domain::{Included, Json};
use threadkeep_service::ForkDraft;
use threadkeep_web::ApiError;

/// The copy to create.
#[derive(ToSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ForkBody<'a> {
    /// The id of the copy. Setting the id requires an API key. By default, the server generates an id.
    #[schema(nullable = false, pattern = "^thrd_[a-zA-Z0-9]{27,59}$")]
    id: Option<String>,
    /// The owner of the copy. Setting the owner requires an API key. By default, the copy gets the caller's owner, or
    /// the owner of the original thread if the caller does not have an owner.
    #[schema(nullable = false, value_type = Option<String>, min_length = 1, max_length = 256)]
    owner: Option<OwnerText>,
    /// The checkpoint to copy state and metadata from. By default, they are copied from the thread.
    #[schema(nullable = false, value_type = Option<u32>, minimum = 1)]
    from_checkpoint: Option<Whole<1, { u32::MAX as u64 }>>,
    /// The metadata of the copy. Defaults to the copied metadata. The server adds the member `forked_from`.
    #[schema(nullable = false, value_type = Option<Object>)]
    #[serde(borrow)]
    metadata: Option<RawObject<'a>>,
    /// The parts to copy. By default, all parts are copied.
    #[schema(nullable = false, value_type = Option<Vec<ForkPart>>, max_items = 3)]
    include: Option<List<ForkPart, 0, 3>>,
}

/// A part of a thread. `scope` stands for keys and tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ToSchema, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ForkPart {
    State,
    Scope,
    History,
}

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
