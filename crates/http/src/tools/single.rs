use super::schemas::{ToolCallBody, ToolList, ToolResult};
use crate::answer::{ApiResult, accepts_json, json, mark_replay};
use crate::problems::{ScopeProblems, ToolProblems};
use crate::request::{IN_OBJECT, Parameters, Query, RawJson, Repeatable, set_once};
use crate::scopes::call::ScopeCall;
use crate::scopes::schemas::RepeatCallsHeader;
use actix_web::{HttpRequest, HttpResponse, HttpResponseBuilder};
use threadkeep_service::tools::{Answered, Call, Format, Outcome, Tool, definitions};
use threadkeep_web::ApiError;

/// Warning for a write without a scope. Not sent to callers that explicitly name the scope `request`.
pub(super) const NOT_STORED_WARNING: &str =
    "The request names no `scope`, so what the tool wrote is gone with this response";

#[derive(Debug, Default)]
pub(crate) struct FormatQuery(Option<Format>);

impl Parameters for FormatQuery {
    const NAMES: &'static [&'static str] = &["format"];

    fn take(&mut self, name: &str, value: &str) -> ApiResult<()> {
        let malformed = "must be openai, anthropic, mcp or modelrelay, given once";
        set_once(&mut self.0, value.parse().ok(), name, malformed)
    }
}

/// List tools
///
/// Returns tool definitions that you can include in a request to a model. Requires no credentials.
#[utoipa::path(
    get,
    path = "/v1/tools",
    params(("format" = Option<String>, Query, pattern = "^(openai|anthropic|mcp|modelrelay)$", description = "The provider's format, `openai` by default.")),
    responses(
        (status = 200, description = "The definitions of all tools.", body = ToolList),
        ToolProblems,
    ),
)]
pub(crate) async fn list_tools(
    request: HttpRequest,
    Query(FormatQuery(format)): Query<FormatQuery>,
) -> ApiResult {
    accepts_json(&request)?;
    let tools = definitions(format.unwrap_or_default());
    Ok(json(HttpResponse::Ok(), &ToolList { tools }))
}

/// Call a tool
///
/// An incorrect call also returns 200, with an `error` for the model to read. Writes of a call without a scope, or with
/// the scope `request`, are not kept.
#[utoipa::path(
    post,
    path = "/v1/tools/{name}",
    params(
        ("name" = String, Path, description = "The name of a tool, such as `kv_write` or `kv.write`."),
        RepeatCallsHeader,
    ),
    request_body(content = ToolCallBody<'_>),
    responses(
        (status = 200, description = "The result, or the mistake in the call.", body = ToolResult<'_>),
        ScopeProblems,
    ),
)]
pub(crate) async fn call_tool(
    request: HttpRequest,
    call: ScopeCall<IN_OBJECT, Repeatable>,
) -> ApiResult {
    let (scope, body): (_, ToolCallBody<'_>) = call.open()?;
    let name = request.match_info().get("name").unwrap_or_default();
    let tool: Tool = name.parse().map_err(|_| ApiError::ToolNotFound)?;
    let tool_call = Call {
        idempotency: call.headers.idempotency,
        turn: call.headers.turn,
        ..Call::new(tool, body.arguments.map_or("", |RawJson(json)| json))
    };
    let answered = call.tools()?.call_all(&scope, &[tool_call]).await?;
    let is_kept = body.scope.is_some() || tool.only_reads();
    let result = answered.first().map(|only| match &only.outcome {
        Outcome::Result(result) => ToolResult {
            result: Some(result),
            warning: (!is_kept).then_some(NOT_STORED_WARNING),
            error: None,
        },
        Outcome::Mistake(text) => ToolResult {
            error: Some(text),
            ..ToolResult::default()
        },
    });
    Ok(json(response_for(&answered), &result))
}

pub(super) fn response_for(answered: &[Answered]) -> HttpResponseBuilder {
    let mut response = HttpResponse::Ok();
    mark_replay(
        &mut response,
        answered.iter().any(|answered| answered.replayed),
    );
    response
}
