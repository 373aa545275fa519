//! Threads as a whole.

use actix_web::http::StatusCode;
use actix_web::http::header::LOCATION;
use actix_web::{HttpMessage, HttpRequest, HttpResponse, web};

use super::Api;
use super::conditions::{ReadConditions, WriteConditions};
use super::error::ApiError;
use super::json_body::JsonBody;
use super::negotiation::accepts_json;
use super::query::{Nothing, Query};
use super::receipt::{content, mark_replay, respond};
use super::schemas::{NewThreadBody, ReadProblems, ThreadPatchBody, WriteHeaders, WriteProblems};
use super::target::Target;
use super::thread_body::{read_new_thread, read_patch};
use super::thread_object::ThreadObject;
use crate::domain::{Stamp, ThreadId, Written};
use crate::identity::{Caller, Source, THREAD_ID};

/// Makes a thread
///
/// To choose its id needs an api key.
#[utoipa::path(
    post,
    path = "/v1/threads",
    tag = "threads",
    params(("Idempotency-Key" = Option<String>, Header, max_length = 128, pattern = "^[!-~]+$", description = "A repeat with the same body gets the first answer. The key counts within the api key or the thread that asks, and needs one.")),
    request_body(content = Option<NewThreadBody>),
    responses(
        (status = 201, description = "Made.", body = ThreadObject, headers(("etag" = String), ("x-thread-id" = String, description = "The signed id."), ("location" = String))),
        WriteProblems,
    ),
)]
pub(super) async fn create_thread(
    request: HttpRequest,
    api: web::Data<Api>,
    conditions: WriteConditions,
    _: Query<Nothing>,
    body: JsonBody,
) -> Result<HttpResponse, ApiError> {
    accepts_json(&request)?;
    let (id, new) = read_new_thread(body.as_str(), api.service.policy().max_keys)?;
    let id = match id {
        Some(id) => chosen_id(&request, &api, &id)?,
        None => made_id(&request, &api, &conditions)?,
    };
    let written = api.service.create(&id, new, conditions.options).await?;
    let signed_id = api.identity.signed_id(&id);
    let object = object(&api, &id, &written).signed(signed_id.to_str().unwrap_or_default());
    let mut response = respond(StatusCode::CREATED, &written, object.to_json());
    let headers = response.headers_mut();
    headers.insert(THREAD_ID, signed_id);
    if let Ok(location) = format!("/v1/threads/{id}").try_into() {
        headers.insert(LOCATION, location);
    }
    Ok(response)
}

/// The thread without its state
#[utoipa::path(
    get,
    path = "/v1/threads/current",
    tag = "threads",
    params(("If-None-Match" = Option<String>, Header, description = "A tag that is known already.")),
    responses(
        (status = 200, description = "The thread, which need not exist.", body = ThreadObject, headers(("etag" = String))),
        (status = 304, description = "The tag is that of the thread."),
        ReadProblems,
    ),
)]
pub(super) async fn get_thread(
    target: Target,
    conditions: ReadConditions,
    _: Query<Nothing>,
) -> Result<HttpResponse, ApiError> {
    let service = &target.api.service;
    let thread = service.get_thread(&target.id).await?;
    let (stamp, object) = match &thread {
        Some(thread) => (
            thread.stamp,
            ThreadObject::of(&target.id, thread, service.policy()),
        ),
        None => (
            Stamp::default(),
            ThreadObject::absent(&target.id, service.policy()),
        ),
    };
    Ok(content(&conditions, stamp, object.to_json())?.finish())
}

/// Changes metadata or time to live
#[utoipa::path(
    patch,
    path = "/v1/threads/current",
    tag = "threads",
    params(WriteHeaders),
    request_body(content = ThreadPatchBody),
    responses(
        (status = 200, description = "Changed, or made.", body = ThreadObject, headers(("etag" = String))),
        WriteProblems,
    ),
)]
pub(super) async fn patch_thread(
    target: Target,
    conditions: WriteConditions,
    _: Query<Nothing>,
    body: JsonBody,
) -> Result<HttpResponse, ApiError> {
    let patch = read_patch(body.as_str())?;
    let service = &target.api.service;
    let written = service
        .patch_thread(&target.id, patch, conditions.options)
        .await?;
    let object = object(&target.api, &target.id, &written);
    Ok(respond(StatusCode::OK, &written, object.to_json()))
}

/// Destroys the thread
///
/// The answer carries a fresh signed id.
#[utoipa::path(
    delete,
    path = "/v1/threads/current",
    tag = "threads",
    params(WriteHeaders),
    responses(
        (status = 204, description = "Destroyed, or was not there. For a while writes to the old id get 410."),
        WriteProblems,
    ),
)]
pub(super) async fn delete_thread(
    request: HttpRequest,
    target: Target,
    conditions: WriteConditions,
    _: Query<Nothing>,
) -> Result<HttpResponse, ApiError> {
    let service = &target.api.service;
    let destroyed = service.destroy(&target.id, conditions.options).await?;
    if target.source != Source::Provider {
        // what the caller does next is a new thread
        let fresh = Caller::of(ThreadId::random(), Source::Minted);
        request.extensions_mut().insert(fresh);
    }
    let mut builder = HttpResponse::NoContent();
    mark_replay(&mut builder, destroyed.replayed);
    Ok(builder.finish())
}

fn object(api: &Api, id: &ThreadId, written: &Written) -> ThreadObject {
    let policy = api.service.policy();
    match &written.thread {
        Some(thread) => ThreadObject::of(id, thread, policy),
        None => ThreadObject::absent(id, policy),
    }
}

/// An id that the client has chosen: only back ends may.
fn chosen_id(request: &HttpRequest, api: &Api, id: &str) -> Result<ThreadId, ApiError> {
    if api.api_keys.verify(request.headers()).is_none() {
        return Err(ApiError::ApiKeyRequired);
    }
    id.parse().map_err(|_| ApiError::InvalidThreadId)
}

/// A random id; with an idempotency key one that a repeat arrives at too, since that is remembered
/// with the thread. The key counts within who is asking, so somebody has to be: two strangers who
/// use the same key must not get the same thread.
fn made_id(
    request: &HttpRequest,
    api: &Api,
    conditions: &WriteConditions,
) -> Result<ThreadId, ApiError> {
    let Some(key) = &conditions.key else {
        return Ok(ThreadId::random());
    };
    let asking = match api.api_keys.verify(request.headers()) {
        Some(name) => format!("key {name}"),
        None => {
            let caller = api.identity.known_caller(request);
            format!("thread {}", caller.ok_or(ApiError::ApiKeyRequired)?.id)
        }
    };
    let parts = [asking.as_bytes(), key.as_bytes()];
    let ring = api.identity.ring();
    Ok(ring.derive("threadkeep idempotent create", &parts))
}
