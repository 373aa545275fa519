use std::fmt;

use async_trait::async_trait;

use crate::WriteError;
use threadkeep_domain::{Access, Fork, Image, Import, Refusal, Thread, ThreadId, Written};

/// The outcome of an import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Imported {
    /// The thread was created. The answer has the whole thread.
    Made(Written),
    /// The thread existed and is unchanged.
    Skipped(Thread),
}

impl Imported {
    /// Converts the outcome of an import that may not skip.
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
    /// Exports a thread as it is at one moment, without extending its lifetime; `None` if it does not exist.
    async fn export(&self, id: &ThreadId, access: Access) -> Result<Option<Image>, WriteError>;

    /// Creates a thread from an image, atomically, in a new life that ends after its TTL. Logged as created, or as forked if
    /// it has an origin. An import that replaces a thread ends the old one in the same step, without a tombstone.
    ///
    /// Refused with `CreatedAhead` if the first write is more than a minute ahead of the store's clock, `ThreadExists` if
    /// the thread may not be replaced, `Destroyed` during its tombstone time, and `NoPlace` as [`Import::has_place`] says.
    async fn import(&self, id: &ThreadId, import: &Import<'_>) -> Result<Imported, WriteError>;

    /// Creates a thread as a copy of the source at one moment, and extends the source's lifetime, perhaps even if
    /// refused. The new thread appears atomically; the copy is a single step only if both threads have the same bucket.
    ///
    /// Refused with `ThreadNotFound` or `CheckpointNotFound` if the source does not exist, otherwise as [`Self::import`].
    async fn fork(
        &self,
        source: &ThreadId,
        id: &ThreadId,
        fork: &Fork<'_>,
    ) -> Result<Written, WriteError>;
}
