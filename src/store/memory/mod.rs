//! The embedded store: the domain's reference meaning behind locks.

mod answered;
mod archives;
mod entry;
mod event_log;
mod finals;
mod leases;
mod ledgers;
mod listings;
mod living;
mod log;
mod names;
mod namespaces;
mod past;
mod rates;
mod records;
mod registry;
mod scope_entry;
mod scopes;
mod shard;
mod slots;
mod spaces;
mod sweeper;
mod upkeep;

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;

use super::{Clock, Destroy, Destroyed, Found, Part, Store, StoreError, Whole, WriteError};
use crate::domain::scope::KeptScope;
use crate::domain::{Key, Position, Retention, Slice, Thread, ThreadId, Value, Write, Written};
use ledgers::Work;
use listings::Lists;
use living::Living;
use rates::Counters;
use registry::Kinds;
use shard::Shard;
use spaces::Spaces;

const SHARDS: usize = 64;
/// What is ended, freed or deleted under one lock: about a tenth of a millisecond.
const BATCH: usize = 64;

/// A store in this process' memory. Clones share it; it is gone with the last one.
///
/// A thread whose time has passed is hidden at once, and ended within a second or two. It is then
/// kept as a final state for as long as the retention says, as are the events, and freed.
#[derive(Clone)]
pub struct MemoryStore(Arc<Shards>);

struct Shards {
    shards: [Mutex<Shard>; SHARDS],
    hasher: RandomState,
    clock: Clock,
    work: Mutex<Work>,
    kinds: Mutex<Kinds>,
    lists: Mutex<Lists>,
    spaces: Mutex<Spaces>,
    counters: Mutex<Counters>,
}

impl MemoryStore {
    /// An empty store that goes by that clock, and keeps what is over for the documented times.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self::with_retention(clock, Retention::DEFAULT)
    }

    /// An empty store that goes by that clock, and keeps what is over for so long. No thread ever
    /// waits for its end as long as the grace.
    #[must_use]
    pub fn with_retention(clock: Clock, retention: Retention) -> Self {
        let shard = |bucket| Mutex::new(Shard::new(bucket as u16, retention));
        let shards = Arc::new(Shards {
            shards: std::array::from_fn(shard),
            hasher: RandomState::new(),
            clock,
            work: Mutex::default(),
            kinds: Mutex::default(),
            lists: Mutex::default(),
            spaces: Mutex::default(),
            counters: Mutex::default(),
        });
        sweeper::start(&shards);
        Self(shards)
    }

    /// What takes up memory: ids (of threads, tombstones, remembered answers and threads that are
    /// watched), scopes that are not of threads, final states, events, members of lists, entries of
    /// namespaces, and counters of rates.
    #[must_use]
    pub fn len(&self) -> usize {
        let shards: usize = self.0.each().map(|shard| shard.len()).sum();
        shards + self.0.lists().len() + self.0.spaces().len() + self.0.counters().len()
    }

    /// Whether nothing takes up memory.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads a living thread and moves its end, under one lock.
    fn read<T>(&self, id: &ThreadId, read: impl FnOnce(&Living) -> T) -> Option<Found<T>> {
        // the time after the lock, so that times of one id never go back
        let mut shard = self.0.of(id);
        let living = &*shard.touch(id, self.0.clock.now_ms())?;
        Some(Found {
            stamp: living.stamp,
            content: read(living),
        })
    }
}

impl Shards {
    fn place_of(&self, id: &ThreadId) -> usize {
        self.hasher.hash_one(id) as usize % SHARDS
    }

