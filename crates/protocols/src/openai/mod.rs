//! The protocol of `OpenAI`'s clients to their conversations and models, at `/v1` and `/openai/v1`.
//!
//! A conversation `conv_<x>` is the thread `thrd_<x>`, its metadata are the thread's, and its items are the thread's
//! history. Its responses, which exist if models are configured, are responses of the model loop. Items are edited as text, so that numbers, unknown members and their order survive.

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

/// The dependencies of the handlers.
#[derive(Debug, Clone)]
pub struct OpenAi {
    api: Api,
    /// The threads, with room for the metadata of this protocol.
    threads: ThreadService,
    scopes: ScopeService,
    /// How long a new conversation lives after its last use.
    ttl: Duration,
    /// Responses of models, if models are configured.
    responses: Option<ResponseService>,
}

impl OpenAi {
    /// The protocol over the API's services. New conversations live for `ttl` after their last use.
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
