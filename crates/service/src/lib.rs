//! Services for threads, scopes and namespaces, independent of HTTP and Redis.

mod archives;
mod attempts;
mod checkpoints;
mod conversations;
mod copies;
mod effects;
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
    CONVERSATIONS_EXAMINED_MAX, ConversationLabel, ConversationPage, ConversationService,
    ListedConversation, PageStart, ReadLabel,
};
pub use copies::{Basis, Copies, Receipt, RequestTimes, Restored, Saved};
pub use effects::{EffectRequest, EffectService};
pub use error::ServiceError;
pub use exports::{Export, ExportCursor, ExportCursorError, Exported};
pub use images::{ForkDraft, ImageService};
pub use kv::batches::BatchPut;
pub use kv::bodies::{BodyPage, EntryBodies};
pub use kv::namespaces::{EntryDraft, NamespaceService, NamespaceView, SearchPage};
pub use kv::ranking::{NamespaceOrder, NamespaceRanking, RankedNamespaces};
pub use owners::{MetadataFilter, OwnerService};
pub use relay::catalog::Listed;
pub use relay::making::Creation;
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

#[derive(Debug, Clone)]
pub struct ThreadService {
    store: Arc<dyn Store>,
    policy: Arc<ThreadPolicy>,
    timeout: Duration,
    access: Access,
    /// True if reads leave the expiry time unchanged.
    peeks: bool,
    /// Owner that a write assigns to a thread without an owner.
    owner: Option<Owner>,
    owner_limit: Option<OwnerLimit>,
    gate: RateGate,
    /// Keys that writes must not change.
    reserved_keys: ReservedKeys,
}

#[derive(Debug, Clone, Copy, Default)]
pub struct WriteOptions {
    pub precondition: Option<Precondition>,
    /// Turn (lease of the thread) under which the write runs.
    pub turn: Option<TurnToken>,
    pub idempotency: Option<IdempotencyKey>,
}

impl WriteOptions {
    pub(crate) fn requiring(self, precondition: Precondition) -> Self {
        Self {
            precondition: Some(precondition),
            ..self
        }
    }
}

impl ThreadService {
    /// Creates a service that uses `store`, which has its own timeouts. A merge patch that keeps conflicting with
    /// concurrent writes fails after `timeout`.
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

    /// Limits the number of threads per owner if `limit` is set. `owners` must use the same store as this service.
    #[must_use]
    pub fn limit_owners(self, owners: Arc<dyn Owners>, limit: Option<NonZeroU64>) -> Self {
        let timeout = self.timeout;
        Self {
            owner_limit: limit.map(|limit| OwnerLimit::new(owners, limit.get(), timeout)),
            ..self
        }
    }

    #[must_use]
    pub fn limit_rates(self, gate: RateGate) -> Self {
        Self { gate, ..self }
    }

    #[must_use]
    pub fn over(&self, store: Arc<dyn Store>) -> Self {
        Self {
            store,
            ..self.clone()
        }
    }

    #[must_use]
    pub fn under(&self, policy: ThreadPolicy) -> Self {
        Self {
            policy: Arc::new(policy),
            ..self.clone()
        }
    }

    /// Returns a copy of this service that acts on behalf of `owner`, or of a caller without an owner. Writes assign
    /// `owner` to threads without an owner.
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

    /// Returns a copy that rejects writes to `keys`.
    #[must_use]
    pub fn reserving(&self, keys: ReservedKeys) -> Self {
        Self {
            reserved_keys: keys,
            ..self.clone()
        }
    }

    /// Returns a copy whose reads do not extend lifetimes.
    #[must_use]
    pub fn peeking(&self) -> Self {
        Self {
            peeks: true,
            ..self.clone()
        }
    }

    pub(crate) fn reader(&self) -> Reader {
        Reader {
            access: self.access,
            touch: !self.peeks,
        }
    }

    pub fn access(&self) -> Access {
        self.access
    }

    /// Binds an idempotency key to the caller, so that a caller never receives the response to a different caller's
    /// request.
    pub(crate) fn own(&self, key: Option<IdempotencyKey>) -> Option<IdempotencyKey> {
        key.map(|key| key.of(self.access))
    }

    #[must_use]
    pub fn policy(&self) -> &ThreadPolicy {
        &self.policy
    }

    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Counts a write against the rate limits. Fails if the write exceeds a limit.
    pub async fn admit(&self, id: &ThreadId) -> Result<(), ServiceError> {
        // without a client there is no counter to charge
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

    /// Checks that the store accepts writes.
    pub async fn ping(&self) -> Result<(), ServiceError> {
        Ok(self.store.ping().await?)
    }
}
