//! The back-end API of `@agentuity/runtime`, Agentuity's published runtime.
//!
//! An app that uses the runtime needs only new environment variables to store its data here. `AGENTUITY_SDK_KEY` must
//! be one of the server's API keys.

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

#[derive(Debug, Clone)]
pub struct Agentuity {
    pub threads: ThreadService,
    pub namespaces: NamespaceService,
    pub api_keys: ApiKeys,
    pub events: Events,
    pub counters: Arc<SocketCounters>,
    #[doc(hidden)]
    pub timing: SocketTiming,
}

impl Agentuity {
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

    pub fn configure(&self, config: &mut ServiceConfig) {
        config
            .app_data(web::Data::new(self.clone()))
            .configure(kv::routes)
            .configure(sessions::routes)
            .configure(socket::routes);
    }
}

/// Creates a resource that answers 405 to any method without a route. `allow` lists the methods that have a route.
fn at(path: &str, allow: &'static str) -> Resource {
    let refused = move || ready(Err::<&str, _>(AgentuityError::MethodNotAllowed { allow }));
    web::resource(path).default_service(web::to(refused))
}
