//! An embedded store that implements the domain's reference semantics in memory.

mod budget;
mod deployment;
mod eviction;
mod kv;
mod log;
mod past;
mod responses;
mod scopes;
mod shard;
mod slots;
mod sweeper;
mod threads;
mod upkeep;

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::sync::broadcast;

use budget::{Budget, Held, Locked};
use deployment::listings::Lists;
use deployment::rates::Counters;
use deployment::registry::Kinds;
use kv::spaces::{RemovedContent, Spaces};
use log::ledgers::ConsumerState;
use past::Step;
use shard::Shard;
use threadkeep_domain::scope::ScopeId;
use threadkeep_domain::{
    IdempotencyKey, Key, Namespace, Position, Refusal, ResponseId, Retention, Slice, Stamp, Thread,
    ThreadId, Write, Written,
};
use threadkeep_store::parts::{json, part};
use threadkeep_store::{
    Backend, Clock, Destroy, Destroyed, Found, MemoryUse, Part, Reader, Rotate, Rotated, Store,
    StoreError, Usage, Whole, WriteError,
};
use threads::entry::Entry;
use threads::live_thread::LiveThread;
use threads::owner_reservations::OwnerReservations;
use threads::turns::ENDED_TURNS_BUFFERED;

const SHARDS: usize = 64;
/// Maximum number of items ended, freed or deleted under one lock. A batch takes about a tenth of a millisecond.
const BATCH: usize = 64;

/// Default memory limit of the store in bytes. The server sets its own limit, which depends on the machine.
const DEFAULT_MAX_BYTES: u64 = 1 << 30;

/// A store in the memory of this process. Clones share the data, and dropping the last clone frees the data.
///
/// An expired thread is hidden immediately, and ended within about two seconds. Its final state and its events are then
/// kept for their retention periods.
#[derive(Clone)]
pub struct MemoryStore(Arc<Shards>);

struct Shards {
    shards: [Locked<Shard>; SHARDS],
    hasher: RandomState,
    clock: Clock,
    consumers: Locked<ConsumerState>,
    kinds: Locked<Kinds>,
    lists: Locked<Lists>,
    spaces: Locked<Spaces>,
    counters: Locked<Counters>,
    reservations: Locked<OwnerReservations>,
    budget: Budget,
    /// Reports threads whose turns were released while another caller was waiting.
    ended_turns: broadcast::Sender<ThreadId>,
    evicting: Mutex<()>,
}

/// Settings of an embedded store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemorySettings {
    /// Retention periods of ended threads and events. [`Retention::grace`] is not used.
    pub retention: Retention,
    /// Memory limit of the store. At the limit, the oldest archives and events are deleted. If none are left, writes
    /// fail with [`StoreError::Full`].
    ///
    /// Memory use is estimated. Resident memory stays below 1.5 times the limit.
    pub max_bytes: u64,
}

