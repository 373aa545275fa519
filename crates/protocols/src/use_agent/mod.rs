//! The protocol of `@inngest/use-agent`, `AgentKit`'s React hooks, to the routes that keep an app's threads.
//!
//! Its `DefaultHttpTransport` works unchanged with the server's URL as `baseURL`. The client generates ids of threads,
//! so `POST` takes them, and a name that is no thread id is mapped to one by the rule of the TypeScript package, whose
//! history for `AgentKit` writes to the same threads. A thread belongs to the user that the client names, and its
//! metadata has the app's id and title at `agentkit`.

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

/// The dependencies of the handlers.
#[derive(Debug, Clone)]
pub struct UseAgent {
    /// Threads, histories and callers.
    pub api: Api,
    /// Lists of threads.
    pub conversations: ConversationService,
}

impl UseAgent {
    /// The protocol over the API's services.
    #[must_use]
    pub fn new(api: &Api, conversations: ConversationService) -> Self {
        Self {
            api: api.clone(),
            conversations,
        }
    }
}
