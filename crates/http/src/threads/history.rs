use serde::Serialize;
use utoipa::ToSchema;

use super::archives::ArchivePath;
use super::history_body::{NewItems, read_items};
use super::history_page::{HistoryObject, answer_page};
use super::history_query::{FinalPart, HistoryPart};
use super::history_removal::HistoryWrite;
use crate::answer::ApiResult;
use crate::problems::{BackEndProblems, NotFound, ReadProblems, ScopeProblems};
use crate::request::{BackEnd, JsonBody, Query, Target};
use crate::schemas::{HistoryPageParams, NewThreadParam, PeekParam};
use crate::scopes::lifecycle::answer;
use crate::scopes::schemas::RepeatHeader;
use threadkeep_domain::scope::ScopeId;
use threadkeep_store::{HistoryPage, Originals};

/// The receipt of an append.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct AppendReceipt {
    /// The version of the thread's scope after the write. The thread's state has a separate version.
    version: u64,
    /// The items, in the order of the request.
    items: Vec<AppendedItem>,
}

/// An appended item.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct AppendedItem {
    id: String,
    /// The one-based position of the item in the history.
    seq: u64,
    /// True if the history already contained the item.
    repeated: bool,
}

/// Append items to the history
///
/// Appends all items or none. Items whose id and value are already in the history are not appended again, which makes
/// retries safe. Creates the thread if it does not exist.
#[utoipa::path(
    post,
    path = "/v1/threads/current/history",
    params(RepeatHeader, NewThreadParam),
    request_body(content = NewItems<'_>),
    responses(
        (status = 200, description = "The items are in the history.", body = AppendReceipt),
        ScopeProblems,
    ),
)]
pub(crate) async fn append_history(write: HistoryWrite, body: JsonBody) -> ApiResult {
    let items = read_items(body.as_str())?;
    let scope = ScopeId::Thread(write.target.id);
    let options = write.headers.options(None);
    let written = write.scopes().append(&scope, &items, options).await?;
    let appended = items.iter().zip(&written.appended);
    let receipt = AppendReceipt {
        version: written.stamp.version,
        items: appended
            .map(|(item, appended)| AppendedItem {
                id: item.id.to_string(),
                seq: appended.seq,
                repeated: appended.repeated,
            })
            .collect(),
    };
    Ok(answer(&written, &receipt))
}

/// List history items
///
/// Returns items from the beginning or from the end of the history. A page is limited to 2 MiB and may contain fewer
/// than `limit` items.
#[utoipa::path(
    get,
    path = "/v1/threads/current/history",
    params(
        PeekParam,
        HistoryPageParams,
        ("tail" = Option<u64>, Query, minimum = 0, maximum = 1000, description = "Return this number of the newest items, oldest first. The header `x-total-count` contains the length of the history. Cannot be combined with `after`, `before`, `order` and `limit`."),
        ("originals" = Option<bool>, Query, description = "Whether to return the items that a compaction replaced, instead of their summary, until they expire. Cannot be combined with `tail`."),
    ),
    responses(
        (status = 200, description = "A page of items, exactly as they were sent.", body = HistoryObject<'_>),
        ReadProblems,
    ),
)]
pub(crate) async fn get_history(target: Target, Query(part): Query<HistoryPart>) -> ApiResult {
    let scope = ScopeId::Thread(target.id);
    let scopes = target.scopes_for_read(&part.reading);
    let (from, read_count) = (part.from(), part.read_count());
    let page = match part.has_originals() {
        true => {
            let page = scopes.originals(&scope, Originals::All, from, read_count);
            page.await?.unwrap_or(HistoryPage::EMPTY)
        }
        false => scopes.history(&scope, from, read_count).await?,
    };
    let limit_bytes = scopes.policy(&scope).history.max_bytes;
    Ok(answer_page(page, &part, Some(limit_bytes)))
}

/// List history items of an ended thread
///
/// Returns the history of the thread's last life, or of the life that is given by `life`.
#[utoipa::path(
    get,
    path = "/v1/archives/{id}/history",
    params(
        ("id" = String, Path, pattern = "^thrd_[a-zA-Z0-9]{27,59}$", description = "The thread's id, without its signature."),
        ("life" = Option<String>, Query, pattern = "^[0-9a-f]{16}$", description = "The life of the thread, as in its events. By default, the life that ended last."),
        HistoryPageParams,
        ("tail" = Option<u64>, Query, minimum = 0, maximum = 1000, description = "Return this number of the newest items, oldest first. The header `x-total-count` contains the length of the history. Cannot be combined with `after`, `before`, `order` and `limit`."),
    ),
    responses(
        (status = 200, description = "A page of items, exactly as they were sent.", body = HistoryObject<'_>),
        NotFound,
        BackEndProblems,
    ),
)]
pub(crate) async fn get_final_history(
    BackEnd { api, .. }: BackEnd,
    Query(FinalPart { life, part }): Query<FinalPart>,
    ArchivePath(id): ArchivePath,
) -> ApiResult {
    let page = api
        .scopes
        .final_history(&id, life.0, part.from(), part.read_count());
    Ok(answer_page(page.await?, &part, None))
}