impl MemoryStore {
    /// Creates an empty store with the default settings.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self::with_retention(clock, Retention::DEFAULT)
    }

    #[must_use]
    pub fn with_retention(clock: Clock, retention: Retention) -> Self {
        let settings = MemorySettings {
            retention,
            ..MemorySettings::default()
        };
        Self::with_settings(clock, settings)
    }

    #[must_use]
    pub fn with_settings(clock: Clock, settings: MemorySettings) -> Self {
        let shard = |bucket| Locked::new(Shard::new(bucket as u16, settings.retention));
        let shards = Arc::new(Shards {
            shards: std::array::from_fn(shard),
            hasher: RandomState::new(),
            clock,
            consumers: Locked::new(ConsumerState::default()),
            kinds: Locked::new(Kinds::default()),
            lists: Locked::new(Lists::default()),
            spaces: Locked::new(Spaces::default()),
            counters: Locked::new(Counters::default()),
            reservations: Locked::new(OwnerReservations::default()),
            budget: Budget::new(settings.max_bytes),
            ended_turns: broadcast::Sender::new(ENDED_TURNS_BUFFERED),
            evicting: Mutex::default(),
        });
        sweeper::start(&shards);
        Self(shards)
    }

    /// Returns the number of items in memory.
    ///
    /// Counts ids that have a thread, a tombstone, remembered results or a watch, and also counts scopes without
    /// threads, responses, final states, events, list members, namespace entries, and rate counters.
    #[must_use]
    pub fn len(&self) -> usize {
        let shards: usize = self.0.each().map(|shard| shard.len()).sum();
        shards + self.0.lists().len() + self.0.spaces().len() + self.0.counters().len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads a live thread under one lock. Extends the thread's lifetime if `reader.touch` is true.
    fn read<T>(
        &self,
        id: &ThreadId,
        reader: Reader,
        read: impl FnOnce(&LiveThread) -> T,
    ) -> Result<Option<Found<T>>, WriteError> {
        // the time is read after locking, so that the times stored for an id never go backwards
        let mut shard = self.0.of(id);
        let living = shard.find(id, reader, self.0.clock.now_ms())?;
        Ok(living.map(|living| Found {
            stamp: living.stamp,
            content: read(living),
        }))
    }

    fn change<T>(&self, id: &ThreadId, change: impl FnOnce(&mut Entry, &mut Step<'_>) -> T) -> T {
        let mut shard = self.0.of(id);
        shard.change(id, self.0.clock.now_ms(), change)
    }

    /// Changes a thread. A full store accepts only retries of requests that it has already answered.
    fn change_in_room<T>(
        &self,
        id: &ThreadId,
        key: Option<IdempotencyKey>,
        change: impl FnOnce(&mut Entry, &mut Step<'_>) -> Result<T, Refusal>,
    ) -> Result<T, WriteError> {
        let has_room = self.0.has_room();
        let mut shard = self.0.of(id);
        let now_ms = self.0.clock.now_ms();
        if !has_room && !shard.has_answered(id, key, now_ms) {
            return Err(self.0.budget.refuse().into());
        }
        Ok(shard.change(id, now_ms, change)?)
    }
}

impl Shards {
    fn index_of(&self, id: &ThreadId) -> usize {
        self.hasher.hash_one(id) as usize % SHARDS
    }

    fn hold(&self, index: usize) -> Held<'_, Shard> {
        self.shards[index].hold(&self.budget)
    }

    fn of(&self, id: &ThreadId) -> Held<'_, Shard> {
        self.hold(self.index_of(id))
    }

    fn index_of_scope(&self, scope: &ScopeId) -> usize {
        match scope.thread() {
            Some(id) => self.index_of(id),
            None => self.hasher.hash_one(scope) as usize % SHARDS,
        }
    }

    fn of_scope(&self, scope: &ScopeId) -> Held<'_, Shard> {
        self.hold(self.index_of_scope(scope))
    }

    fn of_response(&self, id: &ResponseId) -> Result<Held<'_, Shard>, Refusal> {
        self.bucket(id.bucket().into()).ok_or(Refusal::TurnLost)
    }

    fn bucket(&self, bucket: u16) -> Option<Held<'_, Shard>> {
        let shard = self.shards.get(usize::from(bucket))?;
        Some(shard.hold(&self.budget))
    }

    fn sweep(&self, index: usize, now_ms: u64) -> bool {
        let mut removed = Vec::new();
        self.hold(index).sweep(now_ms, BATCH, &mut removed)
    }

    fn tidy(&self, bucket: u16, slowest: Option<Position>, now_ms: u64) -> bool {
        let mut removed = Vec::new();
        let shard = self.bucket(bucket);
        shard.is_some_and(|mut shard| shard.past.tidy(slowest, now_ms, BATCH, &mut removed))
    }

    fn purge(&self, now_ms: u64) -> bool {
        let mut removed = RemovedContent::default();
        self.spaces().sweep(now_ms, BATCH, &mut removed)
    }

    /// Frees some expired entries, then returns the usage of namespaces. Returns `None` if more expired entries may
    /// remain, because the usage would include them.
    fn measure(&self, namespaces: &[Namespace]) -> Option<Vec<Usage>> {
        let mut removed = RemovedContent::default();
        let mut spaces = self.spaces();
        let now_ms = self.clock.now_ms();
        let is_more = spaces.purge(now_ms, BATCH, &mut removed);
        let usage = |namespace| spaces.usage(namespace, now_ms);
        (!is_more).then(|| namespaces.iter().map(usage).collect())
    }

    /// Calls [`Spaces::delete_batch`], and frees the removed entries after releasing the lock.
    fn delete_batch(&self, namespace: &Namespace) -> Option<u64> {
        let mut removed = RemovedContent::default();
        let now_ms = self.clock.now_ms();
        self.spaces()
            .delete_batch(namespace, BATCH, now_ms, &mut removed)
    }

    fn consumers(&self) -> Held<'_, ConsumerState> {
        self.consumers.hold(&self.budget)
    }

    fn kinds(&self) -> Held<'_, Kinds> {
        self.kinds.hold(&self.budget)
    }

    fn lists(&self) -> Held<'_, Lists> {
        self.lists.hold(&self.budget)
    }

    fn spaces(&self) -> Held<'_, Spaces> {
        self.spaces.hold(&self.budget)
    }

    fn reservations(&self) -> Held<'_, OwnerReservations> {
        self.reservations.hold(&self.budget)
    }

    fn counters(&self) -> Held<'_, Counters> {
        self.counters.hold(&self.budget)
    }

    fn each(&self) -> impl Iterator<Item = Held<'_, Shard>> {
        self.shards.iter().map(|shard| shard.hold(&self.budget))
    }
}

