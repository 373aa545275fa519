//! Final states.

use std::fmt;

use async_trait::async_trait;
use bytes::Bytes;

use crate::{StoreError, WriteError};
use threadkeep_domain::scope::HistorySummary;
use threadkeep_domain::{EndReason, Json, Life, OwnerTag, Thread, ThreadId, ThreadPolicy};

/// The archive of a life of a thread, without its state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveHead {
    /// The thread.
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
    /// The size of its history.
    pub history: HistorySummary,
    /// The numbers of the checkpoints that ended with it, in order.
    pub checkpoints: Vec<u32>,
}

/// The archive of a life of a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Archive {
    /// All but the owner and the state.
    pub head: ArchiveHead,
    /// The owner of the thread.
    pub owner: Option<OwnerTag>,
    /// The final state as compact JSON, its keys sorted by their bytes.
    pub state: Bytes,
}

/// A place in the list of archives, which is sorted by `archived_ms`, then by id and life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ArchivePlace {
    /// When it was archived.
    pub archived_ms: u64,
    /// The archive at that place; none for a place before all archives of that time.
    pub archive: Option<(ThreadId, Life)>,
}

/// A part of the list of archives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchivePage {
    /// In order.
    pub heads: Vec<ArchiveHead>,
    /// The place of the next page; none on the last page.
    pub next: Option<ArchivePlace>,
}

/// The final states of threads.
#[async_trait]
pub trait Archives: fmt::Debug + Send + Sync {
    /// The archive of a life of a thread, or of the one that ended last; none if it does not exist or is past its
    /// retention.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn get_archive(
        &self,
        id: &ThreadId,
        life: Option<Life>,
    ) -> Result<Option<Archive>, StoreError>;

    /// The archive of a life for the event of its end. It exists at least as long as the event is in the log, whatever
    /// the retention of the archive.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn get_final(&self, id: &ThreadId, life: Life) -> Result<Option<Archive>, StoreError>;

    /// Up to `limit` archives after a place, in order. A page may be shorter, and even empty, although more follow.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn list_archives(
        &self,
        after: &ArchivePlace,
        limit: usize,
    ) -> Result<ArchivePage, StoreError>;

    /// Restores a life from the archive, or the one that ended last, in one step: state, metadata and TTL as they
    /// were, the version one higher, in a new life that ends after the TTL. The archive is no longer readable then,
    /// but [`Self::get_final`] still returns it for the event of the end, which may be in flight. Removes a tombstone
    /// too. Logged as created.
    ///
    /// None if the archive does not exist.
    ///
    /// # Errors
    /// [`WriteError::Refused`] with [`Refusal::VersionMismatch`] if the thread exists.
    ///
    /// [`Refusal::VersionMismatch`]: threadkeep_domain::Refusal::VersionMismatch
    async fn restore(
        &self,
        id: &ThreadId,
        life: Option<Life>,
        policy: &ThreadPolicy,
    ) -> Result<Option<Thread>, WriteError>;
}
