//! Regular maintenance.

use std::fmt;

use async_trait::async_trait;

use crate::StoreError;
use threadkeep_domain::{Position, ThreadId};

/// Threads whose deadline has passed, unless they were used since.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Due {
    /// How far the store's clock is ahead of this machine's, in milliseconds.
    pub skew_ms: i64,
    /// Of each bucket that was asked for, in order, the ids that are due, those of the earliest
    /// deadline first.
    pub ids: Vec<Vec<ThreadId>>,
}

/// The outcome of ending expired threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reaped {
    /// Ended with their final state.
    pub ended: u64,
    /// Found without it, because nobody looked for longer than the grace.
    pub lost: u64,
    /// Used since, and given their real deadline.
    pub moved: u64,
}

/// The upkeep of a store: each thread's end is logged exactly once, whichever replica runs it.
#[async_trait]
pub trait Upkeep: fmt::Debug + Send + Sync {
    /// Up to `limit` expired threads of each of these buckets.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn due(&self, buckets: &[u16], limit: usize) -> Result<Due, StoreError>;

    /// Ends those of these threads, which are all of that bucket, whose time has passed, in one
    /// step: each is archived, logged as destroyed and deleted. One that was used since gets its
    /// real deadline. Nobody should ask for more than a hundred at once: the store stands still
    /// meanwhile.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn end_due(&self, bucket: u16, ids: &[ThreadId]) -> Result<Reaped, StoreError>;

    /// Deletes data past its retention in these buckets: events that all durable consumers have handled (`slowest`:
    /// the position of the last consumer for each bucket, if there is one) or that are past the longest retention,
    /// final states that neither the archive nor the log needs, and expired entries of namespaces.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn tidy(&self, buckets: &[u16], slowest: &[Option<Position>]) -> Result<(), StoreError>;
}
