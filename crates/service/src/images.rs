//! Reads and writes threads as a whole: exports, imports and forks.

use std::sync::Arc;
use std::time::Duration;

use super::{ServiceError, ThreadService, WriteOptions};
use threadkeep_domain::scope::{ScopeId, ScopePolicies};
use threadkeep_domain::{
    Access, Fork, IfExists, Image, Import, Included, Json, Owner, Refusal, ThreadId, Written,
};
use threadkeep_store::{EventLog, Images, Imported, WriteError};

/// Number of ids to try for one in a given bucket; there are up to 256 buckets. If none matches, the copy crosses buckets.
const TRIED_IDS: u32 = 4_096;

#[derive(Debug, Clone)]
pub struct ImageService {
    images: Arc<dyn Images>,
    buckets: Arc<dyn EventLog>,
    scopes: ScopePolicies,
}

/// Options of a fork.
#[derive(Debug)]
pub struct ForkDraft {
    /// An object. Default: the metadata of the source.
    pub metadata: Option<Json>,
    /// Default: the owner of the caller, else that of the source.
    pub owner: Option<Owner>,
    pub included: Included,
    /// Checkpoint to copy state and metadata from. Default: the current ones.
    pub checkpoint: Option<u32>,
    /// Sequence number of the last history item to copy. Default: all items.
    pub until: Option<u64>,
    /// Idle lifetime. Default: that of the source.
    pub ttl: Option<Duration>,
}

impl ImageService {
    #[must_use]
    pub fn new(images: Arc<dyn Images>, buckets: Arc<dyn EventLog>, scopes: ScopePolicies) -> Self {
        Self {
            images,
            buckets,
            scopes,
        }
    }

    #[must_use]
    pub fn over(&self, images: Arc<dyn Images>, buckets: Arc<dyn EventLog>) -> Self {
        Self {
            images,
            buckets,
            ..self.clone()
        }
    }

    #[must_use]
    pub fn scope_policies(&self) -> &ScopePolicies {
        &self.scopes
    }

    /// Returns everything that a thread holds at one moment, or `None` if it does not exist. Does not extend the thread's
    /// lifetime.
    pub async fn export(
        &self,
        id: &ThreadId,
        access: Access,
    ) -> Result<Option<Image>, ServiceError> {
        Ok(self.images.export(id, access).await?)
    }

    /// Creates a thread from an image.
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

    /// Copies `source` to `id`. `options` apply to the source.
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
        // even if the source gets another owner meanwhile: the slot is reserved for this one
        let owner = fork.owner.or(its_owner.as_ref());
        let placed = Fork {
            owner,
            has_place: true,
            ..fork
        };
        let forking = async { self.images.fork(source, id, &placed).await };
        threads.with_place(owner.map(Owner::tag), forking).await
    }

    /// Returns the first candidate id in the bucket of `source`, where a copy is cheapest. `id` maps a number to a
    /// candidate.
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
