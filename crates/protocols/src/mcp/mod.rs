//! The [Model Context Protocol](https://modelcontextprotocol.io) at `/mcp`, as streamable HTTP.
//!
//! The server offers the tools that keep state, and the keys and tasks of one scope as resources. A request names the
//! scope in the header `x-thread-id` (signed), `x-state-id` or `x-session-id`, or in a query, which may be signed. Each
//! request is answered separately and as JSON, so any replica can answer it. Protocol sessions are not used.

mod access;
mod batch;
mod exchange;
mod failure;
mod fault;
mod gate;
mod lifecycle;
mod message;
mod methods;
mod resource_uri;
mod resources;
mod revision;
mod server;

use std::sync::Arc;

use actix_web::HttpMessage;
use actix_web::middleware::from_fn;
use actix_web::web::{self, ServiceConfig};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp_actix_web::transport::StreamableHttpService;

use fault::MESSAGE_MAX_BYTES;
use server::Server;
use threadkeep_domain::scope::Scope;
use threadkeep_domain::{Fingerprint, TurnToken};
use threadkeep_http::Api;
use threadkeep_identity::{ApiKeys, Identity};
use threadkeep_service::ScopeService;

#[derive(Debug, Clone)]
pub struct Mcp {
    pub scopes: ScopeService,
    pub identity: Identity,
    /// Callers with one of these keys may open any scope.
    pub api_keys: ApiKeys,
    /// Accepted hosts. An entry without a port accepts every port of that host. An empty list accepts all hosts.
    pub allowed_hosts: Vec<String>,
    /// Accepted origins of pages, each with a port or `:*`. An empty list accepts all origins.
    pub allowed_origins: Vec<String>,
}

/// Results of the gate's checks. Passed to the protocol's handlers, because the handlers run in a different task.
#[derive(Clone)]
struct Opened {
    scope: Scope,
    /// Limited to the caller's rights.
    scopes: ScopeService,
    /// Address of the client, for rate limits.
    address: Option<Fingerprint>,
    /// The model response that the call belongs to.
    turn: Option<TurnToken>,
    /// The arguments of a call, unparsed.
    arguments: Option<Arc<str>>,
}

impl Mcp {
    #[must_use]
    pub fn new(api: &Api, allowed_hosts: Vec<String>, allowed_origins: Vec<String>) -> Self {
        Self {
            scopes: api.scopes.clone(),
            identity: api.identity.clone(),
            api_keys: api.api_keys.clone(),
            allowed_hosts,
            allowed_origins,
        }
    }

    /// Adds `/mcp` to an app. The app must be wrapped in [`threadkeep_http::envelope`].
    pub fn configure(&self, config: &mut ServiceConfig) {
        let transport = StreamableHttpService::builder()
            .service_factory(Arc::new(|| Ok(Server)))
            .session_manager(Arc::new(NeverSessionManager::default()))
            .stateful_mode(false)
            .json_response(true)
            .max_request_body_bytes(MESSAGE_MAX_BYTES as usize)
            .allowed_hosts(self.allowed_hosts.clone())
            .allowed_origins(self.allowed_origins.clone())
            .on_request_fn(|request, extensions| {
                if let Some(opened) = request.extensions().get::<Opened>() {
                    extensions.insert(opened.clone());
                }
            })
            .build();
        let scope = transport
            .scope_with_path("/mcp")
            .app_data(web::Data::new(self.clone()))
            .wrap(from_fn(gate::gate));
        config.service(scope);
    }
}
