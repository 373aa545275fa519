use actix_web::http::StatusCode;
use actix_web::http::header::{IF_MATCH, LOCATION};
use actix_web::{HttpMessage, HttpRequest, HttpResponse, web};

use super::body::{NewThreadBody, ThreadPatchBody, read_new_thread, read_patch};
use super::object::ThreadObject;
use crate::Api;
use crate::answer::{ApiResult, accepts_json, content, mark_replay, respond, tagged};
use crate::problems::{ReadProblems, WriteProblems};
use crate::request::{
    About, JsonBody, Nothing, Query, ReadConditions, Reading, Target, ThreadMaker, ThreadWrite,
    WriteConditions, behalf, change_context, invalid, key_for, reserves_keys, threads_for,
};
use crate::schemas::{NewThreadParam, PeekParam, WriteHeaders};
use threadkeep_domain::{Stamp, ThreadId, Written};
use threadkeep_identity::THREAD_ID;

/// Create a thread
///
/// Setting the id or the owner requires an API key.
#[utoipa::path(
    post,
    path = "/v1/threads",
    params(("Idempotency-Key" = Option<String>, Header, max_length = 128, pattern = "^[!-~]+$", description = "Makes retries safe. A retry with the same body returns the first response. Keys are scoped to the API key, the caller's thread or the client address. Without a credential, a key needs at least 32 characters, such as a UUID.")),
    request_body(content = Option<NewThreadBody<'_>>),
    responses(
        (status = 201, description = "The new thread.", body = ThreadObject, headers(("etag" = String), ("x-thread-version" = u64), ("x-thread-id" = String, description = "The signed id of the thread."), ("location" = String))),
        WriteProblems,
    ),
    security(("api_key" = []), ("thread_id" = []), ("cookie" = []), ()),
)]
pub(crate) async fn create_thread(
    request: HttpRequest,
    api: web::Data<Api>,
    conditions: WriteConditions,
    _: Query<Nothing>,
    body: JsonBody,
) -> ApiResult {
    accepts_json(&request)?;
    if request.headers().contains_key(IF_MATCH) {
        return Err(invalid(
            "If-Match is not supported when you create a thread",
        ));
    }
    let maker = ThreadMaker::of(&request, &api)?;
    let (id, new) = read_new_thread(body.as_str(), api.service.policy().max_keys)?;
    if new.owner.is_some() {
        key_for(&request, &api)?;
    }
    let id = match id {
        Some(id) => maker.chosen_id(&id)?,
        None => maker.generated_id(conditions.key.as_ref())?,
    };
    request.extensions_mut().insert(About(id));
    let threads = threads_for(
        &api,
        &behalf(&api, &request)?,
        reserves_keys(&api, &request),
    );
    let written = threads.create(&id, new, conditions.options).await?;
    Ok(created(&api, &id, &written))
}

/// Retrieve a thread
///
/// Returns the thread without its state. If you name an existing thread and send an API key with the right `threads`,
/// the response contains `signed_id`, which gives a client access to the thread. Reading the caller's own thread renews
/// the caller's cookie, except with `peek=true`.
#[utoipa::path(
    get,
    path = "/v1/threads/current",
    params(
        PeekParam,
        ("If-None-Match" = Option<String>, Header, description = "Return 304 without a body if this entity tag is still current."),
    ),
    responses(
        (status = 200, description = "The thread. `exists` is false if nothing has been written yet.", body = ThreadObject, headers(("etag" = String), ("x-thread-version" = u64))),
        (status = 304, description = "The thread still has this entity tag. Reading a thread extends its lifetime without changing the tag, so `expires_at` in the client's copy may be out of date."),
        ReadProblems,
    ),
)]
pub(crate) async fn get_thread(
    request: HttpRequest,
    target: Target,
    conditions: ReadConditions,
    Query(reading): Query<Reading>,
) -> ApiResult {
    let service = target.threads_for_read(&reading);
    let thread = service.get_thread(&target.id).await?;
    let policy = service.policy();
    let answer = match &thread {
        Some(thread) => {
            let object = ThreadObject::of(&target.id, thread, policy);
            let object = object.signed_with(target.signed_for_back_end(&request).as_ref());
            content(&conditions, thread.stamp, object.to_json())?
        }
        None => {
            // ignores `If-None-Match`, because the tag of a nonexistent thread does not show which id the client has
            // received
            let object = ThreadObject::absent(&target.id, policy);
            content(
                &conditions.without_none_match(),
                Stamp::default(),
                object.to_json(),
            )?
        }
    };
    Ok(answer.finish())
}

/// Update a thread
///
/// Changes metadata, lifetime or owner. Creates the thread if it does not exist.
#[utoipa::path(
    patch,
    path = "/v1/threads/current",
    params(WriteHeaders, NewThreadParam),
    request_body(content = ThreadPatchBody<'_>),
    responses(
        (status = 200, description = "The updated thread.", body = ThreadObject, headers(("etag" = String), ("x-thread-version" = u64))),
        WriteProblems,
    ),
)]
pub(crate) async fn patch_thread(
    request: HttpRequest,
    write: ThreadWrite,
    body: JsonBody,
) -> ApiResult {
    let patch = read_patch(body.as_str())?;
    if patch.owner.is_some() {
        write.target.back_end(&request)?;
    }
    let (service, id) = (write.threads(), &write.target.id);
    let written = service
        .patch_thread(id, patch, write.headers.options)
        .await?;
    let object = ThreadObject::of_any(id, written.thread.as_ref(), service.policy());
    Ok(respond(StatusCode::OK, &written, object.to_json()))
}

/// Destroy a thread
///
/// For the caller's own thread, the response contains a new signed id.
#[utoipa::path(
    delete,
    path = "/v1/threads/current",
    params(WriteHeaders),
    responses(
        (status = 204, description = "The thread no longer exists. Writes to its id return 410 for `tombstone_seconds`."),
        WriteProblems,
    ),
)]
pub(crate) async fn delete_thread(
    request: HttpRequest,
    target: Target,
    conditions: WriteConditions,
    _: Query<Nothing>,
) -> ApiResult {
    let service = target.threads();
    let destroyed = match target.source.successor(target.id) {
        Some(successor) => {
            let destroyed = service.destroy(&target.id, conditions.options).await?;
            change_context(&request, |context| context.successor = Some(successor));
            destroyed
        }
        None => {
            service
                .destroy_for_reuse(&target.id, conditions.options)
                .await?
        }
    };
    let mut builder = tagged(StatusCode::NO_CONTENT, Stamp::default());
    mark_replay(&mut builder, destroyed.replayed);
    Ok(builder.finish())
}

pub(super) fn created(api: &Api, id: &ThreadId, written: &Written) -> HttpResponse {
    let signed_id = api.identity.signed_id(id);
    let object = ThreadObject::of_any(id, written.thread.as_ref(), api.service.policy());
    let object = object.signed(&signed_id);
    let mut response = respond(StatusCode::CREATED, written, object.to_json());
    let headers = response.headers_mut();
    headers.insert(THREAD_ID, signed_id);
    if let Ok(location) = format!("/v1/threads/{id}").try_into() {
        headers.insert(LOCATION, location);
    }
    response
}
