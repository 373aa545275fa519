use actix_web::HttpResponse;

use super::call::ScopeCall;
use super::lifecycle::receipt;
use super::object::{ScopeReceipt, TaskObject, TasksObject};
use super::schemas::{NamedScope, RepeatHeader, SetTasks, UpdateTask};
use crate::answer::{ApiResult, json};
use crate::problems::ScopeProblems;
use crate::request::{IN_LIST, Repeatable};
use threadkeep_domain::scope::NewTask;
use threadkeep_store::ScopeParts;

/// Retrieve the task list of a scope
#[utoipa::path(
    post,
    path = "/v1/scopes/tasks/get",
    request_body(content = NamedScope),
    responses(
        (status = 200, description = "The task list.", body = TasksObject),
        ScopeProblems,
    ),
)]
pub(crate) async fn get_tasks(call: ScopeCall<IN_LIST>) -> ApiResult {
    let (scope, NamedScope { .. }) = call.open_stored()?;
    let parts = ScopeParts {
        tasks: true,
        ..ScopeParts::default()
    };
    let view = call.scopes()?.read(&scope, &parts).await?;
    let object = TasksObject {
        tasks: view.tasks.tasks().iter().map(TaskObject::from).collect(),
        version: view.stamp.version,
    };
    Ok(json(HttpResponse::Ok(), &object))
}

/// Replace the task list of a scope
///
/// With `keep_unfinished`, the new list must contain every task that is not completed, with the same id or content.
#[utoipa::path(
    post,
    path = "/v1/scopes/tasks/set",
    params(RepeatHeader),
    request_body(content = SetTasks),
    responses(
        (status = 200, description = "The task list was replaced.", body = ScopeReceipt),
        ScopeProblems,
    ),
)]
pub(crate) async fn set_tasks(call: ScopeCall<IN_LIST, Repeatable>) -> ApiResult {
    let (scope, body): (_, SetTasks) = call.open_stored()?;
    let tasks: Vec<_> = body.tasks.0.into_iter().map(NewTask::from).collect();
    let keep_unfinished = body.keep_unfinished.unwrap_or_default();
    let options = call.headers.options(body.if_version);
    let scopes = call.scopes()?;
    let written = scopes.write_tasks(&scope, &tasks, keep_unfinished, options);
    Ok(receipt(&written.await?))
}

/// Update a task of a scope
///
/// Identify the task by `id` or `index`.
#[utoipa::path(
    post,
    path = "/v1/scopes/tasks/update",
    params(RepeatHeader),
    request_body(content = UpdateTask),
    responses(
        (status = 200, description = "The task was updated.", body = ScopeReceipt),
        ScopeProblems,
    ),
)]
pub(crate) async fn update_task(call: ScopeCall<IN_LIST, Repeatable>) -> ApiResult {
    let (scope, body): (_, UpdateTask) = call.open_stored()?;
    let options = call.headers.options(body.if_version);
    let (task, change) = body.read()?;
    let scopes = call.scopes()?;
    let written = scopes.update_task(&scope, &task, &change, options);
    Ok(receipt(&written.await?))
}
