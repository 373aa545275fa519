//! Stores the ledgers of durable consumers.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;

use async_trait::async_trait;
use bytes::Bytes;

use crate::budget::Part;
use crate::deployment::leases::Pool;
use crate::{MemoryStore, SHARDS};
use threadkeep_domain::heap::Heap;
use threadkeep_domain::{EventId, Position, heap};
use threadkeep_store::{
    Holding, Ledger, LedgerChange, LedgerSignals, Ledgers, PendingEvents, StoreError,
};
use threadkeep_store::{PARKED_MAX, log_dropped_events};

/// Leases and ledgers (consumers' progress). They share a lock, so that only the holder of a lease can store progress.
#[derive(Debug, Default)]
pub(crate) struct ConsumerState {
    pub(crate) pools: HashMap<String, Pool>,
    ledgers: BTreeMap<String, ConsumerLedger>,
}

#[derive(Debug, Default)]
struct ConsumerLedger {
    cursors: Vec<Position>,
    pending: Records,
    parked: Records,
    note: Option<Bytes>,
    signals: LedgerSignals,
}

/// Records of events, sorted by position, then by bucket.
#[derive(Debug, Default)]
struct Records {
    by_position: BTreeMap<(Position, u16), Bytes>,
    heap_bytes: u64,
}

fn record_key(id: &EventId) -> (Position, u16) {
    (id.position, id.bucket)
}

fn to_pair((&(position, bucket), record): (&(Position, u16), &Bytes)) -> (EventId, Bytes) {
    (EventId { bucket, position }, record.clone())
}

impl ConsumerState {
    /// Returns the position of the slowest consumer of a bucket's log, or `None` if there are no consumers.
    pub(crate) fn slowest(&self, bucket: usize) -> Option<Position> {
        let cursors = self.ledgers.values().map(|ledger| ledger.cursors[bucket]);
        cursors.min()
    }

    /// Stores a change if the lease is held and no events were erased since the holder started. Returns how many parked
    /// events (which await a replay) were dropped, or `None` if the change was not stored.
    fn commit(&mut self, holding: &Holding<'_>, change: &LedgerChange, now_ms: u64) -> Option<u64> {
        let pool = self.pools.get(holding.consumer)?;
        if !pool.is_held(holding.slot, holding.holder, now_ms) {
            return None;
        }
        let ledger = self.ledgers.get_mut(holding.consumer)?;
        (ledger.signals.erasures == holding.erasures).then(|| ledger.commit(change))
    }
}

impl ConsumerLedger {
    /// Stores a change. Returns how many parked events were dropped because more than [`PARKED_MAX`] were parked.
    fn commit(&mut self, change: &LedgerChange) -> u64 {
        for (bucket, position) in &change.cursors {
            if let Some(cursor) = self.cursors.get_mut(usize::from(*bucket)) {
                *cursor = (*cursor).max(*position);
            }
        }
        for (id, record) in &change.pending {
            self.pending.insert(id, record);
        }
        for id in &change.done {
            self.pending.remove(id);
        }
        for (id, record) in &change.parked {
            self.pending.remove(id);
            self.parked.insert(id, record);
        }
        if let Some(note) = &change.note {
            self.note = Some(note.clone());
        }
        let excess = (self.parked.by_position.len() as u64).saturating_sub(PARKED_MAX);
        for _ in 0..excess {
            self.parked.remove_first();
        }
        excess
    }

    fn ledger(&self) -> Ledger {
        Ledger {
            cursors: self.cursors.clone(),
            pending: self.pending.by_position.iter().map(to_pair).collect(),
            note: self.note.clone(),
            signals: self.signals,
        }
    }

    /// Makes parked events pending, so that they are delivered again. Returns how many of `records` were parked.
    fn replay(&mut self, records: &[(EventId, Bytes)]) -> u64 {
        let mut replayed = 0;
        for (id, record) in records {
            if self.parked.remove(id) {
                self.pending.insert(id, record);
                replayed += 1;
            }
        }
        self.signals.replays += u64::from(replayed > 0);
        replayed
    }
}

impl Records {
    fn insert(&mut self, id: &EventId, record: &Bytes) {
        self.heap_bytes += held_bytes(record);
        if let Some(old) = self.by_position.insert(record_key(id), record.clone()) {
            self.heap_bytes -= held_bytes(&old);
        }
    }

    fn remove(&mut self, id: &EventId) -> bool {
        let removed = self.by_position.remove(&record_key(id));
        self.heap_bytes -= removed.as_ref().map_or(0, held_bytes);
        removed.is_some()
    }

    fn remove_first(&mut self) {
        if let Some((_, removed)) = self.by_position.pop_first() {
            self.heap_bytes -= held_bytes(&removed);
        }
    }
}

/// Returns the heap size of a record, including the extra block that is needed to share the record.
fn held_bytes(record: &Bytes) -> u64 {
    heap::block(record.len()) + heap::block(4 * size_of::<usize>())
}

