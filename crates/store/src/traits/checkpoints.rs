use std::fmt;

use async_trait::async_trait;

use crate::{Found, Whole, WriteError};
use threadkeep_domain::{Access, CheckpointName, Conditions, Stamp, ThreadId, Write, Written};

/// A checkpoint without its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointHead {
    /// Number of the checkpoint. The numbers start at 1 in each life of a thread and are never reused.
    pub number: u32,
    /// The optional name.
    pub name: Option<CheckpointName>,
    /// The saved version of the thread.
    pub version: u64,
    /// Size of the state in bytes.
    pub size_bytes: u64,
    /// When the checkpoint was saved, in Unix milliseconds.
    pub created_ms: u64,
}

/// A checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// Everything except the content.
    pub head: CheckpointHead,
    /// The saved state and metadata.
    pub content: Whole,
}

/// The result of saving a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointSaved {
    /// The unchanged version and life of the thread.
    pub stamp: Stamp,
    /// The new checkpoint.
    pub head: CheckpointHead,
    /// True if an earlier answer with the same idempotency key was replayed.
    pub replayed: bool,
}

/// The result of deleting a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckpointDeleted {
    /// The unchanged version and life of the thread.
    pub stamp: Stamp,
    /// True if an earlier answer with the same idempotency key was replayed.
    pub replayed: bool,
}

/// Saves and restores checkpoints of threads. When the life of a thread ends, its checkpoints are deleted, and the
/// archive keeps only their numbers.
///
/// Each call extends the lifetime of the thread. Saving or deleting a checkpoint changes neither state nor version, and
/// is not logged.
#[async_trait]
pub trait Checkpoints: fmt::Debug + Send + Sync {
    /// Saves state and metadata under the next number, atomically. Refused with `TooManyCheckpoints` at the limit.
    async fn save_checkpoint(
        &self,
        id: &ThreadId,
        name: Option<&CheckpointName>,
        conditions: &Conditions,
    ) -> Result<CheckpointSaved, WriteError>;

    /// Returns all checkpoints, newest first, or `None` if the thread does not exist.
    async fn list_checkpoints(
        &self,
        id: &ThreadId,
        access: Access,
    ) -> Result<Option<Found<Vec<CheckpointHead>>>, WriteError>;

    /// Returns a checkpoint and the thread's version, or `None` if the thread or the checkpoint does not exist.
    async fn get_checkpoint(
        &self,
        id: &ThreadId,
        access: Access,
        number: u32,
    ) -> Result<Option<Found<Checkpoint>>, WriteError>;

    /// Replaces the state and metadata of the thread with those of a checkpoint, atomically. Owner, TTL, turn and
    /// creation time do not change. Uses only the conditions, the owner and `describe` from `write`. Size limits are
    /// not checked, because the content has already been accepted. The event names the keys of the old and new states.
    async fn restore_checkpoint(
        &self,
        id: &ThreadId,
        number: u32,
        write: &Write<'_>,
    ) -> Result<Written, WriteError>;

    /// Deletes a checkpoint. Its number is not reused.
    async fn delete_checkpoint(
        &self,
        id: &ThreadId,
        number: u32,
        conditions: &Conditions,
    ) -> Result<CheckpointDeleted, WriteError>;
}
