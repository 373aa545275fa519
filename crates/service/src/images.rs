//! Threads as a whole: exports, imports and forks.

use std::sync::Arc;
use std::time::Duration;

use super::{ServiceError, ThreadService, WriteOptions};
use threadkeep_domain::scope::{ScopeId, ScopePolicies};
use threadkeep_domain::{
    Access, Fork, IfExists, Image, Import, Included, Json, Owner, Refusal, ThreadId, Written,
};
use threadkeep_store::{EventLog, Images, Imported, WriteError};

/// How many ids are tried for one in a certain bucket, of which there are 256 at most. Without luck, the copy takes the
/// way that it takes between buckets.
const TRIED_IDS: u32 = 4_096;

/// Threads of a store as a whole, under the limits of its threads and scopes.
#[derive(Debug, Clone)]
pub struct ImageService {
    images: Arc<dyn Images>,
    buckets: Arc<dyn EventLog>,
    scopes: ScopePolicies,
}

/// A copy of a thread, as its caller wants it.
#[derive(Debug)]
pub struct ForkDraft {
    /// An object; by default the copied metadata.
    pub metadata: Option<Json>,
    /// The owner; by default the caller's, and without one that of the source.
    pub owner: Option<Owner>,
    /// The parts to copy.
    pub included: Included,
    /// The checkpoint that state and metadata are copied from; by default the source has them.
    pub checkpoint: Option<u32>,
    /// The place of the last item of the history to copy; by default all are copied.
    pub until: Option<u64>,
    /// The lifetime after the last use; by default that of the source.
    pub ttl: Option<Duration>,
}

impl ImageService {
    /// A service over a store, which bounds its own calls.
    #[must_use]
    pub fn new(images: Arc<dyn Images>, buckets: Arc<dyn EventLog>, scopes: ScopePolicies) -> Self {
        Self {
            images,
            buckets,
            scopes,
        }
    }

    /// The same service over another store.
    #[must_use]
    pub fn over(&self, images: Arc<dyn Images>, buckets: Arc<dyn EventLog>) -> Self {
        Self {
            images,
            buckets,
            ..self.clone()
        }
    }

    /// Limits of histories.
    #[must_use]
    pub fn scope_policies(&self) -> &ScopePolicies {
        &self.scopes
    }

    /// All that a thread has at one moment; none if the thread does not exist. This is no use of the thread.
    ///
    /// # Errors
    /// [`ServiceError::Refused`] or [`ServiceError::Store`].
    pub async fn export(
        &self,
        id: &ThreadId,
        access: Access,
    ) -> Result<Option<Image>, ServiceError> {
        Ok(self.images.export(id, access).await?)
    }

    /// Makes a thread of an image.
    ///
    /// # Errors
    /// [`ServiceError::Refused`] or [`ServiceError::Store`].
    pub async fn import(
        &self,
        threads: &ThreadService,
        id: &ThreadId,
        image: &Image,
        if_exists: IfExists,
        options: WriteOptions,
    ) -> Result<Imported, ServiceError> {
        let policy = threads.policy();
        image.check(policy, &self.scopes.of(&ScopeId::Thread(*id)))?;
        let unplaced = Import {
            image,
            origin: None,
            if_exists,
            has_place: !threads.limits_owners(),
            turn: options.turn,
            idempotency: threads.own(options.idempotency),
            policy,
        };
        threads.limited(id, true, async { Ok(()) }).await?;
        match self.images.import(id, &unplaced).await {
            Err(WriteError::Refused(Refusal::NoPlace)) => {}
            imported => return Ok(imported?),
        }
        let placed = Import {
            has_place: true,
            ..unplaced
        };
        let importing = async { self.images.import(id, &placed).await };
        threads
            .with_place(image.thread.owner.as_ref().map(Owner::tag), importing)
            .await
    }

    /// Makes a copy of a thread, as its caller may. The options are about the source.
    ///
    /// # Errors
    /// [`ServiceError::Refused`] or [`ServiceError::Store`].
    pub async fn fork(
        &self,
        threads: &ThreadService,
        source: &ThreadId,
        id: &ThreadId,
        draft: &ForkDraft,
        options: WriteOptions,
    ) -> Result<Written, ServiceError> {
        let fork = Fork {
            included: draft.included,
            checkpoint: draft.checkpoint,
            until: draft.until,
            metadata: draft.metadata.as_ref(),
            owner: draft.owner.as_ref().or(threads.owner.as_ref()),
            has_place: !threads.limits_owners(),
            ttl: draft.ttl,
            policy: threads.policy(),
            conditions: threads.conditions(options),
        };
        fork.check()?;
        threads.limited(id, true, async { Ok(()) }).await?;
        match self.images.fork(source, id, &fork).await {
            Err(WriteError::Refused(Refusal::NoPlace)) => {}
            forked => return Ok(forked?),
        }
        let its_owner = match fork.owner {
            Some(_) => None,
            None => threads
                .get_thread(source)
                .await?
                .and_then(|thread| thread.owner),
        };
        // even if the source gets another owner meanwhile: the place is for this one
        let owner = fork.owner.or(its_owner.as_ref());
        let placed = Fork {
            owner,
            has_place: true,
            ..fork
        };
        let forking = async { self.images.fork(source, id, &placed).await };
        threads.with_place(owner.map(Owner::tag), forking).await
    }

    /// The first of these ids, given by their number, that is in the bucket of a thread, where a copy costs least.
    #[must_use]
    pub fn id_near(&self, source: &ThreadId, id: impl Fn(u32) -> ThreadId) -> ThreadId {
        let bucket = self.buckets.bucket_of(source);
        let mut ids = (0..TRIED_IDS).map(&id);
        let near = ids.find(|id| self.buckets.bucket_of(id) == bucket);
        near.unwrap_or_else(|| id(0))
    }
}

impl Default for ForkDraft {
    fn default() -> Self {
        Self {
            metadata: None,
            owner: None,
            included: Included::ALL,
            checkpoint: None,
            until: None,
            ttl: None,
        }
    }
}