impl Heap for Records {
    fn heap_bytes(&self) -> u64 {
        heap::tree::<((Position, u16), Bytes)>(self.by_position.len()) + self.heap_bytes
    }
}

/// The size is computed on each call, because operators create few consumers. Leases are not counted, because each
/// replica has only one.
impl Heap for ConsumerState {
    fn heap_bytes(&self) -> u64 {
        let ledger = |ledger: &ConsumerLedger| {
            let note = ledger.note.as_ref().map_or(0, held_bytes);
            let cursors = heap::array::<Position>(ledger.cursors.capacity());
            cursors + note + ledger.pending.heap_bytes() + ledger.parked.heap_bytes()
        };
        self.ledgers.values().map(ledger).sum()
    }
}

impl Part for ConsumerState {}

#[async_trait]
impl Ledgers for MemoryStore {
    async fn open_ledger(&self, consumer: &str, start: &[Position]) -> Result<(), StoreError> {
        let mut cursors = start.to_vec();
        cursors.resize(SHARDS, Position::default());
        let mut consumers = self.0.consumers();
        consumers
            .ledgers
            .entry(consumer.to_owned())
            .or_insert_with(|| ConsumerLedger {
                cursors,
                ..ConsumerLedger::default()
            });
        Ok(())
    }

    async fn drop_ledger(&self, consumer: &str) -> Result<(), StoreError> {
        let mut consumers = self.0.consumers();
        consumers.ledgers.remove(consumer);
        consumers.pools.remove(consumer);
        Ok(())
    }

    async fn consumers(&self) -> Result<Vec<String>, StoreError> {
        Ok(self.0.consumers().ledgers.keys().cloned().collect())
    }

    async fn load_ledger(&self, consumer: &str) -> Result<Option<Ledger>, StoreError> {
        Ok(self
            .0
            .consumers()
            .ledgers
            .get(consumer)
            .map(ConsumerLedger::ledger))
    }

    async fn load_cursors(&self, consumer: &str) -> Result<Option<Vec<Position>>, StoreError> {
        let consumers = self.0.consumers();
        Ok(consumers
            .ledgers
            .get(consumer)
            .map(|ledger| ledger.cursors.clone()))
    }

    async fn commit(
        &self,
        holding: &Holding<'_>,
        change: &LedgerChange,
    ) -> Result<bool, StoreError> {
        let dropped = self
            .0
            .consumers()
            .commit(holding, change, self.0.clock.now_ms());
        log_dropped_events(holding.consumer, dropped.unwrap_or_default());
        Ok(dropped.is_some())
    }

    async fn signals(&self, consumer: &str) -> Result<LedgerSignals, StoreError> {
        let consumers = self.0.consumers();
        let ledger = consumers.ledgers.get(consumer);
        Ok(ledger.map(|ledger| ledger.signals).unwrap_or_default())
    }

    async fn forget_events(
        &self,
        consumer: &str,
        events: &[(EventId, Option<Bytes>)],
    ) -> Result<(), StoreError> {
        if let Some(ledger) = self.0.consumers().ledgers.get_mut(consumer) {
            for (event, record) in events {
                for records in [&mut ledger.pending, &mut ledger.parked] {
                    if records.remove(event)
                        && let Some(record) = record
                    {
                        records.insert(event, record);
                    }
                }
            }
            ledger.signals.erasures += 1;
        }
        Ok(())
    }

    async fn pending(&self, consumer: &str, limit: usize) -> Result<PendingEvents, StoreError> {
        let consumers = self.0.consumers();
        let pending = consumers
            .ledgers
            .get(consumer)
            .map(|ledger| &ledger.pending.by_position);
        Ok(
            pending.map_or_else(PendingEvents::default, |pending| PendingEvents {
                some: pending.iter().take(limit).map(to_pair).collect(),
                total: pending.len() as u64,
            }),
        )
    }

    async fn parked(
        &self,
        consumer: &str,
        after: Option<EventId>,
        limit: usize,
    ) -> Result<Vec<(EventId, Bytes)>, StoreError> {
        let from = match after {
            Some(id) => Bound::Excluded(record_key(&id)),
            None => Bound::Unbounded,
        };
        let consumers = self.0.consumers();
        let Some(ledger) = consumers.ledgers.get(consumer) else {
            return Ok(Vec::new());
        };
        let parked = ledger.parked.by_position.range((from, Bound::Unbounded));
        Ok(parked.take(limit).map(to_pair).collect())
    }

    async fn replay(
        &self,
        consumer: &str,
        records: &[(EventId, Bytes)],
    ) -> Result<u64, StoreError> {
        let mut consumers = self.0.consumers();
        let ledger = consumers.ledgers.get_mut(consumer);
        Ok(ledger.map_or(0, |ledger| ledger.replay(records)))
    }
}
