//! Handlers of threads as a whole: forks, exports and imports.

use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_TYPE, IF_MATCH};
use actix_web::{HttpMessage, HttpRequest, HttpResponse, web};

use super::document;
use super::document::ThreadDocument;
use super::fork_body::{ForkBody, read_fork};
use super::image_query::OfExisting;
use super::lifecycle::created;
use super::object::ThreadObject;
use crate::Api;
use crate::answer::{ApiResult, json};
use crate::problems::{BackEndProblems, BodyProblems, ImportProblems, NotFound, WriteProblems};
use crate::request::{
    About, BackEnd, JsonBody, Nothing, OfNew, Query, Target, ThreadMaker, WriteConditions, invalid,
    key_for,
};
use crate::schemas::{OfNewParam, WriteHeaders};
use threadkeep_domain::{Access, Refusal};
use threadkeep_identity::Caller;
use threadkeep_service::{ForkDraft, ServiceError};
use threadkeep_store::Imported;

/// Fork a thread
///
/// Creates a new thread with a copy of this one as it was at one moment. Its metadata says in `forked_from` which thread and
/// version it is a copy of. With `from_checkpoint`, state and metadata are those of the checkpoint, and the version is the
/// one that was saved; keys, tasks and history are those of the thread. Turns, checkpoints and remembered answers are not
/// copied. `If-Match` is about the copied thread. The answer names the new thread, in `x-thread-id` as well, and sets no cookie.
#[utoipa::path(
    post,
    path = "/v1/threads/current/fork",
    params(WriteHeaders, OfNewParam),
    request_body(content = Option<ForkBody<'_>>),
    responses(
        (status = 201, description = "The new thread.", body = ThreadObject, headers(("etag" = String), ("x-thread-version" = u64), ("x-thread-id" = String, description = "The signed id."), ("location" = String))),
        NotFound,
        WriteProblems,
    ),
)]
pub(crate) async fn fork_thread(
    request: HttpRequest,
    target: Target,
    api: web::Data<Api>,
    conditions: WriteConditions,
    Query(of_new): Query<OfNew>,
    body: JsonBody,
) -> ApiResult {
    let maker = ThreadMaker::of(&request, &api)?;
    let (id, draft) = read_fork(body.as_str())?;
    if draft.owner.is_some() {
        key_for(&request, &api)?;
    }
    let id = match id {
        Some(id) => maker.chosen_id(&id)?,
        None => maker.id_near(conditions.key.as_ref(), &target.id)?,
    };
    let draft = ForkDraft {
        ttl: of_new.ttl,
        ..draft
    };
    let threads = target.threads();
    let written = api
        .images
        .fork(&threads, &target.id, &id, &draft, conditions.options)
        .await?;
    // the answer is about the new thread
    request.extensions_mut().remove::<Caller>();
    request.extensions_mut().insert(About(id));
    Ok(created(&api, &id, &written))
}

/// Export a thread
///
/// Returns one document with everything in the thread, values byte for byte as they were sent. Does not extend the life of
/// the thread.
#[utoipa::path(
    get,
    path = "/v1/threads/current/export",
    responses(
        (status = 200, description = "The thread as one document, which the import accepts.", body = ThreadDocument<'_>),
        NotFound,
        BackEndProblems,
    ),
)]
pub(crate) async fn export_thread(
    request: HttpRequest,
    target: Target,
    api: web::Data<Api>,
    _: Query<Nothing>,
) -> ApiResult {
    target.back_end(&request)?;
    let image = api.images.export(&target.id, Access::All).await?;
    let image = image.ok_or(ServiceError::Refused(Refusal::ThreadNotFound))?;
    let document = document::write(&target.id, &image, api.service.policy());
    let mut response = HttpResponse::Ok();
    response.insert_header((CONTENT_TYPE, "application/json"));
    Ok(response.body(document))
}

/// Import a thread
///
/// Makes a thread of an exported document, in one step. Id, version, times, owner and values are those of the document; the
/// thread begins a new life, so tags from before do not match, and it expires after its TTL. The limits of this service
/// apply. The body may be as large as a thread can be.
#[utoipa::path(
    post,
    path = "/v1/threads/import",
    params(
        ("if_exists" = Option<String>, Query, pattern = "^(replace|skip)$", description = "If the thread exists: `replace` ends it, as DELETE does but without a tombstone, and `skip` leaves it as it is. By default the import is rejected."),
        ("Idempotency-Key" = Option<String>, Header, max_length = 128, pattern = "^[!-~]+$", description = "Makes a retry safe: a repeat with the same body gets the first answer and changes nothing."),
        ("x-turn-token" = Option<String>, Header, description = "The turn of a thread that is replaced."),
    ),
    request_body(content = ThreadDocument<'_>),
    responses(
        (status = 201, description = "The new thread.", body = ThreadObject, headers(("etag" = String), ("x-thread-version" = u64), ("x-thread-id" = String, description = "The signed id."), ("location" = String))),
        (status = 200, description = "The thread existed, and was left as it is.", body = ThreadObject),
        ImportProblems,
        BodyProblems,
        BackEndProblems,
    ),
)]
pub(crate) async fn import_thread(
    request: HttpRequest,
    BackEnd { api, .. }: BackEnd,
    conditions: WriteConditions,
    Query(OfExisting(if_exists)): Query<OfExisting>,
    body: JsonBody,
) -> ApiResult {
    if request.headers().contains_key(IF_MATCH) {
        return Err(invalid(
            "If-Match is not supported when you import a thread",
        ));
    }
    let (id, image) = document::parse(body.as_str(), api.service.policy().max_keys)?;
    request.extensions_mut().insert(About(id));
    let if_exists = if_exists.unwrap_or_default();
    let imported = api
        .images
        .import(&api.service, &id, &image, if_exists, conditions.options)
        .await?;
    Ok(match imported {
        Imported::Made(written) => created(&api, &id, &written),
        Imported::Skipped(thread) => {
            let object = ThreadObject::of(&id, &thread, api.service.policy());
            json(HttpResponse::build(StatusCode::OK), &object)
        }
    })
}
