//! What the published runtime of Agentuity, `@agentuity/runtime`, speaks to its back end.
//!
//! An app that is written for it keeps its data here by environment variables alone. Its
//! `AGENTUITY_SDK_KEY` is one of the api keys.

mod envelope;
mod error;
mod kv;
mod sessions;

use actix_web::web::{self, ServiceConfig};

use crate::http::Api;
use crate::identity::ApiKeys;
use crate::service::NamespaceService;

pub use error::AgentuityError;

/// What the handlers work with.
#[derive(Debug, Clone)]
pub struct Agentuity {
    /// Data of applications that outlives threads, under the policy of the wire.
    pub namespaces: NamespaceService,
    /// Who may come in.
    pub api_keys: ApiKeys,
}

impl Agentuity {
    /// The door to what the API is about, for those who may come in by it.
    #[must_use]
    pub fn new(api: &Api) -> Self {
        Self {
            namespaces: kv::namespaces(&api.namespaces),
            api_keys: api.api_keys.clone(),
        }
    }

    /// The door as one worker thread should use it, over that worker's API.
    #[must_use]
    pub fn for_worker(&self, api: &Api) -> Self {
        Self {
            namespaces: kv::namespaces(&api.namespaces),
            ..self.clone()
        }
    }

    /// Adds the door to an app, which has the envelope of the API around it.
    pub fn configure(&self, config: &mut ServiceConfig) {
        config
            .app_data(web::Data::new(self.clone()))
            .configure(kv::routes)
            .configure(sessions::routes);
    }
}
