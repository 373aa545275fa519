//! Threads as a whole: moved out of a store, into one, and copied.

use std::fmt;

use async_trait::async_trait;

use crate::WriteError;
use threadkeep_domain::{Access, Fork, Image, Import, Refusal, Thread, ThreadId, Written};

/// The outcome of an import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Imported {
    /// The thread is made. The answer has the whole thread.
    Made(Written),
    /// The thread existed, and stays as it is.
    Skipped(Thread),
}

impl Imported {
    /// The outcome for an import that skips no thread.
    ///
    /// # Errors
    /// [`Refusal::ThreadExists`].
    pub fn made(self) -> Result<Written, Refusal> {
        match self {
            Self::Made(written) => Ok(written),
            Self::Skipped(_) => Err(Refusal::ThreadExists),
        }
    }
}

/// Threads as a whole.
#[async_trait]
pub trait Images: fmt::Debug + Send + Sync {
    /// All that a thread has at one moment; none if the thread does not exist. Moves no end.
    ///
    /// # Errors
    /// [`WriteError`]: the owner refuses the caller, or the store fails.
    async fn export(&self, id: &ThreadId, access: Access) -> Result<Option<Image>, WriteError>;

    /// Makes a thread of an image, in one step: the thread has all of it, or does not exist. Its life is a new one, which
    /// ends after its TTL. Logged as created, and as forked if it has an origin. An import that replaces a thread ends
    /// that in the same step, without a tombstone.
    ///
    /// # Errors
    /// [`WriteError::Refused`]: nothing has changed; with `CreatedAhead` if its first write is more than a minute ahead of
    /// the store's clock, with `ThreadExists` if the thread exists and may not be replaced, with `Destroyed` during its
    /// tombstone time, with `NoPlace` as [`Import::has_place`] says. [`WriteError::Store`]: see
    /// [`StoreError::is_ambiguous`](crate::StoreError::is_ambiguous).
    async fn import(&self, id: &ThreadId, import: &Import<'_>) -> Result<Imported, WriteError>;

    /// Makes a thread that is a copy of another one, the source, as that is at one moment; the answer has the whole new
    /// thread. Moves the end of the source. The copy is one step if both threads have the same bucket. In any case, the
    /// new thread appears in one step, with the source as it was at one moment.
    ///
    /// # Errors
    /// [`WriteError::Refused`]: no thread is made, and of the source at most its end has moved; with `ThreadNotFound` or
    /// `CheckpointNotFound` without that source, and otherwise as [`Self::import`]. [`WriteError::Store`].
    async fn fork(
        &self,
        source: &ThreadId,
        id: &ThreadId,
        fork: &Fork<'_>,
    ) -> Result<Written, WriteError>;
}
