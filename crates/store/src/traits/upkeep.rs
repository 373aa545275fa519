use std::fmt;

use async_trait::async_trait;

use crate::StoreError;
use threadkeep_domain::{Position, ThreadId};

/// Threads whose deadline has passed. Some of them may have been used since then.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Due {
    /// Number of milliseconds by which the store's clock is ahead of this machine's clock.
    pub skew_ms: i64,
    /// The ids in each requested bucket, earliest deadline first. The buckets are in the order of the request.
    pub ids: Vec<Vec<ThreadId>>,
}

/// The outcome of ending expired threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reaped {
    /// Threads ended with their final state.
    pub ended: u64,
    /// Threads whose final state was already lost, because no replica ended them within the grace period.
    pub lost: u64,
    /// Threads that were used in the meantime, and were rescheduled to their actual deadline.
    pub moved: u64,
}

/// Ends expired threads and deletes old data. Each end is logged exactly once, no matter which replica ends the thread.
#[async_trait]
pub trait Upkeep: fmt::Debug + Send + Sync {
    /// Returns up to `limit` expired threads of each bucket.
    async fn due(&self, buckets: &[u16], limit: usize) -> Result<Due, StoreError>;

    /// Ends the expired threads among `ids`, which must all be in `bucket`: archives, logs and deletes them in one
    /// atomic step. Reschedules threads used in the meantime. Pass up to 100 ids, because the call blocks the store.
    async fn end_due(&self, bucket: u16, ids: &[ThreadId]) -> Result<Reaped, StoreError>;

    /// Deletes data that is no longer needed:
    /// - events past their retention that all durable consumers have handled, and all events past the longest retention
    /// - final states that neither the archive nor the log needs
    /// - expired entries
    ///
    /// `slowest` is the position of the slowest consumer in each bucket, if any.
    async fn tidy(&self, buckets: &[u16], slowest: &[Option<Position>]) -> Result<(), StoreError>;
}
