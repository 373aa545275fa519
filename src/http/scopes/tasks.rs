//! Task lists of scopes.

use actix_web::HttpResponse;

use super::access::ScopeAccess;
use super::lifecycle::{VERSIONS, receipt};
use super::object::{ScopeReceipt, TasksObject};
use super::schemas::{OnlyScope, RepeatHeader, ScopeProblems, SetTasks, UpdateTask};
use super::tasks_body::{read_change, read_tasks, read_which};
use crate::http::answer::json::json;
use crate::http::request::conditions::Repeatable;
use crate::http::request::json_body::JsonBody;
use crate::http::request::members::{flag, required, whole};
use crate::http::request::query::{Nothing, Query};
use crate::http::request::shape::{body_members, read_body};
use crate::store::ScopeParts;
use crate::web::ApiError;

/// Levels around a value: the body, a list and a task.
const AROUND: usize = 3;

/// The task list of a scope
#[utoipa::path(
    post,
    path = "/v1/scopes/tasks/get",
    tag = "scopes",
    request_body(content = OnlyScope),
    responses(
        (status = 200, description = "The whole list.", body = TasksObject),
        ScopeProblems,
    ),
    security(("api_key" = []), ("thread_id" = []), ("cookie" = []), ()),
)]
pub(crate) async fn get_tasks(
    access: ScopeAccess,
    _: Query<Nothing>,
    body: JsonBody,
) -> Result<HttpResponse, ApiError> {
    let body = read_body(body.as_str(), AROUND)?;
    let [scope] = body_members(&body, ["scope"])?;
    let scope = access.open_kept(scope)?;
    let parts = ScopeParts {
        tasks: true,
        ..ScopeParts::default()
    };
    let view = access.api.scopes.read(&scope, &parts).await?;
    let object = TasksObject {
        tasks: view.tasks.tasks().to_vec(),
        version: view.stamp.version,
    };
    Ok(json(HttpResponse::Ok(), &object))
}

/// Replaces the task list of a scope
///
/// With `keep_unfinished`, not if that would drop a task that is not completed: each has to be in
/// the new list, by its id or with the same content.
#[utoipa::path(
    post,
    path = "/v1/scopes/tasks/set",
    tag = "scopes",
    params(RepeatHeader),
    request_body(content = SetTasks),
    responses(
        (status = 200, description = "Done, and in the store.", body = ScopeReceipt),
        ScopeProblems,
    ),
    security(("api_key" = []), ("thread_id" = []), ("cookie" = []), ()),
)]
pub(crate) async fn set_tasks(
    access: ScopeAccess,
    repeatable: Repeatable,
    _: Query<Nothing>,
    body: JsonBody,
) -> Result<HttpResponse, ApiError> {
    let body = read_body(body.as_str(), AROUND)?;
    let names = ["scope", "tasks", "keep_unfinished", "if_version"];
    let [scope, tasks, keep_unfinished, if_version] = body_members(&body, names)?;
    let scope = access.open_kept(scope)?;
    let tasks = read_tasks(required("tasks", tasks)?)?;
    let keep_unfinished = flag("keep_unfinished", keep_unfinished)?;
    let options = repeatable.options(whole("if_version", if_version, VERSIONS)?);
    let scopes = &access.api.scopes;
    let written = scopes.write_tasks(&scope, &tasks, keep_unfinished, options);
    Ok(receipt(&written.await?))
}

/// Changes one task of a scope
///
/// By its id or its place.
#[utoipa::path(
    post,
    path = "/v1/scopes/tasks/update",
    tag = "scopes",
    params(RepeatHeader),
    request_body(content = UpdateTask),
    responses(
        (status = 200, description = "Done, and in the store.", body = ScopeReceipt),
        ScopeProblems,
    ),
    security(("api_key" = []), ("thread_id" = []), ("cookie" = []), ()),
)]
pub(crate) async fn update_task(
    access: ScopeAccess,
    repeatable: Repeatable,
    _: Query<Nothing>,
    body: JsonBody,
) -> Result<HttpResponse, ApiError> {
    let body = read_body(body.as_str(), AROUND)?;
    let names = [
        "scope",
        "id",
        "index",
        "status",
        "content",
        "active_form",
        "if_version",
    ];
    let [scope, id, index, status, content, active_form, if_version] = body_members(&body, names)?;
    let scope = access.open_kept(scope)?;
    let which = read_which(id, index)?;
    let change = read_change(status, content, active_form)?;
    let options = repeatable.options(whole("if_version", if_version, VERSIONS)?);
    let scopes = &access.api.scopes;
    let written = scopes.update_task(&scope, &which, &change, options);
    Ok(receipt(&written.await?))
}
