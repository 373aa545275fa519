//! Threads as a whole: exports, imports and forks.

use std::sync::Arc;
use std::time::Duration;

use super::{ServiceError, ThreadService, WriteOptions};
use crate::domain::scope::{ScopeId, ScopePolicies};
use crate::domain::{
    Access, Fork, IfExists, Image, Import, Included, Json, Owner, Refusal, ThreadId, Written,
};
use crate::store::{EventLog, Images, Imported};

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
    /// An object; by default the metadata of the source.
    pub metadata: Option<Json>,
    /// The owner; by default the caller's, and without one that of the source.
    pub owner: Option<Owner>,
    /// The parts to copy.
    pub included: Included,
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
    pub(crate) fn over(&self, images: Arc<dyn Images>, buckets: Arc<dyn EventLog>) -> Self {
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
    /// [`ServiceError::ThreadExists`], [`ServiceError::Refused`] or [`ServiceError::Store`].
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
        let import = Import {
            image,
            origin: None,
            if_exists,
            turn: options.turn,
            idempotency: options.idempotency,
            policy,
        };
        Ok(self.images.import(id, &import).await?)
    }

    /// Makes a copy of a thread, as its caller may. The options are about the source.
    ///
    /// # Errors
    /// [`ServiceError::ThreadNotFound`] without a source, [`ServiceError::ThreadExists`], [`ServiceError::Refused`] or
    /// [`ServiceError::Store`].
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
            metadata: draft.metadata.as_ref(),
            owner: draft.owner.as_ref().or(threads.owner.as_ref()),
            ttl: draft.ttl,
            access: threads.access,
            precondition: options.precondition,
            turn: options.turn,
            idempotency: options.idempotency,
            policy: threads.policy(),
        };
        fork.check()?;
        match self
            .images
            .fork(source, id, &fork)
            .await
            .map_err(Into::into)
        {
            Err(ServiceError::Refused(Refusal::NoThread)) => Err(ServiceError::ThreadNotFound),
            forked => forked,
        }
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
            ttl: None,
        }
    }
}
