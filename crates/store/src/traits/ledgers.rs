//! How far durable consumers are.

use std::fmt;

use async_trait::async_trait;
use bytes::Bytes;

use crate::StoreError;
use threadkeep_domain::{EventId, Position};

/// Events that a consumer has parked at most; then the oldest are given up.
pub const MOST_PARKED: u64 = 100_000;

/// A consumer's progress and pending events. The format of its records is the consumer's own.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ledger {
    /// Up to where each log is handled, by the number of the bucket: every event up to there was
    /// delivered, or is pending or parked.
    pub cursors: Vec<Position>,
    /// Events that are to be delivered once more, with a record each.
    pub pending: Vec<(EventId, Bytes)>,
    /// A record of the consumer as a whole.
    pub note: Option<Bytes>,
    /// Its signals when it was read.
    pub signals: LedgerSignals,
}

/// Some of a consumer's pending events.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PendingEvents {
    /// With a record each.
    pub some: Vec<(EventId, Bytes)>,
    /// The number of all.
    pub total: u64,
}

/// Counts of others' changes to a ledger, which the holders of its leases watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LedgerSignals {
    /// Replays that were asked for.
    pub replays: u64,
    /// Erasures of events in it, or in the log.
    pub erasures: u64,
}

/// Changes of a ledger, stored in one step.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LedgerChange {
    /// Logs that are handled further than before.
    pub cursors: Vec<(u16, Position)>,
    /// Records of events that are pending from now on, or still are.
    pub pending: Vec<(EventId, Bytes)>,
    /// Events that are no longer pending.
    pub done: Vec<EventId>,
    /// Events that are parked, with a record each; they are no longer pending.
    pub parked: Vec<(EventId, Bytes)>,
    /// A new record of the consumer as a whole.
    pub note: Option<Bytes>,
}

/// The right to write in a ledger: the lease of a slot of the pool that bears the consumer's name.
#[derive(Debug, Clone, Copy)]
pub struct Holding<'a> {
    /// The consumer, which is the name of the pool too.
    pub consumer: &'a str,
    /// The slot.
    pub slot: u16,
    /// The holder.
    pub holder: &'a str,
    /// The count of erasures when the holder began: events that it read before a later one may be erased.
    pub erasures: u64,
}

/// The ledgers of durable consumers, which are named like pools of leases.
#[async_trait]
pub trait Ledgers: fmt::Debug + Send + Sync {
    /// Makes a consumer, unless it is known: from these positions on, one for each bucket.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn open_ledger(&self, consumer: &str, start: &[Position]) -> Result<(), StoreError>;

    /// Forgets a consumer with all its records, and its leases.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn drop_ledger(&self, consumer: &str) -> Result<(), StoreError>;

    /// The names of all consumers.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn consumers(&self) -> Result<Vec<String>, StoreError>;

    /// The ledger as it stands; none when there is no such consumer.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn load_ledger(&self, consumer: &str) -> Result<Option<Ledger>, StoreError>;

    /// The cursors alone.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn load_cursors(&self, consumer: &str) -> Result<Option<Vec<Position>>, StoreError>;

    /// Writes a change down whole, if that lease is still held and the ledger has seen no later erasure; else nothing,
    /// and answers false.
    /// Doing the same again changes nothing. Past 100,000 parked events the oldest are given up,
    /// which is logged as an error.
    ///
    /// # Errors
    /// [`StoreError`]; see [`StoreError::is_ambiguous`].
    async fn commit(
        &self,
        holding: &Holding<'_>,
        change: &LedgerChange,
    ) -> Result<bool, StoreError>;

    /// The signals for the holders of leases.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn signals(&self, consumer: &str) -> Result<LedgerSignals, StoreError>;

    /// Forgets these events, pending or parked, in one step, or replaces their records where one is given, and counts an
    /// erasure, so that no holder of a lease that knows them writes them down again. Does nothing without such a consumer.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn forget_events(
        &self,
        consumer: &str,
        events: &[(EventId, Option<Bytes>)],
    ) -> Result<(), StoreError>;

    /// Up to `limit` pending events, in any order.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn pending(&self, consumer: &str, limit: usize) -> Result<PendingEvents, StoreError>;

    /// Up to `limit` parked events after that one, by position and then bucket.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn parked(
        &self,
        consumer: &str,
        after: Option<EventId>,
        limit: usize,
    ) -> Result<Vec<(EventId, Bytes)>, StoreError>;

    /// Makes parked events pending again, with new records, in one step, and counts a replay.
    /// Answers how many were still parked.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn replay(&self, consumer: &str, records: &[(EventId, Bytes)])
    -> Result<u64, StoreError>;
}

/// Says that parked events were given up.
pub fn note_given_up(consumer: &str, events: u64) {
    if events > 0 {
        tracing::error!(
            consumer,
            events,
            "too many events wait for a replay: the oldest were dropped"
        );
    }
}
