//! Tools for models: what they are, and calls of them.

use actix_web::{HttpRequest, HttpResponse, HttpResponseBuilder};
use serde_json::json;

use super::schemas::{ToolCallBody, ToolList, ToolProblems, ToolResult};
use crate::http::answer::json::json as answer;
use crate::http::answer::negotiation::accepts_json;
use crate::http::answer::receipt::mark_replay;
use crate::http::request::conditions::Repeatable;
use crate::http::request::json_body::JsonBody;
use crate::http::request::query::{Nothing, Parameters, Query, set_once, unknown};
use crate::http::request::shape::{body_members, read_body};
use crate::http::scopes::access::ScopeAccess;
use crate::http::scopes::schemas::{RepeatCallsHeader, ScopeProblems};
use crate::service::tools::{Answered, Call, Format, Outcome, Tool, definitions};
use crate::web::ApiError;

/// Levels around a value: the body, and the arguments.
const AROUND: usize = 2;

/// The warning for a write that named no scope. Callers that name `request` know.
pub(super) const NOT_KEPT: &str =
    "The request names no `scope`, so what the tool wrote is gone with this response";

/// `?format=`.
#[derive(Debug, Default)]
pub(crate) struct InFormat(Option<Format>);

impl Parameters for InFormat {
    fn take(&mut self, name: &str, value: &str) -> Result<(), ApiError> {
        if name != "format" {
            return Err(unknown(name));
        }
        let malformed = "has to be openai, anthropic, mcp or modelrelay, and given once";
        set_once(&mut self.0, value.parse().ok(), name, malformed)
    }
}

/// The tools
///
/// As the member `tools` of a request to a model. Needs no credential.
#[utoipa::path(
    get,
    path = "/v1/tools",
    tag = "tools",
    params(("format" = Option<String>, Query, pattern = "^(openai|anthropic|mcp|modelrelay)$", description = "In whose form; `openai` when absent.")),
    responses(
        (status = 200, description = "The definitions of all tools.", body = ToolList),
        ToolProblems,
    ),
)]
pub(crate) async fn list_tools(
    request: HttpRequest,
    Query(InFormat(format)): Query<InFormat>,
) -> Result<HttpResponse, ApiError> {
    accepts_json(&request)?;
    let tools = definitions(format.unwrap_or_default());
    Ok(answer(HttpResponse::Ok(), &json!({"tools": tools})))
}

/// Calls a tool
///
/// What a model got wrong is an answer too, for the model to read. In the scope `request` nothing
/// outlives the response, and a write that names no scope at all gets a `warning` of that.
#[utoipa::path(
    post,
    path = "/v1/tools/{name}",
    tag = "tools",
    params(
        ("name" = String, Path, description = "`kv_write` or `kv.write`, and so on."),
        RepeatCallsHeader,
    ),
    request_body(content = ToolCallBody),
    responses(
        (status = 200, description = "Its result, or what was wrong with the call.", body = ToolResult),
        ScopeProblems,
    ),
    security(("api_key" = []), ("thread_id" = []), ("cookie" = []), ()),
)]
pub(crate) async fn call_tool(
    request: HttpRequest,
    access: ScopeAccess,
    repeatable: Repeatable,
    _: Query<Nothing>,
    body: JsonBody,
) -> Result<HttpResponse, ApiError> {
    let body = read_body(body.as_str(), AROUND)?;
    let [named, arguments] = body_members(&body, ["scope", "arguments"])?;
    let scope = access.open(named)?;
    let name = request.match_info().get("name").unwrap_or_default();
    let tool: Tool = name.parse().map_err(|_| ApiError::ToolNotFound)?;
    let call = Call {
        idempotency: repeatable.0,
        ..Call::new(tool, arguments.unwrap_or_default())
    };
    let answered = access.api.tools().call_all(&scope, &[call]).await?;
    let body = answered.first().map(|only| match &only.outcome {
        Outcome::Result(result) if named.is_none() && !tool.only_reads() => {
            json!({"result": result, "warning": NOT_KEPT})
        }
        Outcome::Result(result) => json!({"result": result}),
        Outcome::Mistake(text) => json!({"error": text}),
    });
    Ok(answer(marked(&answered), &body))
}

/// The beginning of an answer, marked when a call was answered before.
pub(super) fn marked(answered: &[Answered]) -> HttpResponseBuilder {
    let mut response = HttpResponse::Ok();
    mark_replay(
        &mut response,
        answered.iter().any(|answered| answered.replayed),
    );
    response
}
