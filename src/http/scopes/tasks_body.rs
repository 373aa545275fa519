//! Tasks in bodies.

use crate::domain::scope::{NewTask, TASKS_MAX, TaskChange, TaskRef, TaskStatus};
use crate::http::request::members::{list, required_string, string, whole, wrong};
use crate::http::request::shape::read_members;
use crate::web::ApiError;

/// A list of tasks.
///
/// # Errors
/// [`ApiError::InvalidParameter`].
pub(super) fn read_tasks(json: &str) -> Result<Vec<NewTask>, ApiError> {
    let read = |(index, json)| {
        let task = read_members(json, ["id", "content", "status", "active_form"]);
        let [id, content, status, active_form] = task.map_err(|error| {
            let detail = format!("The task at {index} is not right: {}", error.detail());
            ApiError::InvalidParameter(detail)
        })?;
        Ok(NewTask {
            id: optional("id", id)?,
            content: required_string("content", content)?,
            status: read_status(&required_string("status", status)?)?,
            active_form: optional("active_form", active_form)?,
        })
    };
    let tasks = list("tasks", json, (0, TASKS_MAX))?;
    tasks.into_iter().enumerate().map(read).collect()
}

/// Which task.
///
/// # Errors
/// [`ApiError::InvalidParameter`].
pub(super) fn read_which(id: Option<&str>, index: Option<&str>) -> Result<TaskRef, ApiError> {
    let index = whole("index", index, (0, i64::MAX as u64))?;
    match (optional("id", id)?, index) {
        (Some(id), None) => Ok(TaskRef::Id(id)),
        (None, Some(index)) => Ok(TaskRef::Index(usize::try_from(index).unwrap_or(usize::MAX))),
        _ => Err(ApiError::InvalidParameter(
            "either `id` or `index` is wanted".into(),
        )),
    }
}

/// What is changed of it.
///
/// # Errors
/// [`ApiError::InvalidParameter`].
pub(super) fn read_change(
    status: Option<&str>,
    content: Option<&str>,
    active_form: Option<&str>,
) -> Result<TaskChange, ApiError> {
    let status = optional("status", status)?;
    let change = TaskChange {
        status: status.map(|text| read_status(&text)).transpose()?,
        content: optional("content", content)?,
        active_form: optional("active_form", active_form)?,
    };
    if change == TaskChange::default() {
        let detail = "`status`, `content` or `active_form` is wanted";
        return Err(ApiError::InvalidParameter(detail.into()));
    }
    Ok(change)
}

fn optional(name: &str, member: Option<&str>) -> Result<Option<String>, ApiError> {
    member.map(|json| string(name, json)).transpose()
}

fn read_status(text: &str) -> Result<TaskStatus, ApiError> {
    text.parse()
        .map_err(|()| wrong("status", "pending, in_progress or completed"))
}
