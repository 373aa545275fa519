//! Checkpoints of threads.

use std::fmt;

use async_trait::async_trait;

use crate::{Found, Whole, WriteError};
use threadkeep_domain::{Access, CheckpointName, Conditions, Stamp, ThreadId, Write, Written};

/// A checkpoint without what it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointHead {
    /// Its number: from 1 in each life of a thread, and never used again in that life.
    pub number: u32,
    /// Its name, if it has one.
    pub name: Option<CheckpointName>,
    /// The version of the thread that was saved.
    pub version: u64,
    /// Bytes of the state.
    pub size_bytes: u64,
    /// When it was made, in milliseconds of the Unix epoch.
    pub created_ms: u64,
}

/// A checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// All but what it holds.
    pub head: CheckpointHead,
    /// The saved state and metadata.
    pub content: Whole,
}

/// The answer of saving a checkpoint, or of its first run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointSaved {
    /// Version and life of the thread, which stay.
    pub stamp: Stamp,
    /// The new checkpoint.
    pub head: CheckpointHead,
    /// Whether this is the answer to an earlier call with the same idempotency key.
    pub replayed: bool,
}

/// The answer of deleting a checkpoint, or of its first run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckpointDeleted {
    /// Version and life of the thread, which stay.
    pub stamp: Stamp,
    /// Whether this is the answer to an earlier call with the same idempotency key.
    pub replayed: bool,
}

/// The checkpoints of threads. They end with the life of their thread, whose archive has only their numbers.
///
/// Each call moves the end of the thread. Saving and deleting change neither state nor version, and are not logged.
#[async_trait]
pub trait Checkpoints: fmt::Debug + Send + Sync {
    /// Saves state and metadata as they are, under the next number, in one step.
    ///
    /// # Errors
    /// [`WriteError::Refused`] with `ThreadNotFound`, `TooManyCheckpoints`, or as the conditions say;
    /// [`WriteError::Store`].
    async fn save_checkpoint(
        &self,
        id: &ThreadId,
        name: Option<&CheckpointName>,
        conditions: &Conditions,
    ) -> Result<CheckpointSaved, WriteError>;

    /// All checkpoints, the newest first. None: no such thread.
    ///
    /// # Errors
    /// [`WriteError`]: the owner refuses the caller, or the store fails.
    async fn list_checkpoints(
        &self,
        id: &ThreadId,
        access: Access,
    ) -> Result<Option<Found<Vec<CheckpointHead>>>, WriteError>;

    /// A checkpoint with the version of the thread. None: no such thread or checkpoint.
    ///
    /// # Errors
    /// [`WriteError`]: the owner refuses the caller, or the store fails.
    async fn get_checkpoint(
        &self,
        id: &ThreadId,
        access: Access,
        number: u32,
    ) -> Result<Option<Found<Checkpoint>>, WriteError>;

    /// Puts state and metadata of a checkpoint in the place of the thread's, as a write in one step. Owner, TTL, turn
    /// and time of creation stay. Of the write, its conditions, its owner and `describe` count: it has no changes of
    /// its own, and limits are not judged, since what returns was accepted before. The event names all keys from before
    /// and after.
    ///
    /// # Errors
    /// As [`Store::write`](crate::Store::write); `ThreadNotFound` and `CheckpointNotFound`.
    async fn restore_checkpoint(
        &self,
        id: &ThreadId,
        number: u32,
        write: &Write<'_>,
    ) -> Result<Written, WriteError>;

    /// Deletes a checkpoint. Its number is not used again.
    ///
    /// # Errors
    /// As [`Self::save_checkpoint`]; `CheckpointNotFound`.
    async fn delete_checkpoint(
        &self,
        id: &ThreadId,
        number: u32,
        conditions: &Conditions,
    ) -> Result<CheckpointDeleted, WriteError>;
}
