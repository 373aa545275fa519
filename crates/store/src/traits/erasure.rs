use std::fmt;
use std::time::Duration;

use async_trait::async_trait;

use crate::StoreError;
use threadkeep_domain::{AHEAD_MAX_MS, Life, OwnerTag, ThreadId};

/// Progress of an erasure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Erased {
    /// Threads ended.
    pub threads: u64,
    /// Archives deleted.
    pub archives: u64,
}

/// An erased life, recorded under one of the ids that the thread had during that life. The record is kept for as long
/// as the event log may contain events from the life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ErasedLife {
    /// The thread.
    pub id: ThreadId,
    /// The life. `None` if it is unknown because the data was lost before the erasure.
    pub life: Option<Life>,
    /// Time of the first write, in Unix milliseconds; 0 if unknown.
    pub created_ms: u64,
}

impl ErasedLife {
    /// Returns a time before the first event of the life in the log. It is earlier than `created_ms`, because the
    /// creation time of an imported thread may be ahead of the clock that sets the times of events.
    pub fn logged_from_ms(&self) -> u64 {
        self.created_ms.saturating_sub(AHEAD_MAX_MS)
    }
}

/// Erases the data of an owner in small, idempotent steps. A life is removed from the owner's lists only after all its
/// data was deleted, so repeating the steps after a crash finishes the work.
#[async_trait]
pub trait Erasure: fmt::Debug + Send + Sync {
    /// Erases some threads of an owner, each in one atomic step. Each step ends the thread without an archive, leaves a
    /// tombstone for the time `tombstone`, deletes the scope, checkpoints and remembered answers, and records the life
    /// as erased under all its ids. Then erases some archives in the same way.
    ///
    /// Returns `None` if no data remains: for each bucket, there was a moment during the call when the bucket contained
    /// neither threads nor archives of the owner.
    async fn erase_owned(
        &self,
        owner: OwnerTag,
        tombstone: Duration,
    ) -> Result<Option<Erased>, StoreError>;

    /// Returns some lives from the owner's list of erased lives. An empty result means that the list is empty. If
    /// writes wait for replicas, it also means that the replicas have received the whole erasure.
    async fn erased_lives(&self, owner: OwnerTag) -> Result<Vec<ErasedLife>, StoreError>;

    /// Deletes the events of `lives` from the log, except end and rotation events. Does not affect
    /// [`EventLog::log_horizons`](crate::EventLog::log_horizons).
    async fn purge_log(&self, owner: OwnerTag, lives: &[ErasedLife]) -> Result<(), StoreError>;

    /// Removes `lives` from the owner's list of erased lives.
    async fn forget_lives(&self, owner: OwnerTag, lives: &[ErasedLife]) -> Result<(), StoreError>;
}
