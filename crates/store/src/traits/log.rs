//! The log of events.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::StoreError;
use threadkeep_domain::{Completed, Event, Key, Position, Stamp, ThreadId};

/// Where the logs of all buckets end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heads {
    /// The time of the log's clock, in the terms of [`Position::ms`], before the positions were read: events logged
    /// from then on have no smaller one.
    pub now_ms: u64,
    /// The newest position of each bucket, by its number; zero where nothing was ever logged.
    pub positions: Vec<Position>,
}

/// A thread as it was at the moment from which on its changes are logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watched {
    /// Version and life; the default one when it does not exist.
    pub stamp: Stamp,
    /// The place that the next item of its history gets; 1 without a history.
    pub next_seq: u64,
    /// The newest position of its bucket at that moment.
    pub head: Position,
}

/// The events of threads, in one log for each bucket. A thread's events are all in the log of its
/// bucket, in the order in which they happened: each is written in the same step as the change.
///
/// That a thread was made or has ended is always logged. Other changes are logged while the thread
/// is watched, or all threads are.
#[async_trait]
pub trait EventLog: fmt::Debug + Send + Sync {
    /// How many logs there are; they are numbered from 0.
    fn buckets(&self) -> u16;

    /// The log that holds a thread's events.
    fn bucket_of(&self, id: &ThreadId) -> u16;

    /// For each of these logs, up to `limit` events after a position, oldest first.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn read_log(
        &self,
        after: &[(u16, Position)],
        limit: usize,
    ) -> Result<Vec<Vec<Event>>, StoreError>;

    /// Where all logs end.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn log_heads(&self) -> Result<Heads, StoreError>;

    /// Of each of these logs a position up to which events have been deleted; zero: none. Looked at
    /// after a read from before it, it tells that the read may have skipped some.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn log_horizons(&self, buckets: &[u16]) -> Result<Vec<Position>, StoreError>;

    /// Logs that a request about a thread has ended. Moves no expiry.
    ///
    /// # Errors
    /// [`StoreError`]; see [`StoreError::is_ambiguous`].
    async fn log_completed(&self, id: &ThreadId, completed: &Completed) -> Result<(), StoreError>;

    /// Has the changes of these threads logged from now on for so long, whether they exist or not.
    /// Moves no expiry, and shortens no time that was asked for before.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn watch(&self, ids: &[ThreadId], lasts: Duration) -> Result<Vec<Watched>, StoreError>;

    /// The values of keys as they are at a version, if that is still the version of the thread, and they have at most
    /// this number of bytes. Moves no expiry.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn values_at(
        &self,
        id: &ThreadId,
        at: Stamp,
        keys: &[Key],
        most_bytes: u64,
    ) -> Result<Option<Vec<Option<Bytes>>>, StoreError>;

    /// Has the changes of all threads logged for so long. Answers since when that has been so
    /// without a break, in the terms of [`Position::ms`]; this may lie a few seconds ahead, since
    /// other replicas learn of it late.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn watch_all(&self, lasts: Duration) -> Result<u64, StoreError>;
}
