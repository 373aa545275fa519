//! Exports, imports and forks whole threads.

use std::sync::Arc;
use std::time::Duration;

use super::{ServiceError, ThreadService, WriteOptions};
use threadkeep_domain::scope::{ScopeId, ScopePolicies};
use threadkeep_domain::{
    Access, Fork, IfExists, Image, Import, Included, Json, Owner, Refusal, ThreadId, Written,
};
use threadkeep_store::{EventLog, Images, Imported, WriteError};

/// Number of candidate ids to try when storing a copy in its source's bucket (store partition). There are up to 256
/// buckets. If no candidate is in that bucket, the copy is stored in a different bucket.
const TRIED_IDS: u32 = 4_096;

#[derive(Debug, Clone)]
pub struct ImageService {
    images: Arc<dyn Images>,
    buckets: Arc<dyn EventLog>,
    scopes: ScopePolicies,
}

#[derive(Debug)]
pub struct ForkDraft {
    /// A JSON object. Default: the metadata of the source.
    pub metadata: Option<Json>,
    /// Owner of the copy. Default: the caller's owner or, if the caller has no owner, the source's owner.
    pub owner: Option<Owner>,
    pub included: Included,
    /// Number of the checkpoint to copy state and metadata from. Default: the current state and metadata.
    pub checkpoint: Option<u32>,
    /// Sequence number of the last history item to copy. Default: all items.
    pub until: Option<u64>,
    /// Idle lifetime of the copy. Default: the source's idle lifetime.
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

    /// Returns a snapshot of everything that a thread holds, or `None` if the thread does not exist. Does not extend
    /// the thread's lifetime.
    pub async fn export(
        &self,
        id: &ThreadId,
        access: Access,
    ) -> Result<Option<Image>, ServiceError> {
        Ok(self.images.export(id, access).await?)
    }

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
        let unreserved = Import {
            image,
            origin: None,
            if_exists,
            has_reservation: !threads.limits_owners(),
            turn: options.turn,
            idempotency: threads.own(options.idempotency),
            policy,
        };
        threads.limited(id, true, async { Ok(()) }).await?;
        match self.images.import(id, &unreserved).await {
            Err(WriteError::Refused(Refusal::NoReservation)) => {}
            imported => return Ok(imported?),
        }
        let reserved = Import {
            has_reservation: true,
            ..unreserved
        };
        let importing = async { self.images.import(id, &reserved).await };
        threads
            .with_reservation(image.thread.owner.as_ref().map(Owner::tag), importing)
            .await
    }

    /// Copies the thread `source` to `id`. `options` apply to `source`.
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
            has_reservation: !threads.limits_owners(),
            ttl: draft.ttl,
            policy: threads.policy(),
            conditions: threads.conditions(options),
        };
        fork.check()?;
        threads.limited(id, true, async { Ok(()) }).await?;
        match self.images.fork(source, id, &fork).await {
            Err(WriteError::Refused(Refusal::NoReservation)) => {}
            forked => return Ok(forked?),
        }
        let source_owner = match fork.owner {
            Some(_) => None,
            None => threads
                .get_thread(source)
                .await?
                .and_then(|thread| thread.owner),
        };
        // sets the owner explicitly: the slot is reserved for this owner, but the source's owner may change
        let owner = fork.owner.or(source_owner.as_ref());
        let reserved = Fork {
            owner,
            has_reservation: true,
            ..fork
        };
        let forking = async { self.images.fork(source, id, &reserved).await };
        threads
            .with_reservation(owner.map(Owner::tag), forking)
            .await
    }

    /// Returns the first candidate id in the same bucket (store partition) as `source`, or `id(0)` if no candidate
    /// matches. Copying within a bucket is cheapest. `id` maps a number to a candidate.
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
