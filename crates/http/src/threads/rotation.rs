use actix_web::HttpRequest;
use actix_web::http::StatusCode;

use super::object::ThreadObject;
use crate::answer::{ApiResult, json_text, mark_replay, tagged};
use crate::problems::WriteProblems;
use crate::request::{Nothing, Query, Target, WriteConditions, change_context};
use crate::schemas::WriteHeaders;
use threadkeep_domain::Stamp;
use threadkeep_identity::{Caller, Source, THREAD_ID};
use threadkeep_web::ApiError;

/// Move a thread to a new id
///
/// Use this operation after a login, or if an id has leaked. Version, state, scope, history, checkpoints, owner and
/// turn move atomically. The old id no longer gives access to the thread. Reads of the old id return an empty thread,
/// and writes return 410 for `tombstone_seconds`. If the thread does not exist, the response contains only a new id.
///
/// An id that an identity provider assigns cannot change (`invalid_parameter`). A request with the old id and the same
/// idempotency key returns the same response again, with the new signed id. The key must therefore be random, such as a
/// UUID.
#[utoipa::path(
    post,
    path = "/v1/threads/current/rotate",
    params(WriteHeaders),
    responses(
        (status = 200, description = "The thread under its new id.", body = ThreadObject, headers(("etag" = String), ("x-thread-version" = u64), ("x-thread-id" = String, description = "The new signed id."))),
        WriteProblems,
    ),
)]
pub(crate) async fn rotate_thread(
    request: HttpRequest,
    target: Target,
    conditions: WriteConditions,
    _: Query<Nothing>,
) -> ApiResult {
    if target.source == Source::Provider {
        return Err(ApiError::provided_id());
    }
    let threads = target.threads();
    let rotated = threads.rotate(&target.id, conditions.options).await?;
    let thread = rotated.thread.as_ref();
    let object = ThreadObject::of_any(&rotated.id, thread, threads.policy());
    let signed_id = target.signed_id(&rotated.id);
    let object = object.signed(&signed_id);
    // keeps the source of the old id, because a browser that sent a cookie must get a new cookie
    let next = Caller::of(rotated.id, target.source).replacing(target.id);
    change_context(&request, |context| context.successor = Some(next));
    let stamp = thread.map_or(Stamp::default(), |thread| thread.stamp);
    let mut response = tagged(StatusCode::OK, stamp);
    response.insert_header((THREAD_ID, signed_id));
    mark_replay(&mut response, rotated.replayed);
    Ok(json_text(response, object.to_json()))
}
