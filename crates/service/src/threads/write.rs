//! Writes to threads. Each write is a single atomic step of the store.

use std::time::Duration;

use super::work_budget::WorkBudget;
use crate::attempts::until_unchanged;
use crate::{ServiceError, ThreadService, WriteOptions};
use threadkeep_domain::scope::{HistoryItem, HistoryLimit};
use threadkeep_domain::{
    Conditions, Json, KeyedValues, MetadataChange, Operation, Owner, OwnerChange, OwnerTag,
    Precondition, Refusal, ThreadId, Write, Written, check_depth, check_settles, merge_json,
};
use threadkeep_store::{Destroy, Destroyed, Rotate, Rotated, WriteError};

#[derive(Debug, Default)]
pub struct NewThread {
    /// A JSON object. Default: `{}`.
    pub metadata: Option<Json>,
    /// Idle lifetime. Default: the policy's TTL.
    pub ttl: Option<Duration>,
    /// Default: the caller's owner, if there is one.
    pub owner: Option<Owner>,
    pub state: KeyedValues,
}

#[derive(Debug, Default)]
pub struct ThreadPatch {
    /// A merge patch (RFC 7396).
    pub metadata: Option<Json>,
    pub ttl: Option<Duration>,
    /// `Some(None)` removes the owner.
    pub owner: Option<Option<Owner>>,
}

impl ThreadService {
    /// Runs all operations in order, or none of them, without loading the state. Creates the thread if it does not
    /// exist.
    pub async fn merge(
        &self,
        id: &ThreadId,
        operations: &[Operation],
        options: WriteOptions,
    ) -> Result<Written, ServiceError> {
        let write = Write {
            operations,
            ..self.plain(options)
        };
        self.commit(id, &write).await
    }

    /// Like [`Self::merge`], but the operations may also append to the history, within the limits of `history`.
    pub async fn merge_with_history(
        &self,
        id: &ThreadId,
        operations: &[Operation],
        history: HistoryLimit,
        options: WriteOptions,
    ) -> Result<Written, ServiceError> {
        let write = Write {
            operations,
            history,
            ..self.plain(options)
        };
        self.commit(id, &write).await
    }

    /// Runs operations and replaces the metadata, in one step.
    pub async fn merge_with_metadata(
        &self,
        id: &ThreadId,
        operations: &[Operation],
        new: Json,
        options: WriteOptions,
    ) -> Result<Written, ServiceError> {
        let write = Write {
            operations,
            metadata: Some(&MetadataChange { new, old: None }),
            ..self.plain(options)
        };
        self.commit(id, &write).await
    }

    /// Replaces the metadata of an existing thread. Returns the whole thread.
    pub async fn replace_metadata(
        &self,
        id: &ThreadId,
        new: Json,
        options: WriteOptions,
    ) -> Result<Written, ServiceError> {
        let write = Write {
            metadata: Some(&MetadataChange { new, old: None }),
            describe: true,
            ..self.plain(options.requiring(Precondition::Exists))
        };
        self.commit(id, &write).await
    }

    pub async fn replace(
        &self,
        id: &ThreadId,
        state: KeyedValues,
        options: WriteOptions,
    ) -> Result<Written, ServiceError> {
        let mut operations = vec![Operation::Clear];
        operations.extend(set_all(state));
        self.merge(id, &operations, options).await
    }

    /// Changes the metadata, TTL or owner of a thread. Creates the thread if it does not exist. Returns the whole
    /// thread.
    pub async fn patch_thread(
        &self,
        id: &ThreadId,
        patch: ThreadPatch,
        options: WriteOptions,
    ) -> Result<Written, ServiceError> {
        if patch.metadata.is_some() {
            self.admit(id).await?;
        }
        let work_budget = WorkBudget::new(self.timeout);
        until_unchanged(self.timeout, || async {
            let metadata = match &patch.metadata {
                Some(metadata) => Some(self.patch_metadata(id, metadata, &work_budget).await?),
                None => None,
            };
            let write = Write {
                metadata: metadata.as_ref(),
                ttl: patch.ttl,
                describe: true,
                ..self.plain(options)
            };
            let owner = match &patch.owner {
                Some(Some(owner)) => OwnerChange::Set(owner),
                Some(None) => OwnerChange::Clear,
                None => write.owner,
            };
            self.commit(id, &Write { owner, ..write }).await
        })
        .await
    }

    /// Creates a thread. Fails with [`ServiceError::ThreadExists`] if the thread exists. Returns the whole thread.
    pub async fn create(
        &self,
        id: &ThreadId,
        new: NewThread,
        options: WriteOptions,
    ) -> Result<Written, ServiceError> {
        let history = Write::new(&self.policy).history;
        self.create_with_history(id, new, Vec::new(), history, options)
            .await
    }

    /// Like [`Self::create`], but also appends `items` to the history in the same step, within the limits of `history`.
    ///
    /// If an item reuses an id, the index in [`AppendReusesId`](Refusal::AppendReusesId) is the item's position among
    /// all operations: one for each key of the state, then one for each item.
    pub async fn create_with_history(
        &self,
        id: &ThreadId,
        new: NewThread,
        items: Vec<HistoryItem>,
        history: HistoryLimit,
        options: WriteOptions,
    ) -> Result<Written, ServiceError> {
        let metadata = new.metadata.map(|new| MetadataChange { new, old: None });
        let items = items.into_iter().map(Operation::Append);
        let operations: Vec<_> = set_all(new.state).chain(items).collect();
        let write = Write {
            operations: &operations,
            history,
            metadata: metadata.as_ref(),
            ttl: new.ttl,
            describe: true,
            ..self.plain(options.requiring(Precondition::Version(0)))
        };
        let owner = new.owner.as_ref().map_or(write.owner, OwnerChange::Set);
        match self.commit(id, &Write { owner, ..write }).await {
            Err(ServiceError::Refused(Refusal::VersionMismatch { .. })) => {
                Err(ServiceError::ThreadExists)
            }
            written => written,
        }
    }

