use actix_web::http::StatusCode;
use actix_web::{HttpMessage, HttpRequest, HttpResponse};

use super::archive_object::{ArchiveList, ArchiveObject, ArchiveWithState};
use super::archive_query::{ArchiveListing, LifeQuery};
use super::object::ThreadObject;
use crate::answer::{ApiResult, json, json_text, json_with, tagged};
use crate::problems::{BackEndProblems, Conflict, NotFound};
use crate::request::{About, BackEnd, Query, cursor, extract};
use threadkeep_domain::ThreadId;
use threadkeep_identity::THREAD_ID;
use threadkeep_store::{Archive, ArchivePosition};
use threadkeep_web::ApiError;

#[derive(Debug)]
pub(crate) struct ArchivePath(pub(super) ThreadId);

/// List archives
///
/// Returns archives of ended threads, oldest first.
#[utoipa::path(
    get,
    path = "/v1/archives",
    params(
        ("since" = Option<String>, Query, format = DateTime, description = "Return only archives created at or after this time (RFC 3339)."),
        ("cursor" = Option<String>, Query, description = "The `next_cursor` of the previous page."),
        ("limit" = Option<u64>, Query, minimum = 1, maximum = 1000, description = "Maximum number of archives per page, 100 by default."),
    ),
    responses(
        (status = 200, description = "A page of archives.", body = ArchiveList),
        BackEndProblems,
    ),
)]
pub(crate) async fn list_archives(
    BackEnd { api, .. }: BackEnd,
    Query(listing): Query<ArchiveListing>,
) -> ApiResult {
    let ring = api.identity.ring();
    let since = ArchivePosition {
        archived_ms: listing.since_ms.unwrap_or(0),
        archive: None,
    };
    let after = cursor::after(ring, b"", listing.page.cursor.as_deref())?;
    let after = after.map_or(since, |after: ArchivePosition| after.max(since));
    let page = api.archives.list(&after, listing.page.limit()).await?;
    let object = |head| ArchiveObject::of(head, api.events.public_url());
    let list = ArchiveList {
        archives: page.heads.iter().map(object).collect(),
        next_cursor: cursor::next(ring, b"", page.next),
    };
    Ok(json(HttpResponse::Ok(), &list))
}

/// Retrieve an archive
///
/// Returns the archive of the thread's last life, or of the life that is given by `life`.
#[utoipa::path(
    get,
    path = "/v1/archives/{id}",
    params(
        ("id" = String, Path, pattern = "^thrd_[a-zA-Z0-9]{27,59}$", description = "The thread's id, without its signature."),
        ("life" = Option<String>, Query, pattern = "^[0-9a-f]{16}$", description = "The life of the thread, as in its events. By default, the life that ended last."),
    ),
    responses(
        (status = 200, description = "The archive with the final state, exactly as it was.", body = ArchiveWithState),
        NotFound,
        BackEndProblems,
    ),
)]
pub(crate) async fn get_archive(
    BackEnd { api, .. }: BackEnd,
    Query(LifeQuery(life)): Query<LifeQuery>,
    ArchivePath(id): ArchivePath,
) -> ApiResult {
    let Archive { head, state, .. } = api.archives.get(&id, life).await?;
    let object = ArchiveObject::of(&head, api.events.public_url());
    let body = json_with(&object, &[("state", &state)]);
    Ok(json_text(HttpResponse::Ok(), body))
}

/// Restore a thread
///
/// Restores state, metadata and lifetime, and increases the version by 1. Deletes the archive.
#[utoipa::path(
    post,
    path = "/v1/archives/{id}/restore",
    params(
        ("id" = String, Path, pattern = "^thrd_[a-zA-Z0-9]{27,59}$", description = "The thread's id, without its signature."),
        ("life" = Option<String>, Query, pattern = "^[0-9a-f]{16}$", description = "The life of the thread, as in its events. By default, the life that ended last."),
    ),
    responses(
        (status = 200, description = "The restored thread.", body = ThreadObject, headers(("etag" = String), ("x-thread-version" = u64), ("x-thread-id" = String, description = "The signed id of the thread."))),
        NotFound,
        Conflict,
        BackEndProblems,
    ),
)]
pub(crate) async fn restore_archive(
    request: HttpRequest,
    BackEnd { api, .. }: BackEnd,
    Query(LifeQuery(life)): Query<LifeQuery>,
    ArchivePath(id): ArchivePath,
) -> ApiResult {
    request.extensions_mut().insert(About(id));
    let thread = api.archives.restore(&id, life).await?;
    let signed_id = api.identity.signed_id(&id);
    let object = ThreadObject::of(&id, &thread, api.service.policy()).signed(&signed_id);
    let mut response = tagged(StatusCode::OK, thread.stamp);
    let body = object.to_json();
    response.insert_header((THREAD_ID, signed_id));
    Ok(json_text(response, body))
}

impl ArchivePath {
    fn of(request: &HttpRequest) -> ApiResult<Self> {
        let id = request.match_info().get("id").unwrap_or_default();
        id.parse().map(Self).map_err(|_| ApiError::InvalidThreadId)
    }
}

extract!(ArchivePath);
