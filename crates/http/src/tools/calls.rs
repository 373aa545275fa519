use serde_json::value::RawValue;

use super::messages::{Provider, RequestedCall, read_calls};
use super::schemas::{ToolCallsBody, ToolMessages};
use super::single::{NOT_STORED_WARNING, response_for};
use crate::answer::{ApiResult, json};
use crate::problems::ScopeProblems;
use crate::request::Repeatable;
use crate::scopes::call::ScopeCall;
use crate::scopes::schemas::RepeatCallsHeader;
use threadkeep_domain::{Fingerprint, IdempotencyKey};
use threadkeep_service::tools::{Call, Outcome};

/// Number of JSON nesting levels around a value in a call's arguments: body, list, call, function and arguments.
const AROUND: usize = 5;

/// Call the tools in a model's message
///
/// Send the `tool_calls` of an OpenAI message, or the `tool_use` blocks or whole `content` of an Anthropic message.
/// Append the messages of the response to the conversation.
///
/// Calls run in order, and an idempotency key applies to each call separately. A call to an unknown tool gets an error
/// for the model to read. With `ignore_unknown`, the response returns such calls to you instead. A request that writes
/// without a scope gets a `warning`, because its writes are not kept.
#[utoipa::path(
    post,
    path = "/v1/tool-calls",
    params(RepeatCallsHeader),
    request_body(content = ToolCallsBody<'_>),
    responses(
        (status = 200, description = "The messages to append.", body = ToolMessages),
        ScopeProblems,
    ),
)]
pub(crate) async fn call_tools(call: ScopeCall<AROUND, Repeatable>) -> ApiResult {
    let (scope, body): (_, ToolCallsBody<'_>) = call.open()?;
    let ignores_unknown = body.ignore_unknown.unwrap_or_default();
    let (provider, list) = Provider::of(body.tool_calls, body.tool_use, body.content)?;
    let (requested, unknown): (Vec<_>, Vec<_>) = read_calls(provider, list)?
        .into_iter()
        .partition(|requested| requested.tool.is_ok() || !ignores_unknown);
    let calls: Vec<_> = requested
        .iter()
        .filter_map(|requested| tool_call(requested, &call.headers))
        .collect();
    let answered = call.tools()?.call_all(&scope, &calls).await?;
    let response = response_for(&answered);
    let mut outcomes = answered.into_iter().map(|answered| answered.outcome);
    let answer = |requested: &RequestedCall<'_>| match &requested.tool {
        Ok(_) => outcomes.next(),
        Err(mistake) => Some(Outcome::Mistake(mistake.clone())),
    };
    let outcomes: Vec<_> = requested.iter().filter_map(answer).collect();
    let has_written = requested.iter().zip(&outcomes).any(|(requested, outcome)| {
        let writes = requested.tool.as_ref().is_ok_and(|tool| !tool.only_reads());
        writes && matches!(outcome, Outcome::Result(_))
    });
    let unknown = unknown.iter().map(|requested| raw(requested.raw)).collect();
    let answers = ToolMessages {
        messages: provider.messages(&requested, &outcomes),
        unknown: ignores_unknown.then_some(unknown),
        warning: (body.scope.is_none() && has_written).then_some(NOT_STORED_WARNING),
    };
    Ok(json(response, &answers))
}

/// Builds a call. Returns `None` for an unknown tool. Derives the call's idempotency key from the request's key and the
/// call's index, so that each call has its own key and a retry does not repeat a call that succeeded.
fn tool_call(requested: &RequestedCall<'_>, repeatable: &Repeatable) -> Option<Call> {
    let index = (requested.index as u64).to_be_bytes();
    let idempotency = repeatable.idempotency.map(|key| IdempotencyKey {
        digest: Fingerprint::of(&[&key.digest.0, &index]),
        request: key.request,
    });
    Some(Call {
        idempotency,
        turn: repeatable.turn,
        ..Call::new(*requested.tool.as_ref().ok()?, requested.arguments)
    })
}

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap_or_default()
}
