//! The protocol of `@agentuity/runtime`, Agentuity's published runtime, to its back end.
//!
//! An app that is written for it keeps its data here with no other change than environment variables. Its
//! `AGENTUITY_SDK_KEY` is one of the API keys.

mod envelope;
mod error;
mod kv;
mod sessions;
mod socket;

use std::future::ready;
use std::sync::Arc;

use actix_web::Resource;
use actix_web::web::{self, ServiceConfig};

use threadkeep_events::Events;
use threadkeep_http::Api;
use threadkeep_identity::ApiKeys;
use threadkeep_service::{NamespaceService, ThreadService};

pub use error::AgentuityError;
pub use socket::{BasisCounters, RequestCounters, SocketCounters, SocketTiming};

/// The dependencies of the handlers.
#[derive(Debug, Clone)]
pub struct Agentuity {
    /// The threads.
    pub threads: ThreadService,
    /// Data of applications that outlives threads, under the policy of the wire.
    pub namespaces: NamespaceService,
    /// The keys that open the protocol.
    pub api_keys: ApiKeys,
    /// When sockets end.
    pub events: Events,
    /// Counters of sockets.
    pub counters: Arc<SocketCounters>,
    /// The times of sockets.
    #[doc(hidden)]
    pub timing: SocketTiming,
}

impl Agentuity {
    /// The protocol over the API's services, for callers with an API key.
    #[must_use]
    pub fn new(api: &Api, counters: Arc<SocketCounters>) -> Self {
        Self {
            threads: api.service.clone(),
            namespaces: kv::namespaces(&api.namespaces),
            api_keys: api.api_keys.clone(),
            events: api.events.clone(),
            counters,
            timing: SocketTiming::DEFAULT,
        }
    }

    /// Adds the protocol to an app, which has the envelope of the API around it.
    pub fn configure(&self, config: &mut ServiceConfig) {
        config
            .app_data(web::Data::new(self.clone()))
            .configure(kv::routes)
            .configure(sessions::routes)
            .configure(socket::routes);
    }
}

/// A path that takes these methods.
fn at(path: &str, allow: &'static str) -> Resource {
    let refused = move || ready(Err::<&str, _>(AgentuityError::MethodNotAllowed { allow }));
    web::resource(path).default_service(web::to(refused))
}
