use std::fmt;

use async_trait::async_trait;
use bytes::Bytes;

use crate::{StoreError, WriteError};
use threadkeep_domain::scope::HistorySummary;
use threadkeep_domain::{EndReason, Json, Life, OwnerTag, Thread, ThreadId, ThreadPolicy};

/// The archive of an ended life, without its state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveHead {
    /// The thread.
    pub id: ThreadId,
    /// The life.
    pub life: Life,
    /// The last version.
    pub version: u64,
    /// Size of the state in bytes.
    pub size_bytes: u64,
    /// Why the life ended.
    pub reason: EndReason,
    /// When the life ended, in Unix milliseconds.
    pub ended_ms: u64,
    /// Time at which the end of the life was detected and the archive was created, in Unix milliseconds.
    pub archived_ms: u64,
    /// A JSON object.
    pub metadata: Json,
    /// The extent of the history.
    pub history: HistorySummary,
    /// The numbers of the life's checkpoints, in order. The contents of the checkpoints are not archived.
    pub checkpoints: Vec<u32>,
}

/// The archive of an ended life.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Archive {
    /// Everything except the owner and the state.
    pub head: ArchiveHead,
    /// The owner of the thread.
    pub owner: Option<OwnerTag>,
    /// The final state as compact JSON with its keys in bytewise order.
    pub state: Bytes,
}

/// A position in the list of archives, which is sorted by `archived_ms`, and then by id and life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ArchivePosition {
    /// When the archive was created, in Unix milliseconds.
    pub archived_ms: u64,
    /// The archive; `None` sorts before all archives with the same time.
    pub archive: Option<(ThreadId, Life)>,
}

/// One page of archives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchivePage {
    /// The archives, in order.
    pub heads: Vec<ArchiveHead>,
    /// The cursor of the next page; `None` on the last page.
    pub next: Option<ArchivePosition>,
}

/// The final states of threads.
#[async_trait]
pub trait Archives: fmt::Debug + Send + Sync {
    /// Returns the archive of `life`, or of the last life if `life` is `None`. Returns `None` if that archive does not
    /// exist, or if its retention time has passed.
    async fn get_archive(
        &self,
        id: &ThreadId,
        life: Option<Life>,
    ) -> Result<Option<Archive>, StoreError>;

    /// Returns the archive that belongs to the end event of `life`. The archive exists for at least as long as that
    /// event, even after the retention time of the archive has passed.
    async fn get_final(&self, id: &ThreadId, life: Life) -> Result<Option<Archive>, StoreError>;

    /// Returns up to `limit` archives after `after`, in order. Even a page that is not the last may be short or empty.
    async fn list_archives(
        &self,
        after: &ArchivePosition,
        limit: usize,
    ) -> Result<ArchivePage, StoreError>;

    /// Restores the archive of `life`, or of the last life if `None`, atomically. The thread gets the archived state,
    /// metadata and TTL, the next version, and a new life that ends after the TTL. Removes the tombstone, if any, and
    /// logs the thread as created. Returns `None` if the archive does not exist.
    ///
    /// Clients can then no longer read the archive. [`Self::get_final`] still returns it to consumers of the end event.
    /// Refused with [`VersionMismatch`](threadkeep_domain::Refusal::VersionMismatch) if the thread exists.
    async fn restore(
        &self,
        id: &ThreadId,
        life: Option<Life>,
        policy: &ThreadPolicy,
    ) -> Result<Option<Thread>, WriteError>;
}
