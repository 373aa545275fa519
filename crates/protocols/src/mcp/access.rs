//! Finds the scope of a request (where its tools keep state), and checks that the caller may use it.

use actix_web::error::QueryPayloadError;
use actix_web::http::header::{HeaderMap, HeaderName};
use actix_web::{HttpRequest, web};
use serde::Deserialize;

use super::Mcp;
use threadkeep_domain::ThreadId;
use threadkeep_domain::scope::{Scope, ScopeError, ScopeId};
use threadkeep_http::{missing, no_key};
use threadkeep_identity::{Behalf, IdentityError, ScopeGrant, THREAD_ID};
use threadkeep_service::ScopeService;
use threadkeep_store::Clock;
use threadkeep_web::ApiError;

/// Headers that name a scope, for callers with an API key. Each entry contains a kind of scope and its header. In
/// answers, `x-session-id` has a different meaning: the id of the request.
const SCOPE_HEADERS: [(&str, HeaderName); 2] = [
    ("state", HeaderName::from_static("x-state-id")),
    ("session", HeaderName::from_static("x-session-id")),
];

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct McpQuery {
    scope: Option<String>,
    expires: Option<String>,
    sig: Option<String>,
}

impl McpQuery {
    fn of(request: &HttpRequest) -> Result<Self, QueryPayloadError> {
        let query = web::Query::from_query(request.query_string());
        query.map(web::Query::into_inner)
    }
}

impl Mcp {
    /// Returns the scope of a request, and a service limited to the scopes that the caller may use. A signed query
    /// grants access to its scope, regardless of the caller.
    pub(super) fn open(&self, request: &HttpRequest) -> Result<(Scope, ScopeService), ApiError> {
        let refusal = self.refusal(request);
        let is_back_end = refusal.is_none();
        let query = McpQuery::of(request);
        let granted = match &query {
            Ok(query) => self.granted(query)?,
            Err(_) => None,
        };
        let is_granted = granted.is_some();
        let scope = self.scope(request, refusal, query, granted)?;
        let behalf = match is_back_end || is_granted {
            true => Behalf::Anyone,
            false => self.identity.behalf(request)?,
        };
        let scopes = match behalf {
            Behalf::Anyone => self.scopes.clone(),
            Behalf::Caller(owner) => self.scopes.on_behalf_of(owner),
        };
        Ok((scope, scopes))
    }

    /// Finds the scope that a request names.
    ///
    /// A signed thread ID opens the scope of its thread, and a signed query opens the scope that it names. A caller
    /// with an API key may also name a scope in a different header or in an unsigned query. If such a caller does not
    /// name a scope, the state is discarded after the answer ([`Scope::Request`]). A caller without an API key that
    /// does not name a scope gets its own thread if an identity provider is configured. Cookies are ignored.
    ///
    /// # Errors
    /// 401 if the request has no valid credential, or if any credential is invalid. The error does not reveal which
    /// part was wrong. Callers with a valid credential get 400 for a malformed name, or for more than one scope.
    fn scope(
        &self,
        request: &HttpRequest,
        refusal: Option<ApiError>,
        query: Result<McpQuery, QueryPayloadError>,
        granted: Option<Scope>,
    ) -> Result<Scope, ApiError> {
        let headers = request.headers();
        let thread = match headers.contains_key(&THREAD_ID) {
            true => Some(self.own_thread(request, refusal.is_none())?),
            false => None,
        };
        if let Some(refusal) = refusal
            && granted.is_none()
            && thread.is_none()
        {
            return self.callers_scope(request).ok_or(refusal);
        }
        let malformed = "The query takes `scope`, `expires` and `sig`, each once";
        let query = query.map_err(|_| ApiError::InvalidParameter(malformed.into()))?;
        let by_query = granted.map(Ok).or_else(|| scope_in_query(&query));
        let by_thread = thread.map(|id| Ok(ScopeId::Thread(id).into()));
        let by_headers = scopes_in_headers(headers);
        let mut scopes = by_query.into_iter().chain(by_thread).chain(by_headers);
        match (scopes.next(), scopes.next()) {
            (None, _) => Ok(Scope::Request),
            // if the caller has no API key, `scope` is the scope that its credential proves
            (Some(scope), None) => scope,
            (Some(_), Some(_)) => Err(ApiError::InvalidParameter(
                "Name the scope once: by `x-thread-id`, `x-state-id`, `x-session-id` or `scope`"
                    .into(),
            )),
        }
    }

    /// Verifies a query's signature, and returns the scope that the query opens.
    fn granted(&self, query: &McpQuery) -> Result<Option<Scope>, ApiError> {
        let Some(signature) = &query.sig else {
            return Ok(None);
        };
        let ring = self.identity.ring();
        let scope = query.scope.as_deref().unwrap_or_default();
        let now_ms = Clock::system().now_ms();
        let grant = ScopeGrant::open(ring, scope, query.expires.as_deref(), signature, now_ms);
        let grant = grant.ok_or(ApiError::ApiKeyRequired)?;
        Ok(Some(grant.scope))
    }

    /// Returns the thread of a signed ID. If an identity provider is configured, the thread must belong to the caller.
    fn own_thread(&self, request: &HttpRequest, has_key: bool) -> Result<ThreadId, ApiError> {
        let id = self.identity.by_header(request.headers())?.id;
        let is_own = || {
            let caller = self.identity.proven_caller(request);
            caller.is_some_and(|caller| caller.id == id)
        };
        if has_key || !self.identity.has_provider() || is_own() {
            Ok(id)
        } else {
            Err(IdentityError::InvalidSignature.into())
        }
    }

    /// Returns an error unless the request has an API key that opens every scope.
    fn refusal(&self, request: &HttpRequest) -> Option<ApiError> {
        let Some(key) = self.api_keys.verify(request.headers()) else {
            return Some(no_key(request, &self.identity));
        };
        let right = missing(key, request.method(), "/mcp")?.to_string();
        Some(ApiError::RightMissing { right })
    }

    /// Returns the caller's own scope if an identity provider identifies the caller and the request names no scope.
    fn callers_scope(&self, request: &HttpRequest) -> Option<Scope> {
        let has_header = scopes_in_headers(request.headers()).next().is_some();
        let names_scope = has_header || !request.query_string().is_empty();
        if names_scope || !self.identity.has_provider() {
            return None;
        }
        let caller = self.identity.proven_caller(request);
        Some(ScopeId::Thread(caller?.id).into())
    }
}

fn scope_in_query(query: &McpQuery) -> Option<Result<Scope, ApiError>> {
    if query.expires.is_some() {
        let detail = "`expires` is for signed queries";
        return Some(Err(ApiError::InvalidParameter(detail.into())));
    }
    let scope = query.scope.as_deref()?.parse();
    Some(scope.map_err(ApiError::from))
}

fn scopes_in_headers(headers: &HeaderMap) -> impl Iterator<Item = Result<Scope, ApiError>> {
    let parse = |kind, id: &[u8]| {
        let id = std::str::from_utf8(id).map_err(|_| ScopeError::Name)?;
        Ok(format!("{kind}:{id}").parse()?)
    };
    SCOPE_HEADERS.into_iter().flat_map(move |(kind, header)| {
        let values = headers.get_all(header);
        values.map(move |value| parse(kind, value.as_bytes()))
    })
}
