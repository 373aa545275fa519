use actix_web::{HttpRequest, HttpResponse};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::answer::{ApiResult, json};
use crate::problems::McpUrlProblems;
use crate::request::{
    BackEnd, IN_BODY, JsonBody, Nothing, Query, Seconds, Whole, body_object, read,
};
use threadkeep_domain::rfc3339;
use threadkeep_domain::scope::Scope;
use threadkeep_identity::ScopeGrant;
use threadkeep_store::Clock;

/// The URL to create.
#[derive(ToSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct McpUrlBody {
    /// The scope: `thread:<id>`, `state:<uuid>`, `session:<id>`, `run:<uuid>`, `tool:<name>`, `personality:<id>` or
    /// `request`.
    scope: String,
    /// Lifetime of the URL in seconds. By default, the URL is valid until the signing key is removed.
    #[schema(nullable = false, value_type = Option<u64>, minimum = 1, maximum = 31_536_000)]
    expires_in_seconds: Option<Seconds>,
}

/// A URL that gives access to one scope.
#[derive(Serialize, ToSchema)]
pub(super) struct McpUrl {
    /// The URL. Anyone with the URL can use the scope. Without the setting `public_url`, the URL begins with the
    /// address to which this request was sent.
    url: String,
    scope: String,
    /// When the URL expires. Null if it never expires.
    #[schema(format = DateTime)]
    expires_at: Option<String>,
}

/// Create a URL for an MCP client
///
/// The URL gives access to `/mcp` for one scope, without an API key or headers. The server does not store the URL. The
/// URL is valid until it expires, or until you remove the signing key.
#[utoipa::path(
    post,
    path = "/v1/mcp-urls",
    request_body(content = McpUrlBody),
    responses(
        (status = 200, description = "The new URL.", body = McpUrl),
        McpUrlProblems,
    ),
)]
pub(crate) async fn create_mcp_url(
    request: HttpRequest,
    BackEnd { api, .. }: BackEnd,
    _: Query<Nothing>,
    body: JsonBody,
) -> ApiResult {
    let body = body_object(body.as_str(), IN_BODY)?;
    let body: McpUrlBody = read(&body)?;
    let scope: Scope = body.scope.parse()?;
    let now = Clock::system().now_ms() / 1_000;
    let grant = ScopeGrant {
        scope,
        expires: body.expires_in_seconds.map(|Whole(seconds)| now + seconds),
    };
    let base = match api.events.public_url() {
        "" => api.identity.address(&request).unwrap_or_default(),
        public_url => public_url.to_owned(),
    };
    let query = grant.to_query(api.identity.ring());
    let url = McpUrl {
        url: format!("{base}/mcp?{query}"),
        scope: grant.scope.to_string(),
        expires_at: grant.expires.and_then(|seconds| rfc3339(seconds * 1_000)),
    };
    Ok(json(HttpResponse::Ok(), &url))
}