/// Ignores poisoning, because a panic leaves no partial change.
fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

fn state(living: &LiveThread) -> Bytes {
    living.document.to_json().into()
}

impl Backend for MemoryStore {
    fn for_worker(&self) -> Arc<dyn Backend> {
        Arc::new(self.clone())
    }

    fn for_responses(&self, _runtime: Handle) -> Arc<dyn Backend> {
        Arc::new(self.clone())
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn get_state(
        &self,
        id: &ThreadId,
        reader: Reader,
    ) -> Result<Option<Found<Bytes>>, WriteError> {
        self.read(id, reader, state)
    }

    async fn get_content(
        &self,
        id: &ThreadId,
        reader: Reader,
    ) -> Result<Option<Found<Whole>>, WriteError> {
        self.read(id, reader, LiveThread::whole)
    }

    async fn get_values(
        &self,
        id: &ThreadId,
        reader: Reader,
        keys: &[Key],
    ) -> Result<Option<Found<Vec<Option<Bytes>>>>, WriteError> {
        self.read(id, reader, |living| {
            keys.iter()
                .map(|key| living.document.get(key).map(json))
                .collect()
        })
    }

    async fn get_value(
        &self,
        id: &ThreadId,
        reader: Reader,
        key: &Key,
        slice: Option<Slice>,
    ) -> Result<Option<Found<Option<Part>>>, WriteError> {
        self.read(id, reader, |living| {
            living.document.get(key).map(|value| part(value, slice))
        })
    }

    async fn get_stamp(&self, id: &ThreadId, reader: Reader) -> Result<Option<Stamp>, WriteError> {
        let found = self.read(id, reader, |_| ())?;
        Ok(found.map(|found| found.stamp))
    }

    async fn find_key(
        &self,
        id: &ThreadId,
        reader: Reader,
        key: &Key,
    ) -> Result<Option<Found<bool>>, WriteError> {
        self.read(id, reader, |living| living.document.get(key).is_some())
    }

    async fn get_keys(
        &self,
        id: &ThreadId,
        reader: Reader,
    ) -> Result<Option<Found<Vec<Key>>>, WriteError> {
        self.read(id, reader, |living| {
            living.document.iter().map(|(key, _)| key.clone()).collect()
        })
    }

    async fn get_thread(
        &self,
        id: &ThreadId,
        reader: Reader,
    ) -> Result<Option<Thread>, WriteError> {
        let found = self.read(id, reader, LiveThread::describe)?;
        Ok(found.map(|found| found.content))
    }

    async fn write(&self, id: &ThreadId, write: &Write<'_>) -> Result<Written, WriteError> {
        let has_room = self.0.has_room();
        let mut shard = self.0.of(id);
        let now_ms = self.0.clock.now_ms();
        if !has_room && !shard.accepts_when_full(id, write, now_ms) {
            return Err(self.0.budget.refuse().into());
        }
        Ok(shard.change(id, now_ms, |entry, step| entry.write(write, step))?)
    }

    async fn destroy(&self, id: &ThreadId, destroy: &Destroy) -> Result<Destroyed, WriteError> {
        // even a full store ends the thread, because the resulting archive can be evicted
        let has_room = self.0.has_room();
        Ok(self.change(id, |entry, step| entry.destroy(destroy, has_room, step))?)
    }

    async fn rotate(&self, id: &ThreadId, rotate: &Rotate) -> Result<Rotated, WriteError> {
        let has_room = self.0.has_room();
        // the new id is in the same shard, whose lock makes the rotation atomic
        let index = self.0.index_of(id);
        let to = ThreadId::random_where(|to| self.0.index_of(to) == index);
        let mut shard = self.0.of(id);
        let now_ms = self.0.clock.now_ms();
        if !has_room && !shard.has_answered(id, rotate.conditions.idempotency, now_ms) {
            return Err(self.0.budget.refuse().into());
        }
        Ok(shard.rotate(id, &to, rotate, now_ms)?)
    }

    async fn ping(&self) -> Result<(), StoreError> {
        match self.0.budget.is_full() {
            true => Err(StoreError::Full),
            false => Ok(()),
        }
    }

    fn memory_use(&self) -> Option<MemoryUse> {
        Some(self.0.budget.describe())
    }
}

impl Default for MemorySettings {
    fn default() -> Self {
        Self {
            retention: Retention::DEFAULT,
            max_bytes: DEFAULT_MAX_BYTES,
        }
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").finish_non_exhaustive()
    }
}
