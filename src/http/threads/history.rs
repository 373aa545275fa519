//! Histories: lists of threads that are only added to.

use actix_web::{HttpRequest, HttpResponse};
use serde::Serialize;
use utoipa::ToSchema;

use super::archives::id_of;
use super::history_body::{NewItems, read_items};
use super::history_page::{HistoryObject, answer_page};
use super::history_query::{FinalPart, HistoryPart};
use crate::domain::scope::ScopeId;
use crate::http::answer::negotiation::accepts_json;
use crate::http::request::back_end::BackEnd;
use crate::http::request::conditions::Repeatable;
use crate::http::request::json_body::JsonBody;
use crate::http::request::query::{Nothing, Query};
use crate::http::request::target::Target;
use crate::http::schemas::{ArchiveProblems, Problem, ReadProblems};
use crate::http::scopes::lifecycle::answer;
use crate::http::scopes::schemas::{RepeatHeader, ScopeProblems};
use crate::web::ApiError;

/// What was added.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct AppendReceipt {
    /// The version of the thread's scope afterwards, which is not that of its state.
    version: u64,
    /// In the order in which they were sent.
    items: Vec<AppendedItem>,
}

/// An item that is there now.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct AppendedItem {
    id: String,
    /// Its place: from 1.
    seq: u64,
    /// Whether it was there already.
    repeated: bool,
}

/// Adds to the history
///
/// All items or none. One whose id is there with the same value is not added again, so that a
/// repeat is harmless. Makes the thread if it does not exist.
#[utoipa::path(
    post,
    path = "/v1/threads/current/history",
    tag = "history",
    params(RepeatHeader),
    request_body(content = NewItems<'_>),
    responses(
        (status = 200, description = "Done, and in the store.", body = AppendReceipt),
        ScopeProblems,
    ),
)]
pub(crate) async fn append_history(
    target: Target,
    repeatable: Repeatable,
    _: Query<Nothing>,
    body: JsonBody,
) -> Result<HttpResponse, ApiError> {
    let items = read_items(body.as_str())?;
    let scope = ScopeId::Thread(target.id);
    let options = repeatable.options(None);
    let written = target.api.scopes.append(&scope, &items, options).await?;
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

/// A part of the history
///
/// From either end; a page that would have more than 2 MiB is shorter than its limit.
#[utoipa::path(
    get,
    path = "/v1/threads/current/history",
    tag = "history",
    params(
        ("after" = Option<u64>, Query, description = "Items after this place, the oldest first; from the beginning when absent."),
        ("before" = Option<u64>, Query, description = "Items before this place, the newest first. Does not go with `after`."),
        ("order" = Option<String>, Query, pattern = "^(asc|desc)$", description = "`desc` without `before`: from the end."),
        ("limit" = Option<u64>, Query, minimum = 1, maximum = 1000, description = "At most this many; 100 when absent."),
    ),
    responses(
        (status = 200, description = "The items, exactly as they were sent.", body = HistoryObject<'_>),
        ReadProblems,
    ),
)]
pub(crate) async fn get_history(
    target: Target,
    Query(part): Query<HistoryPart>,
) -> Result<HttpResponse, ApiError> {
    let scope = ScopeId::Thread(target.id);
    let scopes = &target.api.scopes;
    let page = scopes.history(&scope, part.from(), part.limit()).await?;
    let limit_bytes = scopes.policy(&scope).history.max_bytes;
    Ok(answer_page(page, part.from(), Some(limit_bytes)))
}

/// A part of the history that a thread left
///
/// Of its last life that ended, unless another one is named.
#[utoipa::path(
    get,
    path = "/v1/archives/{id}/history",
    tag = "archives",
    params(
        ("id" = String, Path, pattern = "^thrd_[a-zA-Z0-9]{27,59}$", description = "The plain thread id."),
        ("life" = Option<String>, Query, pattern = "^[0-9a-f]{16}$", description = "Which life of it, as in an event."),
        ("after" = Option<u64>, Query, description = "Items after this place, the oldest first; from the beginning when absent."),
        ("before" = Option<u64>, Query, description = "Items before this place, the newest first. Does not go with `after`."),
        ("order" = Option<String>, Query, pattern = "^(asc|desc)$", description = "`desc` without `before`: from the end."),
        ("limit" = Option<u64>, Query, minimum = 1, maximum = 1000, description = "At most this many; 100 when absent."),
    ),
    responses(
        (status = 200, description = "The items, exactly as they were sent.", body = HistoryObject<'_>),
        (status = 404, description = "There is no such archive, or not any more.", body = Problem, content_type = "application/problem+json"),
        ArchiveProblems,
    ),
    security(("api_key" = [])),
)]
pub(crate) async fn get_final_history(
    request: HttpRequest,
    BackEnd { api }: BackEnd,
    Query(FinalPart { life, part }): Query<FinalPart>,
) -> Result<HttpResponse, ApiError> {
    accepts_json(&request)?;
    let id = id_of(&request)?;
    let from = part.from();
    let page = api.scopes.final_history(&id, life.0, from, part.limit());
    Ok(answer_page(page.await?, from, None))
}
