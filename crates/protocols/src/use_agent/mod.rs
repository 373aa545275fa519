//! The thread routes of `@inngest/use-agent`, `AgentKit`'s React hooks.
//!
//! Its `DefaultHttpTransport` works unchanged with the server's URL as `baseURL`. The client generates thread ids, so `POST`
//! accepts them. A name that is not a thread id is mapped to one by the rule of the TypeScript package, whose history for
//! `AgentKit` writes to the same threads. A thread belongs to the user that the client names. Its metadata has the app's id
//! and title under `agentkit`.

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
