//! Serves clients that work on copies of threads. A client receives a whole state, changes it, and sends back the whole
//! state or a list of operations.

mod entry;
mod retry;
mod saving;
mod snapshot_cache;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::{ServiceError, ThreadService, WriteOptions};
use entry::ClientView;
use retry::RetryDeadline;
use saving::Save;
use snapshot_cache::SnapshotCache;
use threadkeep_domain::{
    IdempotencyKey, Json, KeyedValues, MetadataChange, Operation, Snapshot, ThreadId, ThreadPolicy,
    Tombstone, Write, Written,
};
use threadkeep_store::Whole;

pub use retry::RequestTimes;
pub use saving::{Basis, Saved};
pub use snapshot_cache::Receipt;

const MAX_METADATA_BYTES: u64 = 131_072;

/// Tracks the threads that a single client, such as a connection, works on, and the client's latest snapshots of each
/// thread.
///
/// [`Self::save`] compares a whole state with the client's snapshot, and changes only the keys that the client has
/// changed: see [`threadkeep_domain::ThreeWay`]. Snapshots are stored as digests, which take up to 4 MiB of memory in
/// total. The least recently updated thread is evicted first. A save without a snapshot sets keys but deletes none.
///
/// After a thread is destroyed, its id rejects writes for a limited time (the tombstone time) from clients that have an
/// earlier snapshot and have not read the thread since. All other clients can immediately create the thread again.
///
/// Callers must send calls for the same thread one at a time. While the store is unavailable, calls are retried until
/// the client's timeout. A client that gets no answer before its timeout works on an empty state. A snapshot therefore
/// expires at the timeout unless the caller confirms with [`Self::received`] that the client has received it. Each
/// write has its own idempotency key, so retries apply it only once.
#[derive(Debug)]
pub struct Copies {
    threads: ThreadService,
    timeout: Duration,
    cache: Mutex<SnapshotCache>,
}

#[derive(Debug)]
pub struct Restored {
    /// State and metadata; `None` if the thread does not exist.
    pub whole: Option<Whole>,
    /// Receipt to pass to [`Copies::received`] once the client has the answer. `None` if the client's timeout has
    /// passed.
    pub receipt: Option<Receipt>,
}

impl Copies {
    /// Creates copies of `threads` for a client that waits up to `timeout`.
    ///
    /// Metadata may be larger than in the `/v1` API: up to 128 KiB, or up to the policy's limit if that is higher. A
    /// limit is needed because archive lists include the metadata.
    #[must_use]
    pub fn new(threads: &ThreadService, timeout: Duration) -> Self {
        let policy = threads.policy();
        let policy = ThreadPolicy {
            max_metadata_bytes: MAX_METADATA_BYTES.max(policy.max_metadata_bytes),
            ..*policy
        };
        Self {
            threads: threads.under(policy),
            timeout,
            cache: Mutex::default(),
        }
    }

    pub async fn restore(
        &self,
        id: &ThreadId,
        times: RequestTimes,
    ) -> Result<Restored, ServiceError> {
        let found = self
            .deadline(times)
            .repeat(true, async || self.threads.get_content(id).await)
            .await
            .inspect_err(|_| self.cache().fail(id))?;
        let view = found.as_ref().map_or(ClientView::Absent, |found| {
            let state = std::str::from_utf8(&found.content.state).unwrap_or("{}");
            ClientView::Snapshot(found.stamp, Snapshot::of(state).into())
        });
        // after its timeout, the client ignores the answer
        let until = times.sent_after + self.timeout;
        let mut cache = self.cache();
        let receipt = if Instant::now() <= until {
            Some(cache.give(id, view, until))
        } else {
            cache.fail(id);
            None
        };
        Ok(Restored {
            whole: found.map(|found| found.content),
            receipt,
        })
    }

    /// Confirms that the client has received an answer, so that later saves can be based on it.
    pub fn received(&self, receipt: Receipt) {
        self.cache().received(receipt, Instant::now());
    }

    /// Saves a client's complete state by writing only the differences from the client's snapshot. The keys of `state`
    /// must be sorted. If `metadata` is given, replaces the metadata in the same step. If nothing has changed, writes
    /// nothing.
    pub async fn save(
        &self,
        id: &ThreadId,
        state: KeyedValues,
        metadata: Option<Json>,
        times: RequestTimes,
    ) -> Result<Saved, ServiceError> {
        let view = self.cache().basis(id, &state, times.read);
        let save = Save::new(&self.threads, id, view, state, metadata);
        let deadline = self.deadline(times);
        deadline.repeat_keyed(async |key| save.run(key).await).await
    }

    /// Runs all operations in order, or none of them, without loading the state. Replaces the metadata in the same step
    /// if `metadata` is given.
    pub async fn merge(
        &self,
        id: &ThreadId,
        operations: &[Operation],
        metadata: Option<Json>,
        times: RequestTimes,
    ) -> Result<Written, ServiceError> {
        let tombstone = match self.cache().latest(id, times.read) {
            ClientView::Snapshot(stamp, _) => Tombstone::EnforcedAfter(stamp.life),
            // a client may reuse a thread that it has destroyed itself
            ClientView::Nothing | ClientView::Absent | ClientView::Destroyed(_) => {
                Tombstone::Ignored
            }
        };
        let metadata = metadata.map(|new| MetadataChange { new, old: None });
        let merge = self.deadline(times).repeat_keyed(async |idempotency| {
            let write = Write {
                operations,
                metadata: metadata.as_ref(),
                tombstone,
                ..self.threads.plain(options(idempotency))
            };
            self.threads.commit(id, &write).await
        });
        merge.await
    }

    /// Destroys a thread. During the tombstone time, the thread rejects the client's saves until the client reads the
    /// thread again.
    pub async fn destroy(&self, id: &ThreadId, times: RequestTimes) -> Result<(), ServiceError> {
        let destroy = self
            .deadline(times)
            .repeat_keyed(async |key| self.threads.destroy(id, options(key)).await);
        destroy.await?;
        let mut cache = self.cache();
        match cache.latest(id, times.read) {
            ClientView::Snapshot(stamp, _) => cache.note(id, ClientView::Destroyed(stamp.life)),
            ClientView::Nothing | ClientView::Absent | ClientView::Destroyed(_) => {}
        }
        Ok(())
    }

    fn deadline(&self, times: RequestTimes) -> RetryDeadline {
        RetryDeadline::new(times, self.timeout)
    }

    /// Callers must not hold the lock across an await.
    fn cache(&self) -> MutexGuard<'_, SnapshotCache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn options(idempotency: Option<IdempotencyKey>) -> WriteOptions {
    WriteOptions {
        idempotency,
        ..WriteOptions::default()
    }
}
