use std::fmt;

use async_trait::async_trait;
use bytes::Bytes;

use crate::StoreError;
use threadkeep_domain::{EventId, Position};

/// Maximum number of parked events (waiting for a replay) per consumer. If exceeded, the oldest events are dropped.
pub const PARKED_MAX: u64 = 100_000;

/// A consumer's progress and pending events. The consumer defines the format of its records.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ledger {
    /// Read position in each bucket's log. Every event up to that position was delivered, is pending, or is parked.
    pub cursors: Vec<Position>,
    /// Events that have not been delivered yet, each with a record.
    pub pending: Vec<(EventId, Bytes)>,
    /// The record of the consumer itself.
    pub note: Option<Bytes>,
    /// The signals at the time of the read.
    pub signals: LedgerSignals,
}

/// Some of a consumer's pending events.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PendingEvents {
    /// Events with their records.
    pub some: Vec<(EventId, Bytes)>,
    /// Number of all pending events.
    pub total: u64,
}

/// Counters of changes to a ledger that are not made by its lease holders. Lease holders watch these counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LedgerSignals {
    /// Number of requested replays.
    pub replays: u64,
    /// Number of times that events were erased from the ledger or from the log.
    pub erasures: u64,
}

/// Changes to a ledger, stored atomically.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LedgerChange {
    /// Cursors to advance.
    pub cursors: Vec<(u16, Position)>,
    /// New records of pending events.
    pub pending: Vec<(EventId, Bytes)>,
    /// Events to remove from the pending ones.
    pub done: Vec<EventId>,
    /// Events to move from pending to parked, each with a record.
    pub parked: Vec<(EventId, Bytes)>,
    /// The new record of the consumer itself.
    pub note: Option<Bytes>,
}

/// The right to write to a ledger: the lease on a slot of the pool that has the same name as the consumer.
#[derive(Debug, Clone, Copy)]
pub struct Holding<'a> {
    /// The consumer, also the name of the pool.
    pub consumer: &'a str,
    /// The leased slot.
    pub slot: u16,
    /// The holder of the lease.
    pub holder: &'a str,
    /// [`LedgerSignals::erasures`] when the holder started. If the counter has increased since then, events that the
    /// holder has already read may have been erased.
    pub erasures: u64,
}

/// The ledgers of durable consumers. Consumer names follow the rules of [pool names](crate::Leases).
#[async_trait]
pub trait Ledgers: fmt::Debug + Send + Sync {
    /// Creates a consumer's ledger if it does not exist yet. `start` has one position per bucket.
    async fn open_ledger(&self, consumer: &str, start: &[Position]) -> Result<(), StoreError>;

    /// Deletes a consumer with all its records and leases.
    async fn drop_ledger(&self, consumer: &str) -> Result<(), StoreError>;

    /// Returns the names of all consumers.
    async fn consumers(&self) -> Result<Vec<String>, StoreError>;

    /// Returns the whole ledger; `None` if the consumer does not exist.
    async fn load_ledger(&self, consumer: &str) -> Result<Option<Ledger>, StoreError>;

    /// Returns only the cursors, by bucket.
    async fn load_cursors(&self, consumer: &str) -> Result<Option<Vec<Position>>, StoreError>;

    /// Stores a change atomically if the lease is still held and no erasure has happened since the holder started.
    /// Otherwise, changes nothing and returns false. Idempotent. If more than [`PARKED_MAX`] events are then parked,
    /// drops the oldest and logs an error.
    async fn commit(
        &self,
        holding: &Holding<'_>,
        change: &LedgerChange,
    ) -> Result<bool, StoreError>;

    /// Returns the signals for lease holders.
    async fn signals(&self, consumer: &str) -> Result<LedgerSignals, StoreError>;

    /// Removes pending or parked events, atomically. If a new record is given for an event, replaces the event's record
    /// instead. Also increments [`LedgerSignals::erasures`], so that a lease holder that has already read the old
    /// records cannot store them again. Has no effect if the consumer does not exist.
    async fn forget_events(
        &self,
        consumer: &str,
        events: &[(EventId, Option<Bytes>)],
    ) -> Result<(), StoreError>;

    /// Returns up to `limit` pending events, in any order.
    async fn pending(&self, consumer: &str, limit: usize) -> Result<PendingEvents, StoreError>;

    /// Returns up to `limit` parked events after `after`, sorted by position, then by bucket.
    async fn parked(
        &self,
        consumer: &str,
        after: Option<EventId>,
        limit: usize,
    ) -> Result<Vec<(EventId, Bytes)>, StoreError>;

    /// Atomically makes parked events pending again, with new records, and increments [`LedgerSignals::replays`].
    /// Returns how many of the events were parked.
    async fn replay(&self, consumer: &str, records: &[(EventId, Bytes)])
    -> Result<u64, StoreError>;
}

/// Logs that parked events were dropped.
pub fn log_dropped_events(consumer: &str, events: u64) {
    if events > 0 {
        tracing::error!(
            consumer,
            events,
            "too many events wait for a replay: the oldest were dropped"
        );
    }
}
