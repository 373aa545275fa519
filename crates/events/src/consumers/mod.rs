//! Runs durable consumers: webhook endpoints, and subscribers in an app. Consumers receive each event at least once,
//! even if replicas crash.
//!
//! Each consumer has a ledger in the store, with a cursor for each log, the events to retry, and the events that are
//! parked until a replay. The work of a consumer is divided into slots, which replicas lease. The holder of a lease
//! delivers the events of the slot, and stores outcomes only while it holds the lease. If a replica crashes after a
//! delivery but before the outcome is stored, the delivery is repeated.

mod backlog;
mod byte_limits;
mod consumer;
mod draft;
mod erased;
mod gaps;
mod handler;
mod health;
mod heartbeat;
mod open;
mod parked;
mod pending;
mod progress;
mod record;
mod slot;
mod stored;
#[cfg(test)]
mod tests;
mod timing;
mod worker;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::Events;
use byte_limits::{ReplicaBytes, SlotBytes};
use consumer::Consumer;
use health::Health;
use record::Record;
use threadkeep_domain::EventId;
use threadkeep_store::StoreError;

pub use consumer::Purpose;
pub(super) use erased::forget_lives;
pub use handler::{Failure, Handler};
pub(super) use heartbeat::forget_abandoned;
pub use parked::{Parked, ParkedPage};
pub use pending::{Pending, PendingList};
pub use timing::Timing;

#[derive(Debug, Default)]
pub(super) struct Consumers {
    running: Mutex<HashMap<String, Running>>,
    bytes: ReplicaBytes,
}

#[derive(Debug)]
struct Running {
    stop: CancellationToken,
    wake: Arc<Notify>,
}

/// A consumer with the same name is already running in this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken;

impl Consumers {
    fn running(&self) -> MutexGuard<'_, HashMap<String, Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn wake_all(&self) {
        for running in self.running().values() {
            running.wake.notify_one();
        }
    }
}

impl Events {
    /// Creates a consumer if it does not exist. A new consumer receives all events that are logged after this call.
    #[doc(hidden)]
    pub async fn open_consumer(&self, name: &str) -> Result<(), StoreError> {
        open::open_at_log_end(&**self.backend(), name).await
    }

    /// Delivers a share of a consumer's events until `self` stops or [`Self::end_consumer`] is called.
    #[doc(hidden)]
    pub fn start_consumer(
        &self,
        name: &str,
        purpose: Purpose,
        handler: Arc<dyn Handler>,
    ) -> Result<(), Taken> {
        let stop = self.stopped().child_token();
        let wake = Arc::<Notify>::default();
        match self.0.consumers.running().entry(name.to_owned()) {
            Entry::Occupied(_) => return Err(Taken),
            Entry::Vacant(entry) => entry.insert(Running {
                stop: stop.clone(),
                wake: Arc::clone(&wake),
            }),
        };
        let consumer = Arc::new(Consumer {
            name: name.into(),
            handler,
            purpose,
            backend: Arc::clone(self.backend()),
            holder: Arc::clone(self.holder()),
            timing: self.0.settings.timing,
            clock: self.0.settings.clock.clone(),
            health: Health::default(),
            counters: Arc::clone(self.counters()),
            bytes: self.0.consumers.bytes.clone(),
        });
        self.spawn(consumer.run(self.tail().clone(), stop, wake));
        Ok(())
    }

    #[doc(hidden)]
    pub fn end_consumer(&self, name: &str) {
        if let Some(running) = self.0.consumers.running().remove(name) {
            running.stop.cancel();
        }
    }

    #[doc(hidden)]
    pub async fn drop_consumer(&self, name: &str) -> Result<(), StoreError> {
        self.end_consumer(name);
        let backend = &**self.backend();
        backend.drop_ledger(name).await?;
        heartbeat::forget(backend, name).await
    }

    /// Lists up to `limit` pending events of a consumer.
    pub async fn pending(&self, consumer: &str, limit: usize) -> Result<PendingList, StoreError> {
        pending::list(self, consumer, limit).await
    }

    /// Lists up to `limit` parked events of a consumer, starting after the event `after`.
    pub async fn parked(
        &self,
        consumer: &str,
        after: Option<EventId>,
        limit: usize,
    ) -> Result<ParkedPage, StoreError> {
        parked::page(self, consumer, after, limit).await
    }

    /// Replays the parked events in `only`, or all parked events if `only` is `None`. Returns the number of replayed
    /// events. After an error, some events may already have been replayed.
    pub async fn replay(
        &self,
        consumer: &str,
        only: Option<&[EventId]>,
    ) -> Result<u64, StoreError> {
        let replayed = match only {
            None => parked::replay_all(self, consumer).await?,
            Some(ids) => parked::replay_ids(self, consumer, ids).await?,
        };
        if let Some(running) = self.0.consumers.running().get(consumer) {
            running.wake.notify_one();
        }
        Ok(replayed)
    }
}
