//! How long a store takes and how it fails.

use std::future::Future;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use bytes::Bytes;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use super::labels::{Failure, Operation};
use super::threads::ThreadMetrics;
use crate::domain::{Key, Slice, Thread, ThreadId, Write, Written};
use crate::store::{Destroy, Destroyed, Found, Part, Store, StoreError, Whole, WriteError};

const BUCKETS: [f64; 12] = [
    0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.05, 0.25, 1.0, 2.5,
];

/// Latency and errors of a store by operation, looked up once, and what became of threads.
#[derive(Debug)]
pub struct StoreMetrics {
    get_state: Call,
    get_whole: Call,
    get_values: Call,
    get_value: Call,
    get_keys: Call,
    get_thread: Call,
    write: Call,
    destroy: Call,
    ping: Call,
    threads: ThreadMetrics,
}

/// A store whose calls are measured.
#[derive(Debug, Clone)]
pub struct ObservedStore {
    store: Arc<dyn Store>,
    metrics: Arc<StoreMetrics>,
}

#[derive(Debug)]
struct Call {
    duration: Histogram,
    unavailable: Counter,
    full: Counter,
    interrupted: Counter,
    timeout: Counter,
    unconfirmed: Counter,
    corrupt: Counter,
}

impl StoreMetrics {
    /// Adds the metrics to a registry.
    #[must_use]
    pub fn register(registry: &mut Registry) -> Self {
        let durations: Family<Operation, Histogram> =
            Family::new_with_constructor(|| Histogram::new(BUCKETS));
        let errors: Family<Failure, Counter> = Family::default();
        let help = "Time that calls to the store took";
        registry.register_with_unit("store_duration", help, Unit::Seconds, durations.clone());
        let help = "Calls to the store that failed";
        registry.register("store_errors", help, errors.clone());
        let call = |operation| {
            let failure = |kind| errors.get_or_create_owned(&Failure { operation, kind });
            Call {
                duration: durations.get_or_create_owned(&Operation { operation }),
                unavailable: failure("unavailable"),
                full: failure("full"),
                interrupted: failure("interrupted"),
                timeout: failure("timeout"),
                unconfirmed: failure("unconfirmed"),
                corrupt: failure("corrupt"),
            }
        };
        Self {
            get_state: call("get_state"),
            get_whole: call("get_whole"),
            get_values: call("get_values"),
            get_value: call("get_value"),
            get_keys: call("get_keys"),
            get_thread: call("get_thread"),
            write: call("write"),
            destroy: call("destroy"),
            ping: call("ping"),
            threads: ThreadMetrics::register(registry),
        }
    }
}

impl Call {
    async fn observe<T, E: Failed>(
        &self,
        call: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let start = Instant::now();
        let outcome = call.await;
        self.duration.observe(start.elapsed().as_secs_f64());
        if let Some(error) = outcome.as_ref().err().and_then(Failed::store_error) {
            self.failures(error).inc();
        }
        outcome
    }

    fn failures(&self, error: &StoreError) -> &Counter {
        match error {
            StoreError::Unavailable(_) => &self.unavailable,
            StoreError::Full => &self.full,
            StoreError::Interrupted(_) => &self.interrupted,
            StoreError::Timeout(_) => &self.timeout,
            StoreError::Unconfirmed { .. } => &self.unconfirmed,
            StoreError::Corrupt(_) => &self.corrupt,
        }
    }
}

/// An error that may be the store's; a refusal is none, the store did its work.
trait Failed {
    fn store_error(&self) -> Option<&StoreError>;
}

impl Failed for StoreError {
    fn store_error(&self) -> Option<&StoreError> {
        Some(self)
    }
}

impl Failed for WriteError {
    fn store_error(&self) -> Option<&StoreError> {
        match self {
            Self::Store(error) => Some(error),
            Self::Refused(_) => None,
        }
    }
}

impl ObservedStore {
    /// Measures that store's calls.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, metrics: Arc<StoreMetrics>) -> Self {
        Self { store, metrics }
    }
}

#[async_trait]
impl Store for ObservedStore {
    async fn get_state(&self, id: &ThreadId) -> Result<Option<Found<Bytes>>, StoreError> {
        let call = &self.metrics.get_state;
        call.observe(self.store.get_state(id)).await
    }

    async fn get_whole(&self, id: &ThreadId) -> Result<Option<Found<Whole>>, StoreError> {
        let call = &self.metrics.get_whole;
        call.observe(self.store.get_whole(id)).await
    }

    async fn get_values(
        &self,
        id: &ThreadId,
        keys: &[Key],
    ) -> Result<Option<Found<Vec<Option<Bytes>>>>, StoreError> {
        let call = &self.metrics.get_values;
        call.observe(self.store.get_values(id, keys)).await
    }

    async fn get_value(
        &self,
        id: &ThreadId,
        key: &Key,
        slice: Option<Slice>,
    ) -> Result<Option<Found<Option<Part>>>, StoreError> {
        let call = &self.metrics.get_value;
        call.observe(self.store.get_value(id, key, slice)).await
    }

    async fn get_keys(&self, id: &ThreadId) -> Result<Option<Found<Vec<Key>>>, StoreError> {
        let call = &self.metrics.get_keys;
        call.observe(self.store.get_keys(id)).await
    }

    async fn get_thread(&self, id: &ThreadId) -> Result<Option<Thread>, StoreError> {
        let call = &self.metrics.get_thread;
        call.observe(self.store.get_thread(id)).await
    }

    async fn admit(&self, id: &ThreadId) -> Result<(), WriteError> {
        self.store.admit(id).await
    }

    async fn write(&self, id: &ThreadId, write: &Write<'_>) -> Result<Written, WriteError> {
        let call = &self.metrics.write;
        let written = call.observe(self.store.write(id, write)).await?;
        self.metrics.threads.written(&written);
        Ok(written)
    }

    async fn destroy(&self, id: &ThreadId, destroy: &Destroy) -> Result<Destroyed, WriteError> {
        let call = &self.metrics.destroy;
        let destroyed = call.observe(self.store.destroy(id, destroy)).await?;
        self.metrics.threads.destroyed(destroyed);
        Ok(destroyed)
    }

    async fn ping(&self) -> Result<(), StoreError> {
        let call = &self.metrics.ping;
        call.observe(self.store.ping()).await
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;
    use crate::store::{Clock, MemoryStore};

    #[actix_web::test]
    async fn calls_of_every_worker_are_measured_by_operation() {
        let mut registry = Registry::default();
        let metrics = Arc::new(StoreMetrics::register(&mut registry));
        let store = Arc::new(MemoryStore::new(Clock::system()));

        for _ in 0..2 {
            let worker = ObservedStore::new(Arc::clone(&store) as _, Arc::clone(&metrics));
            worker.ping().await.unwrap();
        }

        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        assert!(text.contains(r#"store_duration_seconds_count{operation="ping"} 2"#));
        assert!(text.contains(r#"store_errors_total{operation="ping",kind="timeout"} 0"#));
    }
}
