//! What the product does with threads: no HTTP, no Redis.

mod archives;
mod catalog;
mod copies;
mod effort;
mod error;
mod making;
mod messages;
mod namespace_ranking;
mod namespaces;
mod patch;
pub mod rates;
mod read;
mod run;
mod runs;
mod scopes;
mod session_metadata;
mod sessions;
mod state_events;
mod state_handles;
mod tool_state;
pub mod tools;
mod write;

use std::sync::Arc;
use std::time::Duration;

use crate::domain::{IdempotencyKey, Policy, Precondition};
use crate::store::Store;

pub use archives::ArchiveService;
pub use catalog::Listed;
pub use copies::{Asked, Basis, Copies, Receipt, Restored, Saved};
pub use error::ServiceError;
pub use making::Making;
pub use messages::Conversation;
pub use namespace_ranking::{NamespaceOrder, NamespaceRanking, RankedNamespaces};
pub use namespaces::{EntryDraft, NamespaceService, NamespaceView, SearchPage};
pub use run::{Completion, Digested, Run, RunError, RunPlan, RunStatus};
pub use runs::RunService;
pub use scopes::ScopeService;
pub use session_metadata::SessionMetadata;
pub use sessions::{Clearing, Session, SessionService};
pub use state_handles::{StateHandle, StateHandleService};
pub use tool_state::ToolState;
pub use write::{NewThread, ThreadPatch};

/// The threads of a store under a policy.
#[derive(Debug, Clone)]
pub struct ThreadService {
    store: Arc<dyn Store>,
    policy: Arc<Policy>,
    timeout: Duration,
}

/// Conditions of a write.
#[derive(Debug, Clone, Copy, Default)]
pub struct WriteOptions {
    /// What the thread must be.
    pub precondition: Option<Precondition>,
    /// What a repeat is recognized by.
    pub idempotency: Option<IdempotencyKey>,
}

impl ThreadService {
    /// A service over a store, which bounds its own calls. A merge patch that keeps meeting other
    /// writers to the same values gives up after `timeout`.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, policy: Policy, timeout: Duration) -> Self {
        Self {
            store,
            policy: Arc::new(policy),
            timeout,
        }
    }

    /// The service as one worker thread should use it; see [`Store::for_worker`].
    #[must_use]
    pub fn for_worker(&self) -> Self {
        Self {
            store: self.store.for_worker(),
            ..self.clone()
        }
    }

    /// The same threads under another policy.
    #[must_use]
    pub fn under(&self, policy: Policy) -> Self {
        Self {
            policy: Arc::new(policy),
            ..self.clone()
        }
    }

    /// Limits and lifetimes.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Whether the store takes writes.
    ///
    /// # Errors
    /// [`ServiceError::Store`] when it does not.
    pub async fn ping(&self) -> Result<(), ServiceError> {
        Ok(self.store.ping().await?)
    }
}
