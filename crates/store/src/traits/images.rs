use std::fmt;

use async_trait::async_trait;

use crate::WriteError;
use threadkeep_domain::{Access, Fork, Image, Import, Refusal, Thread, ThreadId, Written};

/// The outcome of an import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Imported {
    /// The thread was created. The answer contains the whole thread.
    Made(Written),
    /// The thread existed and is unchanged.
    Skipped(Thread),
}

impl Imported {
    /// Returns the new thread. A skipped import becomes [`Refusal::ThreadExists`].
    pub fn made(self) -> Result<Written, Refusal> {
        match self {
            Self::Made(written) => Ok(written),
            Self::Skipped(_) => Err(Refusal::ThreadExists),
        }
    }
}

/// Exports, imports and copies whole threads.
#[async_trait]
pub trait Images: fmt::Debug + Send + Sync {
    /// Exports a thread as one snapshot, without extending its lifetime. Returns `None` if the thread does not exist.
    async fn export(&self, id: &ThreadId, access: Access) -> Result<Option<Image>, WriteError>;

    /// Creates a thread from an image, atomically. The new life ends after the TTL of the thread. Logs the thread as
    /// created, or as forked if the import has an origin. An import that replaces a thread ends the old thread in the
    /// same step, without a tombstone.
    ///
    /// Refused with:
    /// - `CreatedAhead` if the time of the first write is more than a minute ahead of the store's clock
    /// - `ThreadExists` if the thread exists and must not be replaced
    /// - `Destroyed` while the id has a tombstone
    /// - `NoReservation` if the thread needs room that the owner has not [reserved](Import::has_reservation)
    async fn import(&self, id: &ThreadId, import: &Import<'_>) -> Result<Imported, WriteError>;

    /// Creates a thread as a copy of one snapshot of `source`. Extends the lifetime of `source`, possibly even if the
    /// fork is refused. The new thread appears atomically. The copy is a single atomic step only if both threads are in
    /// the same bucket.
    ///
    /// Refused with `ThreadNotFound` or `CheckpointNotFound` if the source does not exist, and in the same cases as
    /// [`Self::import`].
    async fn fork(
        &self,
        source: &ThreadId,
        id: &ThreadId,
        fork: &Fork<'_>,
    ) -> Result<Written, WriteError>;
}