    fn of(&self, id: &ThreadId) -> MutexGuard<'_, Shard> {
        lock(&self.shards[self.place_of(id)])
    }

    fn of_scope(&self, scope: &KeptScope) -> MutexGuard<'_, Shard> {
        match scope.thread() {
            Some(id) => self.of(id),
            None => lock(&self.shards[self.hasher.hash_one(scope) as usize % SHARDS]),
        }
    }

    fn bucket(&self, bucket: u16) -> Option<MutexGuard<'_, Shard>> {
        self.shards.get(usize::from(bucket)).map(lock)
    }

    /// Ends and frees some of what has passed in a shard. Whether there is more.
    fn sweep(&self, place: usize, now_ms: u64) -> bool {
        let mut gone = Vec::new();
        lock(&self.shards[place]).sweep(now_ms, BATCH, &mut gone)
    }

    /// Deletes some of what is past its retention in a bucket. Whether there is more.
    fn tidy(&self, bucket: u16, slowest: Option<Position>, now_ms: u64) -> bool {
        let mut gone = Vec::new();
        let shard = self.bucket(bucket);
        shard.is_some_and(|mut shard| shard.past.tidy(slowest, now_ms, BATCH, &mut gone))
    }

    /// Frees some of what has passed of entries. Whether there is more.
    fn purge(&self, now_ms: u64) -> bool {
        let mut gone = Vec::new();
        self.spaces().purge(now_ms, BATCH, &mut gone)
    }

    fn work(&self) -> MutexGuard<'_, Work> {
        lock(&self.work)
    }

    fn lists(&self) -> MutexGuard<'_, Lists> {
        lock(&self.lists)
    }

    fn spaces(&self) -> MutexGuard<'_, Spaces> {
        lock(&self.spaces)
    }

    fn counters(&self) -> MutexGuard<'_, Counters> {
        lock(&self.counters)
    }

    fn each(&self) -> impl Iterator<Item = MutexGuard<'_, Shard>> {
        self.shards.iter().map(lock)
    }
}

/// A panic under the lock leaves no half write: drafts are worked out first and then put in place.
fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

fn state(living: &Living) -> Bytes {
    let mut out = Vec::with_capacity(living.document.size_bytes() as usize);
    living.document.write_json(&mut out);
    out.into()
}

fn json(value: &Value) -> Bytes {
    let mut out = Vec::with_capacity(value.json_bytes());
    value.write_json(&mut out);
    out.into()
}

fn part(value: &Value, slice: Option<Slice>) -> Part {
    match (value, slice) {
        (Value::Array(array), Some(slice)) => {
            let (from, count) = slice.of(array.len() as u64);
            let mut out = Vec::new();
            array.write_json(from as usize, count as usize, &mut out);
            Part {
                json: out.into(),
                total: Some(array.len() as u64),
            }
        }
        _ => Part {
            json: json(value),
            total: None,
        },
    }
}

#[async_trait]
impl Store for MemoryStore {
    fn for_worker(&self) -> Arc<dyn Store> {
        Arc::new(self.clone())
    }

    async fn get_state(&self, id: &ThreadId) -> Result<Option<Found<Bytes>>, StoreError> {
        Ok(self.read(id, state))
    }

    async fn get_whole(&self, id: &ThreadId) -> Result<Option<Found<Whole>>, StoreError> {
        Ok(self.read(id, |living| Whole {
            state: state(living),
            metadata: living.metadata(),
        }))
    }

    async fn get_values(
        &self,
        id: &ThreadId,
        keys: &[Key],
    ) -> Result<Option<Found<Vec<Option<Bytes>>>>, StoreError> {
        Ok(self.read(id, |living| {
            keys.iter()
                .map(|key| living.document.get(key).map(json))
                .collect()
        }))
    }

    async fn get_value(
        &self,
        id: &ThreadId,
        key: &Key,
        slice: Option<Slice>,
    ) -> Result<Option<Found<Option<Part>>>, StoreError> {
        Ok(self.read(id, |living| {
            living.document.get(key).map(|value| part(value, slice))
        }))
    }

    async fn get_keys(&self, id: &ThreadId) -> Result<Option<Found<Vec<Key>>>, StoreError> {
        Ok(self.read(id, |living| {
            living.document.iter().map(|(key, _)| key.clone()).collect()
        }))
    }

    async fn get_thread(&self, id: &ThreadId) -> Result<Option<Thread>, StoreError> {
        Ok(self.read(id, Living::describe).map(|found| found.content))
    }

    async fn write(&self, id: &ThreadId, write: &Write<'_>) -> Result<Written, WriteError> {
        let mut shard = self.0.of(id);
        Ok(shard.write(id, write, self.0.clock.now_ms())?)
    }

    async fn destroy(&self, id: &ThreadId, destroy: &Destroy) -> Result<Destroyed, WriteError> {
        let mut shard = self.0.of(id);
        Ok(shard.destroy(id, destroy, self.0.clock.now_ms())?)
    }

    async fn ping(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").finish_non_exhaustive()
    }
}
