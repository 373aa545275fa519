use serde_json::value::RawValue;

use super::messages::{RequestedCall, Wire, read_calls};
use super::schemas::{ToolCallsBody, ToolMessages};
use super::single::{NOT_STORED_WARNING, marked};
use crate::answer::{ApiResult, json};
use crate::problems::ScopeProblems;
use crate::request::Repeatable;
use crate::scopes::call::ScopeCall;
use crate::scopes::schemas::RepeatCallsHeader;
use threadkeep_domain::{Fingerprint, IdempotencyKey};
use threadkeep_service::tools::{Call, Outcome};

/// Number of nesting levels around a value: body, list, call, function and arguments.
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
    let (wire, list) = Wire::of(body.tool_calls, body.tool_use, body.content)?;
    let (asked, unknown): (Vec<_>, Vec<_>) = read_calls(wire, list)?
        .into_iter()
        .partition(|asked| asked.tool.is_ok() || !ignores_unknown);
    let calls: Vec<_> = asked
        .iter()
        .filter_map(|asked| tool_call(asked, &call.headers))
        .collect();
    let answered = call.tools()?.call_all(&scope, &calls).await?;
    let response = marked(&answered);
    let mut outcomes = answered.into_iter().map(|answered| answered.outcome);
    let answer = |asked: &RequestedCall<'_>| match &asked.tool {
        Ok(_) => outcomes.next(),
        Err(mistake) => Some(Outcome::Mistake(mistake.clone())),
    };
    let outcomes: Vec<_> = asked.iter().filter_map(answer).collect();
    let has_written = asked.iter().zip(&outcomes).any(|(asked, outcome)| {
        let writes = asked.tool.as_ref().is_ok_and(|tool| !tool.only_reads());
        writes && matches!(outcome, Outcome::Result(_))
    });
    let unknown = unknown.iter().map(|asked| raw(asked.raw)).collect();
    let answers = ToolMessages {
        messages: wire.messages(&asked, &outcomes),
        unknown: ignores_unknown.then_some(unknown),
        warning: (body.scope.is_none() && has_written).then_some(NOT_STORED_WARNING),
    };
    Ok(json(response, &answers))
}

/// Builds a call. Derives its idempotency key from the request's key and the index of the call, because a retry must
/// not repeat a call that succeeded. Returns `None` for an unknown tool.
fn tool_call(asked: &RequestedCall<'_>, repeatable: &Repeatable) -> Option<Call> {
    let index = (asked.index as u64).to_be_bytes();
    let idempotency = repeatable.idempotency.map(|key| IdempotencyKey {
        digest: Fingerprint::of(&[&key.digest.0, &index]),
        request: key.request,
    });
    Some(Call {
        idempotency,
        turn: repeatable.turn,
        ..Call::new(*asked.tool.as_ref().ok()?, asked.arguments)
    })
}

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap_or_default()
}
