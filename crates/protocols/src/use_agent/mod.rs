//! The thread routes for `@inngest/use-agent`, `AgentKit`'s React hooks.
//!
//! The client's `DefaultHttpTransport` needs only the server's URL as `baseURL`. The client generates thread names, so
//! `POST` accepts a name. A name that is not a thread id is hashed to a thread id. The TypeScript package hashes names
//! in the same way, so its history for `AgentKit` writes to the same threads. A thread belongs to the user that the
//! client names. The metadata of a thread contains the thread's name and title under `agentkit`.

mod bodies;
mod caller;
mod envelope;
mod error;
mod history;
mod list_query;
mod lists;
mod messages;
mod naming;
mod objects;
mod request;
mod routes;
mod threads;
mod titles;

use threadkeep_http::Api;
use threadkeep_service::ConversationService;

pub use error::UseAgentError;

#[derive(Debug, Clone)]
pub struct UseAgent {
    pub api: Api,
    pub conversations: ConversationService,
}

impl UseAgent {
    #[must_use]
    pub fn new(api: &Api, conversations: ConversationService) -> Self {
        Self {
            api: api.clone(),
            conversations,
        }
    }
}
