use actix_web::http::StatusCode;

use super::checkpoint_object::{
    CheckpointList, CheckpointObject, CheckpointWithState, NewCheckpointBody, full_json,
};
use super::object::ThreadObject;
use crate::answer::{ApiResult, json, json_text, mark_replay, respond, tagged};
use crate::problems::{NotFound, ReadProblems, WriteProblems};
use crate::request::{
    CheckpointNameText, CheckpointPath, IN_BODY, JsonBody, Nothing, Query, Target, ThreadWrite,
    WriteConditions, optional_body_object, read,
};
use crate::schemas::{CheckpointParam, WriteHeaders};

type CheckpointWrite<P = ()> = ThreadWrite<P, WriteConditions, Nothing>;

/// Save a checkpoint
///
/// Saves the current state and metadata. The version of the thread does not change. A thread can have up to 32
/// checkpoints, with up to 4 MiB of state and metadata in total. Checkpoints end with the thread.
#[utoipa::path(
    post,
    path = "/v1/threads/current/checkpoints",
    params(WriteHeaders),
    request_body(content = Option<NewCheckpointBody>),
    responses(
        (status = 201, description = "The new checkpoint.", body = CheckpointObject, headers(("etag" = String), ("x-thread-version" = u64))),
        NotFound,
        WriteProblems,
    ),
)]
pub(crate) async fn save_checkpoint(write: CheckpointWrite, body: JsonBody) -> ApiResult {
    let body = optional_body_object(body.as_str(), IN_BODY)?;
    let body: NewCheckpointBody = read(&body)?;
    let name = body.name.map(|CheckpointNameText(name)| name);
    let (target, options) = (&write.target, write.headers.options);
    let checkpoints = target.checkpoints();
    let saved = checkpoints.save(&target.id, name.as_ref(), options).await?;
    let mut response = tagged(StatusCode::CREATED, saved.stamp);
    mark_replay(&mut response, saved.replayed);
    Ok(json(response, &CheckpointObject::from(&saved.head)))
}

/// List checkpoints
///
/// Returns checkpoints without their states, newest first.
#[utoipa::path(
    get,
    path = "/v1/threads/current/checkpoints",
    responses(
        (status = 200, description = "All checkpoints of the thread.", body = CheckpointList, headers(("etag" = String), ("x-thread-version" = u64))),
        ReadProblems,
    ),
)]
pub(crate) async fn list_checkpoints(target: Target, _: Query<Nothing>) -> ApiResult {
    let found = target.checkpoints().list(&target.id).await?;
    let (list, stamp) = CheckpointList::of(found);
    Ok(json(tagged(StatusCode::OK, stamp), &list))
}

/// Retrieve a checkpoint
#[utoipa::path(
    get,
    path = "/v1/threads/current/checkpoints/{n}",
    params(CheckpointParam),
    responses(
        (status = 200, description = "The checkpoint with its state and metadata, exactly as they were.", body = CheckpointWithState, headers(("etag" = String), ("x-thread-version" = u64))),
        NotFound,
        ReadProblems,
    ),
)]
pub(crate) async fn get_checkpoint(
    target: Target,
    CheckpointPath(number): CheckpointPath,
    _: Query<Nothing>,
) -> ApiResult {
    let found = target.checkpoints().get(&target.id, number).await?;
    let response = tagged(StatusCode::OK, found.stamp);
    Ok(json_text(response, full_json(&found.content)))
}

/// Restore a checkpoint
///
/// Replaces the thread's state and metadata with those of the checkpoint, in a single write. The version of the thread
/// increases as with any write. Owner, lifetime, turn and the checkpoint itself do not change.
#[utoipa::path(
    post,
    path = "/v1/threads/current/checkpoints/{n}/restore",
    params(CheckpointParam, WriteHeaders),
    responses(
        (status = 200, description = "The thread after the write.", body = ThreadObject, headers(("etag" = String), ("x-thread-version" = u64))),
        NotFound,
        WriteProblems,
    ),
)]
pub(crate) async fn restore_checkpoint(write: CheckpointWrite<CheckpointPath>) -> ApiResult {
    let (target, CheckpointPath(number)) = (&write.target, write.path);
    let checkpoints = target.checkpoints();
    let written = checkpoints
        .restore(&target.id, number, write.headers.options)
        .await?;
    let (threads, thread) = (target.threads(), written.thread.as_ref());
    let object = ThreadObject::of_any(&target.id, thread, threads.policy());
    Ok(respond(StatusCode::OK, &written, object.to_json()))
}

/// Delete a checkpoint
///
/// The server never reuses the number of a deleted checkpoint.
#[utoipa::path(
    delete,
    path = "/v1/threads/current/checkpoints/{n}",
    params(CheckpointParam, WriteHeaders),
    responses(
        (status = 204, description = "The checkpoint no longer exists.", headers(("etag" = String), ("x-thread-version" = u64))),
        NotFound,
        WriteProblems,
    ),
)]
pub(crate) async fn delete_checkpoint(write: CheckpointWrite<CheckpointPath>) -> ApiResult {
    let (target, CheckpointPath(number)) = (&write.target, write.path);
    let checkpoints = target.checkpoints();
    let deleted = checkpoints
        .delete(&target.id, number, write.headers.options)
        .await?;
    let mut response = tagged(StatusCode::NO_CONTENT, deleted.stamp);
    mark_replay(&mut response, deleted.replayed);
    Ok(response.finish())
}
