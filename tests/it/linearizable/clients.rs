use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use rand::RngExt as _;
use threadkeep_domain::{ThreadId, ThreadPolicy};
use threadkeep_store::{Backend, Clock, WriteError};
use tokio::runtime::Builder;
use tokio::sync::RwLock;
use tokio::task::{JoinHandle, spawn_blocking};

use super::check::{Checked, check};
use super::history::{Event, History, Interval};
use super::reads::read;
use super::writes::{end, restore, write};

const CLIENTS: usize = 6;

/// Workers of several replicas, and the threads that their clients share.
///
/// Each worker has its own OS thread and runtime, as in the server. The workers of a replica share a cache.
pub(super) struct Clients {
    workers: Vec<Arc<dyn Backend>>,
    threads: Vec<(ThreadId, History)>,
    clock: Clock,
    setup: Setup,
    done: AtomicUsize,
    limit: AtomicUsize,
    /// Held for reading during each operation.
    calls: RwLock<()>,
}

pub(super) struct Setup {
    pub(super) replicas: usize,
    pub(super) workers: usize,
    pub(super) threads: usize,
    /// Number of operations per 10,000 that end a thread. The same number of operations restore a thread.
    pub(super) ends: u32,
    pub(super) writes: u32,
    pub(super) may_fail: bool,
    pub(super) policy: ThreadPolicy,
    pub(super) pause: Duration,
}

/// Stops clients when dropped, including when a test fails.
struct Stop<'a>(&'a Clients);

impl Setup {
    /// Settings for tests in which the store does not fail and the clients do not end threads.
    pub(super) const STEADY: Self = Self {
        replicas: 3,
        workers: 2,
        threads: 50,
        ends: 0,
        writes: 2_500,
        may_fail: false,
        policy: ThreadPolicy::THREAD,
        pause: Duration::ZERO,
    };
    pub(super) const PATIENT: Self = Self {
        may_fail: true,
        ..Self::STEADY
    };
}

impl Clients {
    pub(super) fn new(workers: Vec<Arc<dyn Backend>>, clock: &Clock, setup: Setup) -> Arc<Self> {
        let thread = |_| (ThreadId::random(), History::default());
        Arc::new(Self {
            workers,
            threads: (0..setup.threads).map(thread).collect(),
            clock: clock.clone(),
            setup,
            done: AtomicUsize::new(0),
            limit: AtomicUsize::new(0),
            calls: RwLock::default(),
        })
    }

    pub(super) async fn run(self: &Arc<Self>, operations: usize) {
        for worker in join_all(self.start(operations)).await {
            worker.unwrap();
        }
    }

    pub(super) async fn run_during(self: &Arc<Self>, task: impl Future<Output = ()>) {
        let stop = Stop(self);
        let workers = self.start(usize::MAX);
        task.await;
        drop(stop);
        for worker in join_all(workers).await {
            worker.unwrap();
        }
    }

    pub(super) async fn await_more(&self, operations: usize) {
        let target = self.done() + operations;
        crate::support::until(async || self.done() >= target).await;
    }

    pub(super) fn done(&self) -> usize {
        self.done.load(Ordering::Relaxed)
    }

    /// Runs `action` while no call is in flight. `action` may shift the clock, which must not happen during a call.
    pub(super) async fn between_calls<T>(&self, action: impl FnOnce() -> T) -> T {
        let _no_call = self.calls.write().await;
        action()
    }

    pub(super) fn note(&self, at: Interval, event: Event) {
        for history in self.histories() {
            history.happened(at, event);
        }
    }

    pub(super) fn histories(&self) -> impl Iterator<Item = &History> {
        self.threads.iter().map(|(_, history)| history)
    }

    pub(super) fn hits(&self) -> (u64, u64) {
        // read the counters of only one worker per replica, because the workers of a replica share one cache
        let uses = self
            .workers
            .iter()
            .step_by(self.setup.workers)
            .map(|worker| worker.cache_use());
        let uses = uses.map(Option::unwrap_or_default);
        uses.fold((0, 0), |(hits, reads), cache| {
            (hits + cache.hits, reads + cache.hits + cache.misses)
        })
    }

    pub(super) fn check(&self) -> Checked {
        let mut checked = Checked::default();
        for history in self.histories() {
            checked += check(history, self.setup.may_fail);
        }
        checked
    }

    fn start(self: &Arc<Self>, operations: usize) -> Vec<JoinHandle<()>> {
        self.limit.store(operations, Ordering::Relaxed);
        let worker = |number| {
            let clients = Arc::clone(self);
            spawn_blocking(move || clients.work(number))
        };
        (0..self.workers.len()).map(worker).collect()
    }

    fn work(&self, worker: usize) {
        let store = &*self.workers[worker];
        let client = async || {
            while self.done() < self.limit.load(Ordering::Relaxed) {
                self.step(store).await;
            }
        };
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(join_all((0..CLIENTS).map(|_| client())));
    }

    async fn step(&self, store: &dyn Backend) {
        let Setup {
            threads,
            ends,
            writes,
            policy,
            pause,
            ..
        } = &self.setup;
        let (thread, choice) = {
            let mut random = rand::rng();
            // a few threads get most operations
            let thread = random
                .random_range(0..*threads)
                .min(random.random_range(0..*threads));
            (thread, random.random_range(0..10_000))
        };
        let (id, history) = &self.threads[thread];
        let done = {
            let _call = self.calls.read().await;
            if choice < *ends {
                end(store, id, history).await
            } else if choice < 2 * ends {
                restore(store, id, history).await
            } else if choice < 2 * ends + writes {
                write(store, id, history, policy).await
            } else {
                read(store, id, history, &self.clock, policy).await
            }
        };
        match done {
            Ok(()) => {
                self.done.fetch_add(1, Ordering::Relaxed);
                if !pause.is_zero() {
                    tokio::time::sleep(*pause).await;
                }
            }
            Err(WriteError::Store(_)) if self.setup.may_fail => {
                // pause before the next call, as a client would, so that Redis gets CPU time
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            Err(error) => panic!("{error}"),
        }
    }
}

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.limit.store(0, Ordering::Relaxed);
    }
}
