use std::time::Duration;

use bytes::Bytes;
use tokio::task::yield_now;
use tokio::time::sleep;

use super::entry::ClientView;
use super::options;
use crate::{ServiceError, ThreadService, WriteOptions};
use threadkeep_domain::{
    IdempotencyKey, Json, KeyedValues, Life, MetadataChange, Operation, Precondition, Refusal,
    Snapshot, Stamp, ThreadId, ThreeWay, Tombstone, Write,
};

/// Number of attempts before the first pause.
const ATTEMPTS_BEFORE_PAUSE: u32 = 8;
/// Pause between attempts after the first [`ATTEMPTS_BEFORE_PAUSE`]. Saves CPU time: each attempt may compare two
/// states of about 1 MB, and concurrent writes may make attempts fail until the client's timeout.
const PAUSE: Duration = Duration::from_millis(50);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// The client's snapshot was the latest version.
    Latest,
    /// Other writers have changed the thread since the client's snapshot.
    Earlier,
    /// There was no snapshot, so the save set keys but did not delete any keys.
    Nothing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Saved {
    pub basis: Basis,
    /// Number of retries because of concurrent writes.
    pub conflicts: u32,
}

/// A state to save, compared with the client's snapshot.
pub(super) struct Save<'a> {
    threads: &'a ThreadService,
    id: &'a ThreadId,
    metadata: Option<MetadataChange>,
    tombstone: Tombstone,
    /// The version of the client's snapshot, and the comparison of `state` with the snapshot.
    base: Option<(Stamp, ThreeWay)>,
    state: KeyedValues,
}

enum Attempt {
    Done(Stamp),
    /// A concurrent write changed the thread first.
    Overtaken,
    /// The client's snapshot is from a different life of the thread.
    AnotherLife,
}

impl<'a> Save<'a> {
    pub(super) fn new(
        threads: &'a ThreadService,
        id: &'a ThreadId,
        view: ClientView,
        state: KeyedValues,
        metadata: Option<Json>,
    ) -> Self {
        let empty = Snapshot::default();
        let (tombstone, base) = match view {
            ClientView::Snapshot(stamp, snapshot) => {
                let compared = ThreeWay::new(Some(&snapshot), &state);
                (
                    Tombstone::EnforcedAfter(stamp.life),
                    Some((stamp, compared)),
                )
            }
            ClientView::Absent => {
                let compared = ThreeWay::new(Some(&empty), &state);
                (Tombstone::Ignored, Some((Stamp::default(), compared)))
            }
            ClientView::Destroyed(life) => (Tombstone::EnforcedAfter(life), None),
            ClientView::Nothing => (Tombstone::Ignored, None),
        };
        Self {
            threads,
            id,
            metadata: metadata.map(|new| MetadataChange { new, old: None }),
            tombstone,
            base,
            state,
        }
    }

    /// Writes the state, and retries after each concurrent write.
    pub(super) async fn run(&self, key: Option<IdempotencyKey>) -> Result<Saved, ServiceError> {
        let mut conflicts = 0;
        loop {
            let (basis, attempt) = self.attempt(key).await?;
            match attempt {
                Attempt::Done(_) => return Ok(Saved { basis, conflicts }),
                Attempt::Overtaken | Attempt::AnotherLife => conflicts += 1,
            }
            if conflicts < ATTEMPTS_BEFORE_PAUSE {
                yield_now().await;
            } else {
                sleep(PAUSE).await;
            }
        }
    }

    async fn attempt(&self, key: Option<IdempotencyKey>) -> Result<(Basis, Attempt), ServiceError> {
        if let Some((base, compared)) = &self.base {
            match self.compared(*base, compared, key).await? {
                Attempt::AnotherLife => {}
                Attempt::Done(stamp) if stamp.version <= base.version + 1 => {
                    return Ok((Basis::Latest, Attempt::Done(stamp)));
                }
                attempt => return Ok((Basis::Earlier, attempt)),
            }
        }
        // reached only without a snapshot of the thread's current life
        let blind = ThreeWay::new(None, &self.state);
        let attempt = self.with_stored(&blind, key, |_| true).await?;
        Ok((Basis::Nothing, attempt))
    }

    /// Writes the changes since the client's snapshot. Reads the store only if arrays have changed.
    async fn compared(
        &self,
        base: Stamp,
        compared: &ThreeWay,
        key: Option<IdempotencyKey>,
    ) -> Result<Attempt, ServiceError> {
        let existed = base.version > 0;
        if compared.open_keys().is_empty() {
            let operations = compared.operations(&[]);
            let precondition = existed.then_some(Precondition::Life(base.life));
            let attempt = self.write(base, &operations, precondition, key).await?;
            return Ok(match attempt {
                Attempt::Overtaken => Attempt::AnotherLife,
                attempt => attempt,
            });
        }
        self.with_stored(compared, key, |life| !existed || life == base.life)
            .await
    }

    /// Merges the changes with the stored values, and writes the result unless another writer changes the thread first.
    async fn with_stored(
        &self,
        compared: &ThreeWay,
        key: Option<IdempotencyKey>,
        is_expected_life: impl Fn(Life) -> bool,
    ) -> Result<Attempt, ServiceError> {
        let keys = compared.open_keys();
        let found = self
            .threads
            .store
            .get_values(self.id, self.threads.reader(), &keys)
            .await?;
        let stamp = found.as_ref().map_or(Stamp::default(), |found| found.stamp);
        if !is_expected_life(stamp.life) {
            return Ok(Attempt::AnotherLife);
        }
        let values = found.map_or_else(Vec::new, |found| found.content);
        let texts = values.iter().map(|value| value.as_ref().map(text));
        let operations = compared.operations(&texts.collect::<Vec<_>>());
        let precondition = match stamp.version {
            0 => Precondition::Version(0),
            _ => Precondition::Stamp(stamp),
        };
        self.write(stamp, &operations, Some(precondition), key)
            .await
    }

    async fn write(
        &self,
        stamp: Stamp,
        operations: &[Operation],
        precondition: Option<Precondition>,
        key: Option<IdempotencyKey>,
    ) -> Result<Attempt, ServiceError> {
        if operations.is_empty() && self.metadata.is_none() {
            return Ok(Attempt::Done(stamp));
        }
        let write = Write {
            operations,
            metadata: self.metadata.as_ref(),
            tombstone: self.tombstone,
            ..self.threads.plain(WriteOptions {
                precondition,
                ..options(key)
            })
        };
        match self.threads.commit(self.id, &write).await {
            Ok(written) => Ok(Attempt::Done(written.stamp)),
            Err(ServiceError::Refused(Refusal::VersionMismatch { .. })) => Ok(Attempt::Overtaken),
            Err(error) => Err(error),
        }
    }
}

/// Returns JSON from the store as text. Stored JSON is always UTF-8.
fn text(json: &Bytes) -> &str {
    std::str::from_utf8(json).unwrap_or("null")
}
