//! The erasure of owners.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;

use crate::StoreError;
use threadkeep_domain::{AHEAD_MAX_MS, Life, OwnerTag, ThreadId};

/// Numbers of an erasure so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Erased {
    /// Threads that were ended.
    pub threads: u64,
    /// Archives that were deleted.
    pub archives: u64,
}

/// A life of a thread that was erased, under one of the ids that it had, while its events may be in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ErasedLife {
    /// The thread.
    pub id: ThreadId,
    /// The life; none if its data was lost before, so that nobody knows which it was.
    pub life: Option<Life>,
    /// The time of its first write; zero if that is unknown.
    pub created_ms: u64,
}

impl ErasedLife {
    /// The time before which the log has no event of it. The first write of an imported thread may have been ahead of
    /// the store's clock.
    pub fn logged_from_ms(&self) -> u64 {
        self.created_ms.saturating_sub(AHEAD_MAX_MS)
    }
}

/// The erasure of an owner, in steps that each do some of the work, and change nothing when they are done again.
///
/// The owner's lists lose a life only when nothing of it is left. So after a crash at any point, the same steps find
/// all that is left.
#[async_trait]
pub trait Erasure: fmt::Debug + Send + Sync {
    /// Erases some threads of an owner, each in one step: the thread ends, without an archive and with a tombstone of
    /// that length, its scope, checkpoints and remembered answers are deleted, and it is noted among the erased lives,
    /// also under the ids that it had before. Then some archives, in the same way. None if there was nothing: in each bucket, at some moment during this call, the owner
    /// had no thread and no archive.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn erase_owned(
        &self,
        owner: OwnerTag,
        tombstone: Duration,
    ) -> Result<Option<Erased>, StoreError>;

    /// Some of the owner's erased lives; an empty list if none are left, and replicas have the whole erasure, if writes
    /// wait for replicas.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn erased_lives(&self, owner: OwnerTag) -> Result<Vec<ErasedLife>, StoreError>;

    /// Deletes the events of these lives from the log, except those of their ends and moves. The horizons stay where they
    /// are.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn purge_log(&self, owner: OwnerTag, lives: &[ErasedLife]) -> Result<(), StoreError>;

    /// Removes these lives from the owner's erased ones.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn forget_lives(&self, owner: OwnerTag, lives: &[ErasedLife]) -> Result<(), StoreError>;
}
