use std::fmt;

use async_trait::async_trait;

use crate::StoreError;
use threadkeep_domain::{Position, ThreadId};

/// Threads whose scheduled deadline has passed. A thread that was used after it was scheduled has a later deadline.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Due {
    /// Number of milliseconds by which the store's clock is ahead of this machine's clock.
    pub skew_ms: i64,
    /// The ids in each requested bucket (part of the data), earliest deadline first. The buckets are in request order.
    pub ids: Vec<Vec<ThreadId>>,
}

/// The outcome of ending expired threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reaped {
    /// Threads ended with their final state.
    pub ended: u64,
    /// Threads whose final state was already lost, because no replica ended them within the grace period.
    pub lost: u64,
    /// Threads that were used after they had been scheduled, and were therefore rescheduled to their actual deadline.
    pub moved: u64,
}

/// Ends expired threads and deletes old data. Each end is logged exactly once, no matter which replica ends the thread.
#[async_trait]
pub trait Upkeep: fmt::Debug + Send + Sync {
    /// Returns up to `limit` expired threads of each bucket.
    async fn due(&self, buckets: &[u16], limit: usize) -> Result<Due, StoreError>;

    /// Archives, logs and deletes the expired threads in `ids`, in one atomic step. Reschedules unexpired threads. All
    /// ids must be in `bucket`. Pass at most 100 ids, because the call blocks the store.
    async fn end_due(&self, bucket: u16, ids: &[ThreadId]) -> Result<Reaped, StoreError>;

    /// Deletes data that is no longer needed:
    /// - events past their retention that all durable consumers have handled, and all events past the longest retention
    /// - final states that neither the archive nor the log needs
    /// - expired entries
    ///
    /// `slowest` has one element per bucket: the log position of the slowest consumer, or `None` without consumers.
    async fn tidy(&self, buckets: &[u16], slowest: &[Option<Position>]) -> Result<(), StoreError>;
}
