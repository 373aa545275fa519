//! Final states.

use std::fmt;

use async_trait::async_trait;
use bytes::Bytes;

use crate::domain::scope::HistorySummary;
use crate::domain::{EndReason, Json, Life, Policy, Thread, ThreadId};
use crate::store::{StoreError, WriteError};

/// What is left of a life of a thread, but for its state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveHead {
    /// Whose.
    pub id: ThreadId,
    /// Which life of it.
    pub life: Life,
    /// Its last version.
    pub version: u64,
    /// Bytes of its state.
    pub size_bytes: u64,
    /// Why it ended.
    pub reason: EndReason,
    /// When it was over, in milliseconds of the Unix epoch.
    pub ended_ms: u64,
    /// When that was noticed and it was archived.
    pub archived_ms: u64,
    /// A JSON object.
    pub metadata: Json,
    /// How much history there is beside it.
    pub history: HistorySummary,
}

/// What is left of a life of a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Archive {
    /// All but the state.
    pub head: ArchiveHead,
    /// The final state as compact JSON, its keys sorted by their bytes.
    pub state: Bytes,
}

/// A place in the list of archives, which is sorted by `archived_ms`, then by id and life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ArchivePlace {
    /// When it was archived.
    pub archived_ms: u64,
    /// Whose it is; none: before all of that time.
    pub archive: Option<(ThreadId, Life)>,
}

/// A part of the list of archives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchivePage {
    /// In order.
    pub heads: Vec<ArchiveHead>,
    /// Where to go on; none: there are no more.
    pub next: Option<ArchivePlace>,
}

/// The final states of threads.
#[async_trait]
pub trait Archives: fmt::Debug + Send + Sync {
    /// The archive of a life of a thread, or of the last one that ended. None when there is none,
    /// or it is older than the retention.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn get_archive(
        &self,
        id: &ThreadId,
        life: Option<Life>,
    ) -> Result<Option<Archive>, StoreError>;

    /// What a life of a thread left for the event of its end: there at least for as long as the
    /// event is in the log, whatever the retention of the archive.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn get_final(&self, id: &ThreadId, life: Life) -> Result<Option<Archive>, StoreError>;

    /// Archives after a place, in order, at most so many. A page may be shorter than asked for,
    /// and even empty, though more follow.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn list_archives(
        &self,
        after: &ArchivePlace,
        limit: usize,
    ) -> Result<ArchivePage, StoreError>;

    /// Brings a life back from the archive, or the last one that ended, in one step: state,
    /// metadata and TTL as they were, the version one higher, in a new life whose end is now + TTL.
    /// The archive can be got no more then, but [`Self::get_final`] still has it for the event of
    /// the end, which may be on its way. A tombstone is gone too. Logged as created.
    ///
    /// None when there is no such archive.
    ///
    /// # Errors
    /// [`WriteError::Refused`] with [`Refusal::VersionMismatch`] when the thread lives.
    ///
    /// [`Refusal::VersionMismatch`]: crate::domain::Refusal::VersionMismatch
    async fn restore(
        &self,
        id: &ThreadId,
        life: Option<Life>,
        policy: &Policy,
    ) -> Result<Option<Thread>, WriteError>;
}
