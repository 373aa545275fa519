//! The HTTP API, version 1: handlers that extract, call the service once and wrap the answer.

mod all_events;
mod answer_memory;
mod archive_object;
mod archive_query;
mod archives;
mod asker;
mod asking;
mod back_end;
mod body;
mod body_memory;
mod conditions;
mod cursor;
mod decode;
mod early;
mod entries;
mod entry_content;
mod entry_object;
mod entry_path;
mod entry_query;
mod entry_write;
mod envelope;
mod error;
mod etag;
mod event_query;
mod exchange;
mod fallback;
mod feed;
#[cfg(test)]
mod fuzz;
mod head;
mod history;
mod history_body;
mod history_page;
mod history_query;
mod json_answer;
mod json_body;
mod key_path;
mod kv_body;
mod mcp_urls;
mod members;
mod merge;
mod methods;
mod namespaces;
mod negotiation;
mod openapi;
mod operations;
mod probes;
mod query;
mod readiness;
mod receipt;
mod routes;
mod schemas;
mod scope_access;
mod scope_errors;
mod scope_kv;
mod scope_object;
mod scope_schemas;
mod scope_tasks;
mod scopes;
mod session;
mod shape;
mod state;
mod target;
mod tasks_body;
mod thread_body;
mod thread_events;
mod thread_object;
mod threads;
mod tool_calls;
mod tool_messages;
mod tool_schemas;
mod tools;
mod turn;
mod webhook_body;
mod webhook_object;
mod webhooks;

use crate::events::Events;
use crate::identity::{ApiKeys, Identity};
use crate::service::tools::Toolbox;
use crate::service::{ArchiveService, NamespaceService, ScopeService, ThreadService};
use crate::webhooks::Webhooks;

pub use answer_memory::AnswerMemory;
pub use asker::count_by_address;
pub(crate) use body::Body;
pub use body::BodyAlarm;
pub use body_memory::BodyMemory;
pub(crate) use decode::{decode_parameter, parameters, path_part};
pub(crate) use entry_content::{EntryContent, entry_body, entry_head};
pub use envelope::envelope;
pub use error::{ApiError, with_problem};
pub(crate) use exchange::About;
pub use exchange::session_of;
pub use openapi::openapi_json;
pub use readiness::Readiness;
pub use session::{SESSION_ID, SessionId};
pub use turn::Turn;

/// What the handlers work with.
#[derive(Debug, Clone)]
pub struct Api {
    /// The threads.
    pub service: ThreadService,
    /// What models, tools and applications keep.
    pub scopes: ScopeService,
    /// What is left of threads that are over.
    pub archives: ArchiveService,
    /// Data of applications that outlives threads.
    pub namespaces: NamespaceService,
    /// What happens to threads.
    pub events: Events,
    /// Where events go.
    pub webhooks: Webhooks,
    /// Who is asking.
    pub identity: Identity,
    /// Who may name any thread.
    pub api_keys: ApiKeys,
    /// Whether requests are still wanted here.
    pub readiness: Readiness,
}

impl Api {
    /// The tools over the scopes.
    #[must_use]
    pub fn tools(&self) -> Toolbox {
        Toolbox::new(self.scopes.clone())
    }

    /// The API as one worker thread should use it; see [`ThreadService::for_worker`].
    #[must_use]
    pub fn for_worker(&self) -> Self {
        let service = self.service.for_worker();
        Self {
            scopes: self.scopes.for_worker(&service),
            namespaces: self.namespaces.for_worker(),
            service,
            ..self.clone()
        }
    }
}
