//! Threads for clients that work on copies: they are given a whole state, change it, and send back
//! a whole state, or operations.

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

/// Bytes of metadata.
const MAX_METADATA_BYTES: u64 = 131_072;

/// The threads that one client, such as a connection, works on copies of, and its latest snapshots of each.
///
/// A save of a whole state is compared with the client's snapshot, so that it changes only what the client has
/// changed; see [`threadkeep_domain::ThreeWay`]. Snapshots are kept as digests, in at most 4 MiB; the least recently used
/// thread is evicted first, and a save of it then sets keys and deletes none.
///
/// A destroyed thread rejects clients that have a snapshot from before and have seen nothing since, for the tombstone
/// time. All others begin a new life at once, since such clients continue to use the id.
///
/// Send calls for one thread one after the other. While the store does not answer, a call is retried until the
/// client's timeout: an answer that comes later is an empty state to it. So a snapshot counts for just as long, and
/// longer only if the client is known to have [received](Self::received) it. Each write has an idempotency key of its
/// own, so it is done once.
#[derive(Debug)]
pub struct Copies {
    threads: ThreadService,
    timeout: Duration,
    cache: Mutex<SnapshotCache>,
}

/// An answer with a thread's state.
#[derive(Debug)]
pub struct Restored {
    /// State and metadata; none if the thread does not exist.
    pub whole: Option<Whole>,
    /// The receipt to confirm when the client has the answer; none if that would be too late.
    pub receipt: Option<Receipt>,
}

impl Copies {
    /// Copies of those threads, for a client that waits so long. Metadata may have 128 KiB, more
    /// than by `/v1`: lists of archives hold it of each, so it is not without a bound.
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

    /// Gives a thread to the client.
    ///
    /// # Errors
    /// [`ServiceError::Store`]. The client then has nothing, whatever it was given before.
    pub async fn restore(
        &self,
        id: &ThreadId,
        asked: RequestTimes,
    ) -> Result<Restored, ServiceError> {
        let found = self
            .deadline(asked)
            .repeat(true, async || self.threads.get_whole(id).await)
            .await
            .inspect_err(|_| self.cache().fail(id))?;
        let known = found.as_ref().map_or(ClientView::Absent, |found| {
            let state = std::str::from_utf8(&found.content.state).unwrap_or("{}");
            ClientView::Snapshot(found.stamp, Snapshot::of(state).into())
        });
        // a client that may have given up on the answer by now has received nothing
        let until = asked.sent_after + self.timeout;
        let mut cache = self.cache();
        let receipt = if Instant::now() <= until {
            Some(cache.give(id, known, until))
        } else {
            cache.fail(id);
            None
        };
        Ok(Restored {
            whole: found.map(|found| found.content),
            receipt,
        })
    }

    /// Notes that the client has received an answer. Its later saves are based on it.
    pub fn received(&self, receipt: Receipt) {
        self.cache().received(receipt, Instant::now());
    }

    /// Puts a whole state in the place of the one that the client was given, its keys sorted, and
    /// sets the metadata as a whole, if there is any, in one step. A save that says nothing new is
    /// none.
    ///
    /// # Errors
    /// [`ServiceError::Refused`] by a limit or a tombstone, and nothing has changed;
    /// [`ServiceError::Store`].
    pub async fn save(
        &self,
        id: &ThreadId,
        state: KeyedValues,
        metadata: Option<Json>,
        asked: RequestTimes,
    ) -> Result<Saved, ServiceError> {
        let known = self.cache().basis(id, &state, asked.read);
        let save = Save::new(&self.threads, id, known, state, metadata);
        let deadline = self.deadline(asked);
        deadline.repeat_keyed(async |key| save.run(key).await).await
    }

    /// Runs operations in order, all or none, without loading the state, and sets the metadata as a
    /// whole, if there is any, in one step.
    ///
    /// # Errors
    /// As [`Self::save`].
    pub async fn merge(
        &self,
        id: &ThreadId,
        operations: &[Operation],
        metadata: Option<Json>,
        asked: RequestTimes,
    ) -> Result<Written, ServiceError> {
        let tombstone = match self.cache().known(id, asked.read) {
            ClientView::Snapshot(stamp, _) => Tombstone::HeededAfter(stamp.life),
            // the client that destroyed it may continue to use it
            ClientView::Nothing | ClientView::Absent | ClientView::Destroyed(_) => {
                Tombstone::Ignored
            }
        };
        let metadata = metadata.map(|new| MetadataChange { new, old: None });
        let merge = self.deadline(asked).repeat_keyed(async |idempotency| {
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

    /// Ends a thread. The client's later saves are rejected for the tombstone time, unless it has read again.
    ///
    /// # Errors
    /// [`ServiceError::Store`].
    pub async fn destroy(&self, id: &ThreadId, asked: RequestTimes) -> Result<(), ServiceError> {
        let destroy = self
            .deadline(asked)
            .repeat_keyed(async |key| self.threads.destroy(id, options(key)).await);
        destroy.await?;
        let mut cache = self.cache();
        match cache.known(id, asked.read) {
            ClientView::Snapshot(stamp, _) => cache.note(id, ClientView::Destroyed(stamp.life)),
            ClientView::Nothing | ClientView::Absent | ClientView::Destroyed(_) => {}
        }
        Ok(())
    }

    fn deadline(&self, asked: RequestTimes) -> RetryDeadline {
        RetryDeadline::new(asked, self.timeout)
    }

    /// It is held between no two awaits.
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
