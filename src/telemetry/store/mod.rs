mod call;
mod parts;
mod uses;

use std::sync::Arc;

use prometheus_client::registry::Registry;
use tokio::runtime::Handle;

use super::threads::ThreadMetrics;
use call::Families;
use threadkeep_domain::Written;
use threadkeep_domain::effects::{Effect, Settled};
use threadkeep_stats::{Stats, StoreRecorder};
use threadkeep_store::{Backend, Destroyed, Erased, Imported, Reaped, StoreError, WriteError};

#[derive(Debug)]
struct StoreMetrics {
    threads: parts::threads::Calls,
    log: parts::log::Calls,
    archives: parts::archives::Calls,
    upkeep: parts::upkeep::Calls,
    leases: parts::leases::Calls,
    ledgers: parts::ledgers::Calls,
    registry: parts::registry::Calls,
    scopes: parts::scopes::Calls,
    listings: parts::listings::Calls,
    kv: parts::kv::Calls,
    rates: parts::rates::Calls,
    erasure: parts::erasure::Calls,
    owners: parts::owners::Calls,
    images: parts::images::Calls,
    responses: parts::responses::Calls,
    turns: parts::turns::Calls,
    effects: parts::effects::Calls,
    checkpoints: parts::checkpoints::Calls,
    outcomes: ThreadMetrics,
}

#[derive(Debug, Clone)]
pub struct ObservedStore {
    backend: Arc<dyn Backend>,
    metrics: Arc<StoreMetrics>,
    stats: Stats,
    recorder: Arc<StoreRecorder>,
    /// True if the store is another process.
    is_remote: bool,
}

impl StoreMetrics {
    fn register(registry: &mut Registry, stats: &Stats) -> Self {
        let families = &Families::register(registry, stats);
        Self {
            threads: parts::threads::Calls::new(families),
            log: parts::log::Calls::new(families),
            archives: parts::archives::Calls::new(families),
            upkeep: parts::upkeep::Calls::new(families),
            leases: parts::leases::Calls::new(families),
            ledgers: parts::ledgers::Calls::new(families),
            registry: parts::registry::Calls::new(families),
            scopes: parts::scopes::Calls::new(families),
            listings: parts::listings::Calls::new(families),
            kv: parts::kv::Calls::new(families),
            rates: parts::rates::Calls::new(families),
            erasure: parts::erasure::Calls::new(families),
            owners: parts::owners::Calls::new(families),
            images: parts::images::Calls::new(families),
            responses: parts::responses::Calls::new(families),
            turns: parts::turns::Calls::new(families),
            effects: parts::effects::Calls::new(families),
            checkpoints: parts::checkpoints::Calls::new(families),
            outcomes: ThreadMetrics::register(registry),
        }
    }

    fn written(&self, answer: &Result<Written, WriteError>) {
        if let Ok(written) = answer {
            self.outcomes.written(written);
        }
    }

    fn begun(&self, answer: &Result<Effect, WriteError>) {
        if let Ok(effect) = answer {
            self.outcomes.begun(effect);
        }
    }

    fn settled(&self, answer: &Result<Settled, WriteError>) {
        if let Ok(settled) = answer {
            self.outcomes.settled(settled);
        }
    }

    fn imported(&self, answer: &Result<Imported, WriteError>) {
        if let Ok(Imported::Made(written)) = answer {
            self.outcomes.written(written);
        }
    }

    fn destroyed(&self, answer: &Result<Destroyed, WriteError>) {
        if let Ok(destroyed) = answer {
            self.outcomes.destroyed(*destroyed);
        }
    }

    fn erased(&self, answer: &Result<Option<Erased>, StoreError>) {
        if let Ok(Some(erased)) = answer {
            self.outcomes.erased(*erased);
        }
    }

    fn reaped(&self, answer: &Result<Reaped, StoreError>) {
        if let Ok(reaped) = answer {
            self.outcomes.reaped(*reaped);
        }
    }
}

impl ObservedStore {
    /// Wraps a back end and measures its calls. Registers the metrics, and records the calls in the statistics of the
    /// last minute.
    #[must_use]
    pub fn register(backend: Arc<dyn Backend>, registry: &mut Registry, stats: &Stats) -> Self {
        Self {
            is_remote: backend.links().is_some(),
            backend,
            metrics: Arc::new(StoreMetrics::register(registry, stats)),
            recorder: stats.store_recorder(),
            stats: stats.clone(),
        }
    }

    fn over(&self, backend: Arc<dyn Backend>) -> Self {
        Self {
            backend,
            metrics: Arc::clone(&self.metrics),
            recorder: self.stats.store_recorder(),
            is_remote: self.is_remote,
            stats: self.stats.clone(),
        }
    }
}

impl Backend for ObservedStore {
    fn for_worker(&self) -> Arc<dyn Backend> {
        Arc::new(self.over(self.backend.for_worker()))
    }

    fn for_responses(&self, runtime: Handle) -> Arc<dyn Backend> {
        Arc::new(self.over(self.backend.for_responses(runtime)))
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;
    use threadkeep_store::Clock;
    use threadkeep_store_memory::MemoryStore;

    #[actix_web::test]
    async fn calls_of_every_worker_are_measured_by_operation() {
        let mut registry = Registry::default();
        let backend = Arc::new(MemoryStore::new(Clock::system()));
        let store = ObservedStore::register(backend, &mut registry, &Stats::default());

        for _ in 0..2 {
            store.for_worker().ping().await.unwrap();
        }
        store.for_worker().for_worker().consumers().await.unwrap();

        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        for line in [
            r#"store_duration_seconds_count{operation="ping",part="threads"} 2"#,
            r#"store_errors_total{operation="ping",kind="timeout",part="threads"} 0"#,
            r#"store_duration_seconds_count{operation="consumers",part="ledgers"} 1"#,
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
        // operations without calls have no series
        assert_eq!(text.matches("store_duration_seconds_count").count(), 2);
        assert_eq!(text.matches("store_errors_total{").count(), 2 * 6);
    }
}
