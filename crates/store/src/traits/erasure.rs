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

/// An erased life under one of its ids, recorded while its events may be in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ErasedLife {
    /// The thread.
    pub id: ThreadId,
    /// The life; `None` if its data was lost earlier and the life is unknown.
    pub life: Option<Life>,
    /// Time of the first write; 0 if unknown.
    pub created_ms: u64,
}

impl ErasedLife {
    /// Returns the time before which the log has no event of the life. An imported thread may start ahead of the clock.
    pub fn logged_from_ms(&self) -> u64 {
        self.created_ms.saturating_sub(AHEAD_MAX_MS)
    }
}

/// The erasure of an owner in incremental, idempotent steps. The owner's lists drop a life only when nothing of it remains,
/// so the same steps finish the work after a crash.
#[async_trait]
pub trait Erasure: fmt::Debug + Send + Sync {
    /// Erases some threads of an owner, each atomically: ends the thread without an archive, leaves a tombstone for
    /// `tombstone`, deletes its scope, checkpoints and remembered answers, and records the life as erased under all its ids.
    /// Then erases some archives likewise.
    ///
    /// Returns `None` if, at some moment during the call, each bucket had no thread and no archive of the owner.
    async fn erase_owned(
        &self,
        owner: OwnerTag,
        tombstone: Duration,
    ) -> Result<Option<Erased>, StoreError>;

    /// Returns some of the owner's erased lives. An empty list means that none remain and, if writes wait for replicas, that
    /// replicas have the whole erasure.
    async fn erased_lives(&self, owner: OwnerTag) -> Result<Vec<ErasedLife>, StoreError>;

    /// Deletes the events of `lives` from the log, except those of their ends and moves. The horizons do not change.
    async fn purge_log(&self, owner: OwnerTag, lives: &[ErasedLife]) -> Result<(), StoreError>;

    /// Removes `lives` from the owner's erased ones.
    async fn forget_lives(&self, owner: OwnerTag, lives: &[ErasedLife]) -> Result<(), StoreError>;
}
