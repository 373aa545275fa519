use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::StoreError;
use threadkeep_domain::{Completed, Event, Key, Position, Stamp, ThreadId};

/// The newest positions of all logs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heads {
    /// The time on the log's clock just before the positions were read, in the unit of [`Position::ms`]. No event that
    /// is logged later has an earlier time.
    pub now_ms: u64,
    /// The newest position of each bucket, in the order of the buckets; zero for an empty log.
    pub positions: Vec<Position>,
}

/// The version and log position of a thread at the time when the store begins to log its changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watched {
    /// Version and life; the default stamp if the thread does not exist.
    pub stamp: Stamp,
    /// The sequence number of the next history item; 1 if there is no history.
    pub next_seq: u64,
    /// The newest position of the thread's bucket.
    pub head: Position,
}

/// The event log. Threads are divided into buckets. Each bucket has its own log, which contains all events of its
/// threads, in order. Each event is written atomically with its change.
///
/// The creation and the end of a thread are always logged. Other changes are logged while the thread, or all threads,
/// are watched.
#[async_trait]
pub trait EventLog: fmt::Debug + Send + Sync {
    /// Returns how many logs there are. Each log has a zero-based number.
    fn buckets(&self) -> u16;

    /// Returns the log that holds the events of a thread.
    fn bucket_of(&self, id: &ThreadId) -> u16;

    /// Returns, for each log, up to `limit` events after the given position, oldest first.
    async fn read_log(
        &self,
        after: &[(u16, Position)],
        limit: usize,
    ) -> Result<Vec<Vec<Event>>, StoreError>;

    /// Returns the newest positions of all logs.
    async fn log_heads(&self) -> Result<Heads, StoreError>;

    /// Returns each log's horizon: a position up to which events have been deleted, or zero if none. Check the horizon
    /// after a read, because a read that starts before it may have skipped events.
    async fn log_horizons(&self, buckets: &[u16]) -> Result<Vec<Position>, StoreError>;

    /// Logs that a request about a thread has completed. Does not extend the thread's lifetime.
    async fn log_completed(&self, id: &ThreadId, completed: &Completed) -> Result<(), StoreError>;

    /// Watches threads: logs their changes for `ttl`. The threads need not exist. A watch does not extend their
    /// lifetimes, and does not shorten an earlier watch.
    async fn watch(&self, ids: &[ThreadId], ttl: Duration) -> Result<Vec<Watched>, StoreError>;

    /// Returns the values of `keys` if `at` is the current stamp and the total size of the values is at most
    /// `max_bytes`. Does not extend the lifetime of the thread.
    async fn values_at(
        &self,
        id: &ThreadId,
        at: Stamp,
        keys: &[Key],
        max_bytes: u64,
    ) -> Result<Option<Vec<Option<Bytes>>>, StoreError>;

    /// Watches all threads for `ttl`. Returns the start of the uninterrupted watch, in the unit of [`Position::ms`].
    /// The start may be a few seconds in the future, because other replicas notice a new watch with a delay.
    async fn watch_all(&self, ttl: Duration) -> Result<u64, StoreError>;
}
