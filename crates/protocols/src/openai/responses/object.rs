//! Renders responses.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::echo;
use crate::openai::objects::list;
use threadkeep_domain::{Incomplete, Json, ResponseId, Status, Usage};
use threadkeep_responses::{EndedResponse, InputItem, ResponseRequest, ResponseState, SoFar};

pub(super) fn of_ended(ended: &EndedResponse) -> String {
    let outcome = &ended.outcome;
    response(
        &ended.id,
        &ended.request,
        &outcome.output,
        Some(&outcome.usage),
        &Course::Ended(&outcome.status, outcome.ended_ms),
    )
}

/// Renders the current state of a response.
pub(super) fn of_state(id: &ResponseId, state: &ResponseState) -> String {
    let request = &state.request;
    match (&state.outcome, &state.failure) {
        (Some(outcome), _) => {
            let course = Course::Ended(&outcome.status, outcome.ended_ms);
            response(id, request, &outcome.output, Some(&outcome.usage), &course)
        }
        (None, Some(failure)) => response(
            id,
            request,
            &state.output,
            Some(&state.usage),
            &Course::Stopped(failure.code.as_str(), &failure.message),
        ),
        (None, None) => response(id, request, &state.output, None, &Course::Running),
    }
}

/// Renders a response that is queued or in progress.
pub(super) fn of_running(id: &ResponseId, request: &ResponseRequest, is_queued: bool) -> String {
    let course = match is_queued {
        true => Course::Queued,
        false => Course::Running,
    };
    response(id, request, &[], None, &course)
}

/// Renders an interrupted response that can be resumed.
pub(super) fn of_stopped(
    id: &ResponseId,
    request: &ResponseRequest,
    so_far: &SoFar,
    (code, message): (&str, &str),
) -> String {
    response(
        id,
        request,
        &so_far.output,
        Some(&so_far.usage),
        &Course::Stopped(code, message),
    )
}

enum Course<'a> {
    Queued,
    Running,
    /// Failed, but can be resumed.
    Stopped(&'a str, &'a str),
    Ended(&'a Status, u64),
}

fn response(
    id: &ResponseId,
    request: &ResponseRequest,
    output: &[Json],
    usage: Option<&Usage>,
    course: &Course<'_>,
) -> String {
    let (status, error, details) = match course {
        Course::Queued => ("queued", Value::Null, Value::Null),
        Course::Running => ("in_progress", Value::Null, Value::Null),
        Course::Stopped(code, message) => ("failed", error(code, message), Value::Null),
        Course::Ended(status, _) => {
            let (error, details) = match status {
                Status::Completed | Status::Cancelled => (Value::Null, Value::Null),
                Status::Incomplete(reason) => (Value::Null, of_reason(*reason)),
                Status::Failed(failure) => {
                    (error(failure.code.as_str(), &failure.message), Value::Null)
                }
            };
            (status.as_str(), error, details)
        }
    };
    let completed_at = match course {
        Course::Ended(Status::Completed, ended_ms) => json!(ended_ms / 1_000),
        _ => Value::Null,
    };
    let usage = usage.map_or(Value::Null, of_usage);
    let instructions = request.instructions.as_ref().map_or(0, String::len);
    let bytes: usize = output.iter().map(|item| item.as_str().len() + 1).sum();
    let mut json = String::with_capacity(bytes + request.echo.as_str().len() + instructions + 600);
    json.push_str(&format!(
        r#"{{"id":"{id}","object":"response","status":"{status}","error":{error},"incomplete_details":{details},"completed_at":{completed_at},"usage":{usage},"output":["#
    ));
    for (index, item) in output.iter().enumerate() {
        json.push_str(if index > 0 { "," } else { "" });
        json.push_str(item.as_str());
    }
    json.push_str("],");
    echo::write_members(request, &mut json);
    json.push('}');
    json
}

fn error(code: &str, message: &str) -> Value {
    json!({"code": code, "message": message})
}

fn of_reason(reason: Incomplete) -> Value {
    json!({"reason": reason.as_str()})
}

pub(super) fn of_usage(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.total_tokens(),
    })
}

/// Renders a page of up to `limit` items of an input.
pub(super) fn page(items: &[&InputItem], limit: usize) -> String {
    let shown = items.iter().take(limit);
    let texts = shown.map(|item| (item.id.as_str(), Cow::Borrowed(item.value.as_str())));
    list(texts.collect(), items.len() > limit)
}
