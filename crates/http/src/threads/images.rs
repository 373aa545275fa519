use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_TYPE, IF_MATCH};
use actix_web::{HttpMessage, HttpRequest, HttpResponse, web};

use super::document;
use super::document::ThreadDocument;
use super::fork_body::{ForkBody, read_fork};
use super::image_query::ImportQuery;
use super::lifecycle::created;
use super::object::ThreadObject;
use crate::Api;
use crate::answer::{ApiResult, json};
use crate::problems::{BackEndProblems, BodyProblems, ImportProblems, NotFound, WriteProblems};
use crate::request::{
    About, BackEnd, JsonBody, NewThreadQuery, Nothing, Query, Target, ThreadMaker, WriteConditions,
    invalid, key_for,
};
use crate::schemas::{NewThreadParam, WriteHeaders};
use threadkeep_domain::{Access, Refusal};
use threadkeep_identity::Caller;
use threadkeep_service::{ForkDraft, ServiceError};
use threadkeep_store::Imported;

/// Fork a thread
///
/// Creates a new thread as an atomic copy of this thread. `forked_from` in the copy's metadata names the original
/// thread and its version. With `from_checkpoint`, state, metadata and version come from the checkpoint. Keys, tasks
/// and history always come from the thread. Turns, checkpoints and idempotency keys are not copied.
///
/// `If-Match` applies to the original thread. The response names the new thread, including in `x-thread-id`, and sets
/// no cookie.
#[utoipa::path(
    post,
    path = "/v1/threads/current/fork",
    params(WriteHeaders, NewThreadParam),
    request_body(content = Option<ForkBody<'_>>),
    responses(
        (status = 201, description = "The new thread.", body = ThreadObject, headers(("etag" = String), ("x-thread-version" = u64), ("x-thread-id" = String, description = "The signed id of the thread."), ("location" = String))),
        NotFound,
        WriteProblems,
    ),
)]
pub(crate) async fn fork_thread(
    request: HttpRequest,
    target: Target,
    api: web::Data<Api>,
    conditions: WriteConditions,
    Query(new_thread): Query<NewThreadQuery>,
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
        ttl: new_thread.ttl,
        ..draft
    };
    let threads = target.threads();
    let written = api
        .images
        .fork(&threads, &target.id, &id, &draft, conditions.options)
        .await?;
    // the response must name the new thread instead of the caller's own thread
    request.extensions_mut().remove::<Caller>();
    request.extensions_mut().insert(About(id));
    Ok(created(&api, &id, &written))
}

/// Export a thread
///
/// Returns the complete thread as one document. Values are returned byte for byte as they were sent. Exporting a thread
/// does not extend its lifetime.
#[utoipa::path(
    get,
    path = "/v1/threads/current/export",
    responses(
        (status = 200, description = "The thread document, which you can import.", body = ThreadDocument<'_>),
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
/// Atomically creates a thread from an exported document. Id, version, times, owner and values are taken from the
/// document. The thread starts a new life, so older entity tags do not match. The thread expires after its TTL. The
/// import fails if the thread exceeds this server's limits. The body may be as large as the largest possible thread.
#[utoipa::path(
    post,
    path = "/v1/threads/import",
    params(
        ("if_exists" = Option<String>, Query, pattern = "^(replace|skip)$", description = "How to handle a thread that already exists. `replace` ends the existing thread, as DELETE does, but without a tombstone. `skip` leaves the existing thread unchanged. By default, the import fails."),
        ("Idempotency-Key" = Option<String>, Header, max_length = 128, pattern = "^[!-~]+$", description = "Makes retries safe. A retry with the same body returns the first response and changes nothing."),
        ("x-turn-token" = Option<String>, Header, description = "The turn token of the thread to replace."),
    ),
    request_body(content = ThreadDocument<'_>),
    responses(
        (status = 201, description = "The new thread.", body = ThreadObject, headers(("etag" = String), ("x-thread-version" = u64), ("x-thread-id" = String, description = "The signed id of the thread."), ("location" = String))),
        (status = 200, description = "The thread already existed and was left unchanged.", body = ThreadObject),
        ImportProblems,
        BodyProblems,
        BackEndProblems,
    ),
)]
pub(crate) async fn import_thread(
    request: HttpRequest,
    BackEnd { api, .. }: BackEnd,
    conditions: WriteConditions,
    Query(ImportQuery(if_exists)): Query<ImportQuery>,
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