    /// Ends a thread. Its id rejects writes for the tombstone time.
    pub async fn destroy(
        &self,
        id: &ThreadId,
        options: WriteOptions,
    ) -> Result<Destroyed, ServiceError> {
        self.end(id, options, self.policy.tombstone).await
    }

    /// Moves a thread to a new id, in one step. The old id rejects writes for the policy's tombstone time. If the
    /// thread does not exist, only generates a new id.
    pub async fn rotate(
        &self,
        id: &ThreadId,
        options: WriteOptions,
    ) -> Result<Rotated, ServiceError> {
        let rotate = Rotate {
            conditions: self.conditions(options),
            tombstone: self.policy.tombstone,
        };
        let rotated = self.store.rotate(id, &rotate);
        Ok(self.limited(id, false, rotated).await?)
    }

    /// Ends a thread without a tombstone (a mark that blocks writes to its id for a while), so that callers that have
    /// no other id can immediately recreate the thread.
    pub async fn destroy_for_reuse(
        &self,
        id: &ThreadId,
        options: WriteOptions,
    ) -> Result<Destroyed, ServiceError> {
        self.end(id, options, Duration::ZERO).await
    }

    async fn end(
        &self,
        id: &ThreadId,
        options: WriteOptions,
        tombstone: Duration,
    ) -> Result<Destroyed, ServiceError> {
        let destroy = Destroy {
            tombstone,
            conditions: self.conditions(options),
        };
        let destroyed = self.store.destroy(id, &destroy);
        Ok(self.limited(id, false, destroyed).await?)
    }

    /// Runs a write. Rejects a write that exceeds the owner's thread limit, writes a reserved key, or nests a value too
    /// deeply.
    pub(crate) async fn commit(
        &self,
        id: &ThreadId,
        write: &Write<'_>,
    ) -> Result<Written, ServiceError> {
        self.reserved_keys.check(write.operations)?;
        check_depth(write.operations)?;
        check_settles(write.operations, write.conditions.turn)?;
        // tries without a reserved slot first: most threads already have an owner, so most writes do not need a slot
        let unreserved = Write {
            has_reservation: false,
            ..*write
        };
        let first = self.limited(id, true, self.store.write(id, &unreserved));
        self.with_reservation_if_needed(write.owner, first, async {
            self.limited(id, true, self.store.write(id, write)).await
        })
        .await
    }

    /// Fails if any keys are reserved, because replacing the whole state would change them.
    pub(crate) fn may_replace(&self) -> Result<(), Refusal> {
        self.reserved_keys.check(&[Operation::Clear])
    }

    /// Runs `unreserved`. If the store rejects it because it needs a slot (a place within the owner's thread limit),
    /// reserves a slot and runs `reserved`.
    pub(crate) async fn with_reservation_if_needed<T>(
        &self,
        owner: OwnerChange<'_>,
        unreserved: impl Future<Output = Result<T, WriteError>>,
        reserved: impl Future<Output = Result<T, WriteError>>,
    ) -> Result<T, ServiceError> {
        let (Some(limit), Some(owner)) = (&self.owner_limit, owner.wanted()) else {
            return Ok(reserved.await?);
        };
        match unreserved.await {
            Err(WriteError::Refused(Refusal::NoReservation)) => {
                limit.with_reservation(owner.tag(), reserved).await
            }
            written => Ok(written?),
        }
    }

    pub(crate) fn limits_owners(&self) -> bool {
        self.owner_limit.is_some()
    }

    /// Reserves a slot of `owner` while `making` creates a whole thread.
    pub(crate) async fn with_reservation<T>(
        &self,
        owner: Option<OwnerTag>,
        making: impl Future<Output = Result<T, WriteError>>,
    ) -> Result<T, ServiceError> {
        match (&self.owner_limit, owner) {
            (Some(limit), Some(owner)) => {
                let limit = limit.for_whole_threads();
                limit.with_reservation(owner, making).await
            }
            _ => Ok(making.await?),
        }
    }

    pub(crate) fn conditions(&self, options: WriteOptions) -> Conditions {
        Conditions {
            precondition: options.precondition,
            access: self.access,
            turn: options.turn,
            idempotency: self.own(options.idempotency),
        }
    }

    /// Returns a write without operations, under the caller's conditions.
    pub fn plain(&self, options: WriteOptions) -> Write<'_> {
        Write {
            owner: self
                .owner
                .as_ref()
                .map_or(OwnerChange::None, OwnerChange::Bind),
            conditions: self.conditions(options),
            ..Write::new(&self.policy)
        }
    }

    async fn patch_metadata(
        &self,
        id: &ThreadId,
        patch: &Json,
        work_budget: &WorkBudget,
    ) -> Result<MetadataChange, ServiceError> {
        let thread = self.store.get_thread(id, self.access.into()).await?;
        let old = thread.map_or_else(Json::empty_object, |thread| thread.metadata);
        work_budget.spend(old.as_str().len() + patch.as_str().len())?;
        Ok(MetadataChange {
            new: merge_json(Some(&old), patch),
            old: Some(old),
        })
    }
}

fn set_all(state: KeyedValues) -> impl Iterator<Item = Operation> {
    state
        .into_iter()
        .map(|(key, value)| Operation::Set { key, value })
}
