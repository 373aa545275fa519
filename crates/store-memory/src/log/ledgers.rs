//! Ledgers: how far durable consumers are.

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
use threadkeep_store::{MOST_PARKED, note_given_up};

/// The shared work and its progress, behind one lock, so that only the holder of the lease stores progress.
#[derive(Debug, Default)]
pub(crate) struct Work {
    pub(crate) pools: HashMap<String, Pool>,
    books: BTreeMap<String, Book>,
}

#[derive(Debug, Default)]
struct Book {
    cursors: Vec<Position>,
    pending: Records,
    parked: Records,
    note: Option<Bytes>,
    signals: LedgerSignals,
}

/// Records of events, by position and then bucket.
#[derive(Debug, Default)]
struct Records {
    by_place: BTreeMap<(Position, u16), Bytes>,
    /// Heap bytes of the records.
    heap_bytes: u64,
}

fn place(id: &EventId) -> (Position, u16) {
    (id.position, id.bucket)
}

fn listed((&(position, bucket), record): (&(Position, u16), &Bytes)) -> (EventId, Bytes) {
    (EventId { bucket, position }, record.clone())
}

impl Work {
    /// The position of the slowest consumer in that log; none without consumers.
    pub(crate) fn slowest(&self, bucket: usize) -> Option<Position> {
        let cursors = self.books.values().map(|book| book.cursors[bucket]);
        cursors.min()
    }

    /// Writes a change down, if the lease is held and nothing was erased since. How many parked events were given up for it.
    fn commit(&mut self, holding: &Holding<'_>, change: &LedgerChange, now_ms: u64) -> Option<u64> {
        let pool = self.pools.get(holding.consumer)?;
        if !pool.is_held(holding.slot, holding.holder, now_ms) {
            return None;
        }
        let book = self.books.get_mut(holding.consumer)?;
        (book.signals.erasures == holding.erasures).then(|| book.commit(change))
    }
}

impl Book {
    /// Writes a change down. How many parked events were given up for it.
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
        let over = (self.parked.by_place.len() as u64).saturating_sub(MOST_PARKED);
        for _ in 0..over {
            self.parked.remove_first();
        }
        over
    }

    fn ledger(&self) -> Ledger {
        Ledger {
            cursors: self.cursors.clone(),
            pending: self.pending.by_place.iter().map(listed).collect(),
            note: self.note.clone(),
            signals: self.signals,
        }
    }

    /// Makes parked events pending. How many still were parked.
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
        if let Some(old) = self.by_place.insert(place(id), record.clone()) {
            self.heap_bytes -= held_bytes(&old);
        }
    }

    /// Whether there was one.
    fn remove(&mut self, id: &EventId) -> bool {
        let removed = self.by_place.remove(&place(id));
        self.heap_bytes -= removed.as_ref().map_or(0, held_bytes);
        removed.is_some()
    }

    fn remove_first(&mut self) {
        if let Some((_, removed)) = self.by_place.pop_first() {
            self.heap_bytes -= held_bytes(&removed);
        }
    }
}

/// With the block through which it is shared.
fn held_bytes(record: &Bytes) -> u64 {
    heap::block(record.len()) + heap::block(4 * size_of::<usize>())
}

impl Heap for Records {
    fn heap_bytes(&self) -> u64 {
        heap::tree::<((Position, u16), Bytes)>(self.by_place.len()) + self.heap_bytes
    }
}

/// There are as many consumers as an operator has made, and leases for each replica: one.
impl Heap for Work {
    fn heap_bytes(&self) -> u64 {
        let book = |book: &Book| {
            let note = book.note.as_ref().map_or(0, held_bytes);
            let cursors = heap::array::<Position>(book.cursors.capacity());
            cursors + note + book.pending.heap_bytes() + book.parked.heap_bytes()
        };
        self.books.values().map(book).sum()
    }
}

impl Part for Work {}

#[async_trait]
impl Ledgers for MemoryStore {
    async fn open_ledger(&self, consumer: &str, start: &[Position]) -> Result<(), StoreError> {
        let mut cursors = start.to_vec();
        cursors.resize(SHARDS, Position::default());
        let mut work = self.0.work();
        work.books
            .entry(consumer.to_owned())
            .or_insert_with(|| Book {
                cursors,
                ..Book::default()
            });
        Ok(())
    }

    async fn drop_ledger(&self, consumer: &str) -> Result<(), StoreError> {
        let mut work = self.0.work();
        work.books.remove(consumer);
        work.pools.remove(consumer);
        Ok(())
    }

    async fn consumers(&self) -> Result<Vec<String>, StoreError> {
        Ok(self.0.work().books.keys().cloned().collect())
    }

    async fn load_ledger(&self, consumer: &str) -> Result<Option<Ledger>, StoreError> {
        Ok(self.0.work().books.get(consumer).map(Book::ledger))
    }

    async fn load_cursors(&self, consumer: &str) -> Result<Option<Vec<Position>>, StoreError> {
        let work = self.0.work();
        Ok(work.books.get(consumer).map(|book| book.cursors.clone()))
    }

    async fn commit(
        &self,
        holding: &Holding<'_>,
        change: &LedgerChange,
    ) -> Result<bool, StoreError> {
        let given_up = self.0.work().commit(holding, change, self.0.clock.now_ms());
        note_given_up(holding.consumer, given_up.unwrap_or_default());
        Ok(given_up.is_some())
    }

    async fn signals(&self, consumer: &str) -> Result<LedgerSignals, StoreError> {
        let work = self.0.work();
        let book = work.books.get(consumer);
        Ok(book.map(|book| book.signals).unwrap_or_default())
    }

    async fn forget_events(
        &self,
        consumer: &str,
        events: &[(EventId, Option<Bytes>)],
    ) -> Result<(), StoreError> {
        if let Some(book) = self.0.work().books.get_mut(consumer) {
            for (event, record) in events {
                for records in [&mut book.pending, &mut book.parked] {
                    if records.remove(event)
                        && let Some(record) = record
                    {
                        records.insert(event, record);
                    }
                }
            }
            book.signals.erasures += 1;
        }
        Ok(())
    }

    async fn pending(&self, consumer: &str, limit: usize) -> Result<PendingEvents, StoreError> {
        let work = self.0.work();
        let pending = work.books.get(consumer).map(|book| &book.pending.by_place);
        Ok(
            pending.map_or_else(PendingEvents::default, |pending| PendingEvents {
                some: pending.iter().take(limit).map(listed).collect(),
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
            Some(id) => Bound::Excluded(place(&id)),
            None => Bound::Unbounded,
        };
        let work = self.0.work();
        let Some(book) = work.books.get(consumer) else {
            return Ok(Vec::new());
        };
        let parked = book.parked.by_place.range((from, Bound::Unbounded));
        Ok(parked.take(limit).map(listed).collect())
    }

    async fn replay(
        &self,
        consumer: &str,
        records: &[(EventId, Bytes)],
    ) -> Result<u64, StoreError> {
        let mut work = self.0.work();
        let book = work.books.get_mut(consumer);
        Ok(book.map_or(0, |book| book.replay(records)))
    }
}
