//! The services over threads, without HTTP and Redis.

mod archives;
mod attempts;
mod checkpoints;
mod conversations;
mod copies;
mod error;
mod exports;
mod images;
mod kv;
mod owner_limit;
mod owners;
pub mod rates;
mod relay;
mod scopes;
mod threads;
pub mod tools;
mod turns;

use std::future::Future;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use owner_limit::OwnerLimit;
use rates::{RateGate, RateSubject};
use threadkeep_domain::scope::ScopeId;
use threadkeep_domain::{
    Access, IdempotencyKey, Owner, Precondition, ReservedKeys, ThreadId, ThreadPolicy, TurnToken,
};
use threadkeep_store::{Owners, Reader, Store, WriteError};

pub use archives::ArchiveService;
pub use checkpoints::CheckpointService;
pub use conversations::{
    CONVERSATIONS_LOOKED_AT, ConversationLabel, ConversationPage, ConversationService,
    ListedConversation, PageStart, ReadLabel,
};
pub use copies::{Basis, Copies, Receipt, RequestTimes, Restored, Saved};
pub use error::ServiceError;
pub use exports::{Export, ExportPlace, ExportPlaceError, Exported};
pub use images::{ForkDraft, ImageService};
pub use kv::batches::BatchPut;
pub use kv::bodies::{BodyPage, EntryBodies};
pub use kv::namespaces::{EntryDraft, NamespaceService, NamespaceView, SearchPage};
pub use kv::ranking::{NamespaceOrder, NamespaceRanking, RankedNamespaces};
pub use owners::{MetadataFilter, OwnerService};
pub use relay::catalog::Listed;
pub use relay::making::Making;
pub use relay::messages::Conversation;
pub use relay::run::{Completion, Digested, Run, RunError, RunPlan, RunStatus};
pub use relay::runs::RunService;
pub use relay::session_metadata::SessionMetadata;
pub use relay::sessions::{Clearing, Session, SessionService};
pub use relay::state_handles::{StateHandle, StateHandleService};
pub use relay::tool_state::ToolState;
pub use scopes::ScopeService;
pub use threads::change::{Changed, ThreadChange};
pub use threads::write::{NewThread, ThreadPatch};
pub use turns::{TurnRequest, TurnService, Waiting};

/// The threads of a store under a policy.
#[derive(Debug, Clone)]
pub struct ThreadService {
    store: Arc<dyn Store>,
    policy: Arc<ThreadPolicy>,
    timeout: Duration,
    access: Access,
    /// Whether reads leave the end of a thread where it is.
    peeks: bool,
    /// The owner that a write gives to a thread without one.
    owner: Option<Owner>,
    owner_limit: Option<OwnerLimit>,
    /// Limits on how often clients write.
    gate: RateGate,
    /// Keys that are not written.
    reserved_keys: ReservedKeys,
}

/// Conditions of a write.
#[derive(Debug, Clone, Copy, Default)]
pub struct WriteOptions {
    /// The condition on the thread.
    pub precondition: Option<Precondition>,
    /// The turn that it belongs to.
    pub turn: Option<TurnToken>,
    /// The identity of a repeat.
    pub idempotency: Option<IdempotencyKey>,
}

impl WriteOptions {
    /// These options, with that precondition.
    pub(crate) fn requiring(self, precondition: Precondition) -> Self {
        Self {
            precondition: Some(precondition),
            ..self
        }
    }
}

impl ThreadService {
    /// A service over a store, which bounds its own calls. A merge patch that keeps meeting other
    /// writers to the same values gives up after `timeout`.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, policy: ThreadPolicy, timeout: Duration) -> Self {
        Self {
            store,
            policy: Arc::new(policy),
            timeout,
            access: Access::All,
            peeks: false,
            owner: None,
            owner_limit: None,
            gate: RateGate::default(),
            reserved_keys: ReservedKeys::default(),
        }
    }

    /// The same service with a limit on the threads of an owner, if there is one. `owners` has to be of the same store.
    #[must_use]
    pub fn limit_owners(self, owners: Arc<dyn Owners>, limit: Option<NonZeroU64>) -> Self {
        let timeout = self.timeout;
        Self {
            owner_limit: limit.map(|limit| OwnerLimit::new(owners, limit.get(), timeout)),
            ..self
        }
    }

    /// Limits how often clients write.
    #[must_use]
    pub fn limit_rates(self, gate: RateGate) -> Self {
        Self { gate, ..self }
    }

    /// The same service over another store.
    #[must_use]
    pub fn over(&self, store: Arc<dyn Store>) -> Self {
        Self {
            store,
            ..self.clone()
        }
    }

    /// The same threads under another policy.
    #[must_use]
    pub fn under(&self, policy: ThreadPolicy) -> Self {
        Self {
            policy: Arc::new(policy),
            ..self.clone()
        }
    }

    /// The same threads for a caller without an owner, or with that one, which a write gives to a thread that has
    /// none.
    #[must_use]
    pub fn on_behalf_of(&self, owner: Option<Owner>) -> Self {
        Self {
            access: owner
                .as_ref()
                .map_or(Access::Unowned, |owner| Access::Of(owner.tag())),
            owner,
            ..self.clone()
        }
    }

    /// The same threads for callers that may not write these keys.
    #[must_use]
    pub fn reserving(&self, keys: ReservedKeys) -> Self {
        Self {
            reserved_keys: keys,
            ..self.clone()
        }
    }

    /// The same threads, whose reads do not count as uses: they move no end.
    #[must_use]
    pub fn peeking(&self) -> Self {
        Self {
            peeks: true,
            ..self.clone()
        }
    }

    /// The caller as a reader.
    pub(crate) fn reader(&self) -> Reader {
        Reader {
            access: self.access,
            touch: !self.peeks,
        }
    }

    /// The threads that the caller may use.
    pub fn access(&self) -> Access {
        self.access
    }

    /// The caller's own form of an idempotency key: what one caller is answered is not repeated to another.
    pub(crate) fn own(&self, key: Option<IdempotencyKey>) -> Option<IdempotencyKey> {
        key.map(|key| key.of(self.access))
    }

    /// Limits and lifetimes.
    #[must_use]
    pub fn policy(&self) -> &ThreadPolicy {
        &self.policy
    }

    /// How long a request may take.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Asks the limits whether a client may write to a thread now.
    ///
    /// # Errors
    /// [`ServiceError::Refused`] or [`ServiceError::Store`].
    pub async fn admit(&self, id: &ThreadId) -> Result<(), ServiceError> {
        // without a client, nothing would remember that it was counted
        if self.gate.has_limits() && RateSubject::is_known() {
            let counted = self.limited(id, true, async { Ok(()) });
            counted.await?;
        }
        Ok(())
    }

    async fn limited<T>(
        &self,
        id: &ThreadId,
        may_make: bool,
        write: impl Future<Output = Result<T, WriteError>>,
    ) -> Result<T, WriteError> {
        self.gate.pass(&ScopeId::Thread(*id), may_make, write).await
    }

    /// Whether the store takes writes.
    ///
    /// # Errors
    /// [`ServiceError::Store`] when it does not.
    pub async fn ping(&self) -> Result<(), ServiceError> {
        Ok(self.store.ping().await?)
    }
}
