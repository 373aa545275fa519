//! The conversations and models API of `OpenAI`'s clients, at `/v1` and `/openai/v1`.
//!
//! A conversation `conv_<x>` is the thread `thrd_<x>`. Its metadata is the thread's, and its items are the thread's history.
//! Its responses, which require configured models, are responses of the model loop. Items are edited as text, which
//! preserves numbers, unknown members and their order.

mod body;
mod conversations;
mod edit;
mod envelope;
mod error;
mod fault;
mod ids;
mod items;
mod kinds;
mod list_query;
mod metadata;
mod new_items;
mod objects;
mod request;
mod responses;
mod routes;

use std::time::Duration;

use threadkeep_domain::ThreadPolicy;
use threadkeep_http::Api;
use threadkeep_responses::ResponseService;
use threadkeep_service::{ScopeService, ThreadService};

pub use error::OpenAiError;

#[derive(Debug, Clone)]
pub struct OpenAi {
    api: Api,
    /// Their limits fit this protocol's metadata.
    threads: ThreadService,
    scopes: ScopeService,
    /// Lifetime of a new conversation after its last use.
    ttl: Duration,
    /// `None` if no models are configured.
    responses: Option<ResponseService>,
}

impl OpenAi {
    /// `ttl` is the lifetime of a new conversation after its last use.
    #[must_use]
    pub fn new(api: &Api, ttl: Duration, responses: Option<ResponseService>) -> Self {
        let policy = api.service.policy();
        let max_metadata_bytes = policy.max_metadata_bytes.max(metadata::MAX_BYTES);
        let threads = api.service.under(ThreadPolicy {
            max_metadata_bytes,
            ..*policy
        });
        Self {
            scopes: api.scopes.with_threads(threads.clone()),
            threads,
            api: api.clone(),
            ttl,
            responses,
        }
    }
}
