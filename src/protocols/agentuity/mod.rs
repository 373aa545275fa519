//! What the published runtime of Agentuity, `@agentuity/runtime`, speaks to its back end.
//!
//! An app that is written for it keeps its data here by environment variables alone. Its
//! `AGENTUITY_SDK_KEY` is one of the api keys.

mod envelope;
mod error;
mod kv;
mod sessions;
mod socket;

use std::sync::Arc;

use actix_web::web::{self, ServiceConfig};

use crate::events::Events;
use crate::http::Api;
use crate::identity::ApiKeys;
use crate::service::{NamespaceService, ThreadService};

pub use error::AgentuityError;
pub use socket::{BasisCounters, RequestCounters, SocketCounters, SocketTiming};

/// What the handlers work with.
#[derive(Debug, Clone)]
pub struct Agentuity {
    /// The threads.
    pub threads: ThreadService,
    /// Data of applications that outlives threads, under the policy of the wire.
    pub namespaces: NamespaceService,
    /// Who may come in.
    pub api_keys: ApiKeys,
    /// When sockets end.
    pub events: Events,
    /// What sockets came to.
    pub counters: Arc<SocketCounters>,
    /// The times that sockets go by.
    #[doc(hidden)]
    pub timing: SocketTiming,
}

impl Agentuity {
    /// The protocol to what the API is about, for those who may come in by it.
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
