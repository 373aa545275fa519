//! Threads for clients that work on copies: they are given a whole state, change it, and send back
//! a whole state, or operations.

mod entry;
mod patience;
mod saving;
mod snapshot_cache;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::{ServiceError, ThreadService, WriteOptions};
use crate::domain::{
    IdempotencyKey, Json, KeyedValues, MetadataChange, Operation, Policy, Snapshot, ThreadId,
    Tombstone, Write, Written,
};
use crate::store::Whole;
use entry::ClientView;
use patience::Patience;
use saving::Save;
use snapshot_cache::SnapshotCache;

pub use patience::RequestTimes;
pub use saving::{Basis, Saved};
pub use snapshot_cache::Receipt;

/// Bytes of metadata.
const MAX_METADATA_BYTES: u64 = 131_072;

/// The threads that one client works on copies of, such as one connection, and what it was last
/// given of each.
///
/// A save of a whole state is compared with what the client was given, so that it changes what the
/// client has changed and nothing else; see [`crate::domain::ThreeWay`]. What was given is kept as
/// digests, in at most 4 MiB; the thread that was not used for longest is forgotten first, and a save
/// of it then sets keys and deletes none.
///
/// A thread that was destroyed holds off who was given it before and has seen nothing since, for the
/// tombstone time. Everybody else begins a new life at once, since such clients go on using the id.
///
/// Calls for one thread are to come one after the other. While the store does not answer, a call is
/// repeated for as long as the client has patience: an answer that it gives up waiting for is an
/// empty state to it. So what it was given counts for just as long, and longer only when the client is
/// known to have [received](Self::received) it. Each write has an idempotency key of its own, so it is done once.
#[derive(Debug)]
pub struct Copies {
    threads: ThreadService,
    patience: Duration,
    cache: Mutex<SnapshotCache>,
}

/// What a client is given of a thread.
#[derive(Debug)]
pub struct Restored {
    /// State and metadata; none: no such thread.
    pub whole: Option<Whole>,
    /// What is told of when the client has it; none: that would be too late.
    pub receipt: Option<Receipt>,
}

impl Copies {
    /// Copies of those threads, for a client that waits so long. Metadata may have 128 KiB, more
    /// than by `/v1`: lists of archives hold it of each, so it is not without a bound.
    #[must_use]
    pub fn new(threads: &ThreadService, patience: Duration) -> Self {
        let policy = threads.policy();
        let policy = Policy {
            max_metadata_bytes: MAX_METADATA_BYTES.max(policy.max_metadata_bytes),
            ..*policy
        };
        Self {
            threads: threads.under(policy),
            patience,
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
            .patience(asked)
            .repeat(true, async || self.threads.get_whole(id).await)
            .await
            .inspect_err(|_| self.cache().fail(id))?;
        let known = found.as_ref().map_or(ClientView::Absent, |found| {
            let state = std::str::from_utf8(&found.content.state).unwrap_or("{}");
            ClientView::Snapshot(found.stamp, Snapshot::of(state).into())
        });
        // who may have given up on the answer by now was given nothing
        let until = asked.sent_after + self.patience;
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

    /// The client has what it was given. What it saves later on is based on that.
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
        let patience = self.patience(asked);
        patience.repeat_keyed(async |key| save.run(key).await).await
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
            // who has destroyed it may go on with it
            ClientView::Nothing | ClientView::Absent | ClientView::Destroyed(_) => {
                Tombstone::Ignored
            }
        };
        let metadata = metadata.map(|new| MetadataChange { new, old: None });
        let merge = self.patience(asked).repeat_keyed(async |idempotency| {
            let write = Write {
                operations,
                metadata: metadata.as_ref(),
                tombstone,
                ..self.threads.plain(options(idempotency))
            };
            Ok(self.threads.store.write(id, &write).await?)
        });
        merge.await
    }

    /// Ends a thread. What the client saves of it afterwards is refused for the tombstone time,
    /// unless it has looked again.
    ///
    /// # Errors
    /// [`ServiceError::Store`].
    pub async fn destroy(&self, id: &ThreadId, asked: RequestTimes) -> Result<(), ServiceError> {
        let destroy = self
            .patience(asked)
            .repeat_keyed(async |key| self.threads.destroy(id, options(key)).await);
        destroy.await?;
        let mut cache = self.cache();
        match cache.known(id, asked.read) {
            ClientView::Snapshot(stamp, _) => cache.note(id, ClientView::Destroyed(stamp.life)),
            ClientView::Nothing | ClientView::Absent | ClientView::Destroyed(_) => {}
        }
        Ok(())
    }

    fn patience(&self, asked: RequestTimes) -> Patience {
        Patience::new(asked, self.patience)
    }

    /// It is held between no two awaits.
    fn cache(&self) -> MutexGuard<'_, SnapshotCache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn options(idempotency: Option<IdempotencyKey>) -> WriteOptions {
    WriteOptions {
        precondition: None,
        idempotency,
    }
}
