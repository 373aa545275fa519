//! Statistics of this replica for the last minute: its busiest threads, routes, and store latency.
//!
//! Each worker has its own recorders, so that requests do not wait for other workers. A report merges the recorders of
//! all workers.

mod busiest;
mod hot;
mod largest;
mod latency;
mod levels;
mod recorder;
mod report;
mod routes;
mod window;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Instant, SystemTime};

use hot::{Hashed, Hasher, HotThreads, PARTITIONS};
use largest::{LIST_MAX, Large, Largest};
use latency::Latency;
use routes::ResponseStats;
use window::{Clock, Slot, Window};

pub use levels::{Level, Levels};
pub use recorder::{Call, StoreRecorder, Use};
pub use report::{
    Busy, CallRow, Durations, LargeState, Replica, Report, Requests, RouteRow, ThreadLists,
};
pub use routes::RouteRecorder;

/// The statistics of this process, which all clones share.
#[derive(Debug, Clone)]
pub struct Stats(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    id: String,
    clock: Clock,
    started_at: SystemTime,
    /// Shared by all workers, so that a thread is in the same partition on every worker.
    hasher: Hasher,
    kinds: Mutex<Vec<(&'static str, &'static str)>>,
    stores: Mutex<Vec<Arc<StoreRecorder>>>,
    routes: Mutex<Vec<Arc<RouteRecorder>>>,
    levels: OnceLock<Box<dyn Levels>>,
    /// Held while a report is being built, so that reports use at most one CPU.
    reporting: Mutex<()>,
}

impl Default for Stats {
    fn default() -> Self {
        let clock = Clock {
            started: Instant::now(),
        };
        Self(Arc::new(Shared {
            id: format!("{:016x}", rand::random::<u64>()),
            clock,
            started_at: SystemTime::now(),
            hasher: Hasher::default(),
            kinds: Mutex::default(),
            stores: Mutex::default(),
            routes: Mutex::default(),
            levels: OnceLock::new(),
            reporting: Mutex::default(),
        }))
    }
}

impl Stats {
    #[must_use]
    pub fn id(&self) -> &str {
        &self.0.id
    }

    /// Registers a kind of call, and returns the index to pass as [`Call::kind`]. Call this once per kind.
    #[must_use]
    pub fn kind(&self, part: &'static str, operation: &'static str) -> usize {
        let mut kinds = lock(&self.0.kinds);
        kinds.push((part, operation));
        kinds.len() - 1
    }

    /// Returns a recorder for the store calls of one worker. Reuses the recorder of a worker that has ended, if any.
    #[must_use]
    pub fn store_recorder(&self) -> Arc<StoreRecorder> {
        let new = || StoreRecorder::new(self.0.clock, self.0.hasher.clone());
        unused_or(&mut lock(&self.0.stores), new)
    }

    /// Returns a recorder for the requests of one worker. Reuses the recorder of a worker that has ended, if any.
    #[must_use]
    pub fn route_recorder(&self) -> Arc<RouteRecorder> {
        let new = || RouteRecorder::new(self.0.clock);
        unused_or(&mut lock(&self.0.routes), new)
    }

    /// Adds `levels` to reports. Has no effect after the first call.
    pub fn show(&self, levels: impl Levels + 'static) {
        let _ = self.0.levels.set(Box::new(levels));
    }

    /// Builds a report. Takes a few milliseconds, so do not call this on a worker thread.
    #[must_use]
    pub fn report(&self) -> Report {
        self.report_at(Instant::now())
    }

    fn report_at(&self, now: Instant) -> Report {
        let _guard = lock(&self.0.reporting);
        let slot = self.0.clock.slot(now);
        let stores = lock(&self.0.stores).clone();
        let (routes, all_routes) = self.routes(slot);
        Report {
            replica: Replica {
                id: self.0.id.clone(),
                started_at: self.0.started_at,
                now: self.0.started_at + now.saturating_duration_since(self.0.clock.started),
            },
            window: self.0.clock.covered(now),
            routes,
            all_routes,
            calls: self.calls(&stores, slot),
            threads: ThreadLists {
                by_writes: busiest::busiest(&stores, slot, |threads| &threads.writes),
                by_reads: busiest::busiest(&stores, slot, |threads| &threads.reads),
                by_bytes: busiest::busiest(&stores, slot, |threads| &threads.bytes),
                largest: self.largest(&stores, slot),
            },
            level: self
                .0
                .levels
                .get()
                .map(|levels| levels.now())
                .unwrap_or_default(),
        }
    }

    fn largest(&self, stores: &[Arc<StoreRecorder>], slot: u64) -> Vec<LargeState> {
        let largest = busiest::largest(stores, slot);
        let state = |state: largest::Large| LargeState {
            id: state.id,
            size_bytes: state.size_bytes,
            seen_at: self.0.started_at + state.seen.saturating_duration_since(self.0.clock.started),
        };
        largest.into_iter().map(state).collect()
    }

    fn routes(&self, slot: u64) -> (Vec<RouteRow>, Requests) {
        let mut by_name = BTreeMap::<(Arc<str>, &'static str), (u64, u64, ResponseStats)>::new();
        let mut all = <(u64, u64, ResponseStats)>::default();
        for recorder in lock(&self.0.routes).iter() {
            for route in recorder.routes().iter() {
                let name = (Arc::clone(&route.route), route.method);
                for (requests, errors, responses) in [by_name.entry(name).or_default(), &mut all] {
                    *requests += route.requests;
                    *errors += route.errors;
                    route
                        .recent
                        .recent(slot)
                        .for_each(|more| responses.add(more));
                }
            }
        }
        let rows = by_name
            .into_iter()
            .map(|((route, method), totals)| RouteRow {
                route,
                method,
                requests: Requests::of(totals),
            })
            .collect();
        (rows, Requests::of(all))
    }

    fn calls(&self, stores: &[Arc<StoreRecorder>], slot: u64) -> Vec<CallRow> {
        let kinds = lock(&self.0.kinds).clone();
        let mut rows = Vec::new();
        for (kind, (part, operation)) in kinds.into_iter().enumerate() {
            let (mut total, mut failures) = (0, 0);
            let mut durations = Latency::default();
            for store in stores {
                let parts = store.parts();
                let calls = parts.calls.get(kind).and_then(Option::as_deref);
                if let Some(calls) = calls {
                    total += calls.total;
                    failures += calls.failures;
                    calls
                        .durations
                        .recent(slot)
                        .for_each(|more| durations.add(more));
                }
            }
            if total > 0 {
                rows.push(CallRow {
                    part,
                    operation,
                    calls_total: total,
                    failures_total: failures,
                    durations: Durations::of(&durations),
                });
            }
        }
        rows
    }
}

fn unused_or<T>(recorders: &mut Vec<Arc<T>>, new: impl FnOnce() -> T) -> Arc<T> {
    let unused = recorders
        .iter()
        .find(|recorder| Arc::strong_count(recorder) == 1);
    if let Some(unused) = unused {
        return Arc::clone(unused);
    }
    let recorder = Arc::new(new());
    recorders.push(Arc::clone(&recorder));
    recorder
}

/// Locks `mutex`. Ignores poisoning, because the statistics are valid even after a panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
