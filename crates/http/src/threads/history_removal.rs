use actix_web::HttpRequest;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::history_page::HistoryItemObject;
use crate::answer::ApiResult;
use crate::problems::ScopeProblems;
use crate::request::{
    IN_BODY, JsonBody, Repeatable, ThreadWrite, Whole, extract, optional_body_object, path_part,
    read,
};
use crate::schemas::{ItemParam, NewThreadParam};
use crate::scopes::lifecycle::answer;
use crate::scopes::schemas::RepeatHeader;
use threadkeep_domain::scope::{ItemId, Removal, ScopeError, ScopeId, ScopeWritten};

/// Index of the last path part in `/v1/threads/{thread}/history/{item}`. Part 0 is empty.
const ITEM_INDEX: usize = 5;

pub(super) type HistoryWrite<P = ()> = ThreadWrite<P, Repeatable>;

/// The number of items to take.
#[derive(ToSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TakeItems {
    /// The number of items, 1 by default.
    #[schema(nullable = false, value_type = Option<u64>, minimum = 1, maximum = 100)]
    count: Option<Whole<1, 100>>,
}

/// The taken items.
#[derive(Serialize, ToSchema)]
pub(super) struct TakeReceipt<'a> {
    /// The version of the thread's scope after the write.
    version: u64,
    /// The removed items, oldest first.
    items: Vec<HistoryItemObject<'a>>,
}

/// The receipt of a removal.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RemovalReceipt {
    /// The version of the thread's scope after the write.
    version: u64,
    /// True if an item was removed.
    deleted: bool,
}

#[derive(Debug)]
pub(crate) struct ItemPath(ItemId);

/// Take the newest items of the history
///
/// Removes up to `count` items and returns them, oldest first. The response is limited to 1 MiB of items, but contains
/// at least one item unless the history is empty. With an `Idempotency-Key`, a retry returns the same items.
#[utoipa::path(
    post,
    path = "/v1/threads/current/history/take",
    params(RepeatHeader, NewThreadParam),
    request_body(content = Option<TakeItems>),
    responses(
        (status = 200, description = "The items were removed.", body = TakeReceipt<'_>),
        ScopeProblems,
    ),
)]
pub(crate) async fn take_history(write: HistoryWrite, body: JsonBody) -> ApiResult {
    let body = optional_body_object(body.as_str(), IN_BODY)?;
    let TakeItems { count } = read(&body)?;
    let newest = Removal::Newest(count.map_or(1, |Whole(count)| count as usize));
    let written = remove(&write, newest).await?;
    let taken = TakeReceipt {
        version: written.stamp.version,
        items: written.taken.iter().map(HistoryItemObject::of).collect(),
    };
    Ok(answer(&written, &taken))
}

/// Remove an item from the history
///
/// The other items keep their positions. The position of the removed item remains empty.
#[utoipa::path(
    delete,
    path = "/v1/threads/current/history/{item}",
    params(ItemParam, RepeatHeader, NewThreadParam),
    responses(
        (status = 200, description = "The item is no longer in the history.", body = RemovalReceipt),
        ScopeProblems,
    ),
)]
pub(crate) async fn delete_history_item(write: HistoryWrite<ItemPath>) -> ApiResult {
    let ItemPath(id) = &write.path;
    delete(&write, Removal::Item(id)).await
}

/// Clear the history
///
/// Removes all items. Their positions are never reused.
#[utoipa::path(
    delete,
    path = "/v1/threads/current/history",
    params(RepeatHeader, NewThreadParam),
    responses(
        (status = 200, description = "The history is empty.", body = RemovalReceipt),
        ScopeProblems,
    ),
)]
pub(crate) async fn delete_history(write: HistoryWrite) -> ApiResult {
    delete(&write, Removal::All).await
}

async fn delete<P>(write: &HistoryWrite<P>, removal: Removal<'_>) -> ApiResult {
    let written = remove(write, removal).await?;
    let receipt = RemovalReceipt {
        version: written.stamp.version,
        deleted: written.removed > 0,
    };
    Ok(answer(&written, &receipt))
}

async fn remove<P>(write: &HistoryWrite<P>, removal: Removal<'_>) -> ApiResult<ScopeWritten> {
    let scope = ScopeId::Thread(write.target.id);
    let options = write.headers.options(None);
    Ok(write
        .scopes()
        .remove_items(&scope, removal, options)
        .await?)
}

impl ItemPath {
    fn of(request: &HttpRequest) -> ApiResult<Self> {
        let text = path_part(request, ITEM_INDEX).ok_or(ScopeError::ItemId)?;
        Ok(Self(text.parse()?))
    }
}

extract!(ItemPath);
