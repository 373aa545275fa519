//! The conversations, responses and models APIs for `OpenAI`'s clients, at `/v1` and `/openai/v1`.
//!
//! The conversation `conv_<x>` is the thread `thrd_<x>`, with the same metadata. The thread's history contains the
//! items of the conversation. Responses exist only if models are configured. Items are edited as text, which preserves
//! exact numbers, unknown members, and the order of members.

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
    /// The threads, with limits that fit this protocol's metadata.
    threads: ThreadService,
    scopes: ScopeService,
    /// Lifetime of a new conversation after its last use.
    ttl: Duration,
    /// `None` if no models are configured.
    responses: Option<ResponseService>,
}

impl OpenAi {
    /// Creates the protocol. `ttl` is the lifetime of a new conversation after its last use.
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
