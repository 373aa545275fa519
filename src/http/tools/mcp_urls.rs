//! URLs of the MCP endpoint that open one scope.

use std::collections::BTreeMap;

use actix_web::{HttpRequest, HttpResponse};
use serde::{Deserialize, Serialize};
use utoipa::openapi::RefOr;
use utoipa::openapi::response::Response;
use utoipa::{IntoResponses, ToSchema};

use crate::domain::rfc3339;
use crate::domain::scope::Scope;
use crate::http::answer::json::json;
use crate::http::answer::negotiation::accepts_json;
use crate::http::request::back_end::BackEnd;
use crate::http::request::json::{Seconds, Whole, body_object, read};
use crate::http::request::json_body::JsonBody;
use crate::http::request::query::{Nothing, Query};
use crate::http::schemas::problems;
use crate::identity::ScopeGrant;
use crate::store::Clock;
use crate::web::ApiError;

/// Levels around a value: the body.
const AROUND: usize = 1;

/// For which scope a URL is made.
#[derive(ToSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct McpUrlBody {
    /// `thread:<id>`, `state:<uuid>`, `session:<id>`, `run:<uuid>`, `tool:<name>`,
    /// `personality:<id>` or `request`.
    scope: String,
    /// How long it opens the scope; for as long as the key that signed it is in use when absent.
    #[schema(nullable = false, value_type = Option<u64>, minimum = 1, maximum = 31_536_000)]
    expires_in_seconds: Option<Seconds>,
}

/// A URL that opens one scope.
#[derive(Serialize, ToSchema)]
pub(super) struct McpUrl {
    /// Whoever has it may use the scope. A path alone where the service does not know its public
    /// URL.
    url: String,
    /// The scope.
    scope: String,
    /// When it opens nothing any more; null: it has no end.
    #[schema(format = DateTime)]
    expires_at: Option<String>,
}

/// What may come back in place of a URL.
pub(super) struct McpUrlProblems;

impl IntoResponses for McpUrlProblems {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        problems(&[
            (
                "400",
                "A parameter, the scope or the body is malformed or unknown.",
            ),
            ("401", "An api key is missing."),
            ("406", "The client does not take JSON."),
            ("413", "The body is too large."),
            ("415", "The body is of another type."),
        ])
    }
}

/// Makes a URL for an MCP client
///
/// It opens `/mcp` for one scope, without an api key and without headers. Nothing is kept of it, so
/// it ends by its time, or when the key that signed it is taken from the ring.
#[utoipa::path(
    post,
    path = "/v1/mcp-urls",
    tag = "tools",
    request_body(content = McpUrlBody),
    responses(
        (status = 200, description = "The URL.", body = McpUrl),
        McpUrlProblems,
    ),
    security(("api_key" = [])),
)]
pub(crate) async fn create_mcp_url(
    request: HttpRequest,
    BackEnd { api }: BackEnd,
    _: Query<Nothing>,
    body: JsonBody,
) -> Result<HttpResponse, ApiError> {
    accepts_json(&request)?;
    let body = body_object(body.as_str(), AROUND)?;
    let body: McpUrlBody = read(&body)?;
    let scope: Scope = body.scope.parse()?;
    let now = Clock::system().now_ms() / 1_000;
    let grant = ScopeGrant {
        scope,
        expires: body.expires_in_seconds.map(|Whole(seconds)| now + seconds),
    };
    let public_url = api.events.public_url();
    let query = grant.to_query(api.identity.ring());
    let url = McpUrl {
        url: format!("{public_url}/mcp?{query}"),
        scope: grant.scope.to_string(),
        expires_at: grant.expires.and_then(|seconds| rfc3339(seconds * 1_000)),
    };
    Ok(json(HttpResponse::Ok(), &url))
}
