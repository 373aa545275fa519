//! Measures where the time of a request is spent.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::Context;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Body,
    Store,
    /// Waiting for a shared resource: a permit to call the store, the turn of a thread, or memory for a response.
    /// Waiting for a store permit does not count as [`Phase::Store`].
    Waiting,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    pub body: Duration,
    pub store: Duration,
    pub waiting: Duration,
    pub rest: Duration,
}

/// One clock per phase. The clocks use relaxed atomic operations, because a request runs on one thread at a time.
#[derive(Debug)]
pub(super) struct Clocks {
    started: Instant,
    body: Clock,
    store: Clock,
    waiting: Clock,
}

/// A clock that runs while at least one operation is in its phase.
#[derive(Debug, Default)]
struct Clock {
    running: AtomicU32,
    since_ns: AtomicU64,
    total_ns: AtomicU64,
}

#[derive(Debug)]
pub struct Spending(Option<(Arc<Context>, Phase)>);

impl Clocks {
    pub(super) fn new(started: Instant) -> Self {
        Self {
            started,
            body: Clock::default(),
            store: Clock::default(),
            waiting: Clock::default(),
        }
    }

    pub(super) fn times(&self, ended: Instant) -> Times {
        let at_ns = self.ns(ended);
        let spent = |clock: &Clock| Duration::from_nanos(clock.spent_ns(at_ns));
        let (body, store, waiting) = (spent(&self.body), spent(&self.store), spent(&self.waiting));
        let total = Duration::from_nanos(at_ns);
        Times {
            body,
            store,
            waiting,
            rest: total.saturating_sub(body + store + waiting),
        }
    }

    fn enter(&self, phase: Phase) {
        let at_ns = self.ns(Instant::now());
        match phase {
            Phase::Body => self.body.enter(at_ns),
            Phase::Store if self.waiting.is_running() => self.store.join(),
            Phase::Store => self.store.enter(at_ns),
            Phase::Waiting => {
                self.store.pause(at_ns);
                self.waiting.enter(at_ns);
            }
        }
    }

    fn leave(&self, phase: Phase) {
        let at_ns = self.ns(Instant::now());
        match phase {
            Phase::Body => self.body.leave(at_ns),
            Phase::Store => self.store.leave(at_ns),
            Phase::Waiting => {
                self.waiting.leave(at_ns);
                if !self.waiting.is_running() {
                    self.store.resume(at_ns);
                }
            }
        }
    }

    fn ns(&self, at: Instant) -> u64 {
        let since = at.saturating_duration_since(self.started);
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    }
}

/// Value of `since_ns` while the clock is paused.
const PAUSED: u64 = u64::MAX;

impl Clock {
    fn is_running(&self) -> bool {
        self.running.load(Ordering::Relaxed) > 0
    }

    fn join(&self) {
        if self.running.fetch_add(1, Ordering::Relaxed) == 0 {
            self.since_ns.store(PAUSED, Ordering::Relaxed);
        }
    }

    fn enter(&self, at_ns: u64) {
        if self.running.fetch_add(1, Ordering::Relaxed) == 0 {
            self.since_ns.store(at_ns, Ordering::Relaxed);
        }
    }

    fn leave(&self, at_ns: u64) {
        if self.running.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.count(at_ns);
        }
    }

    fn pause(&self, at_ns: u64) {
        if self.is_running() {
            self.count(at_ns);
            self.since_ns.store(PAUSED, Ordering::Relaxed);
        }
    }

    fn resume(&self, at_ns: u64) {
        if self.is_running() {
            self.since_ns.store(at_ns, Ordering::Relaxed);
        }
    }

    fn count(&self, at_ns: u64) {
        let since_ns = self.since_ns.load(Ordering::Relaxed);
        // the difference is 0 if the clock was paused
        let more_ns = at_ns.saturating_sub(since_ns);
        self.total_ns.fetch_add(more_ns, Ordering::Relaxed);
    }

    fn spent_ns(&self, at_ns: u64) -> u64 {
        let total_ns = self.total_ns.load(Ordering::Relaxed);
        match self.is_running() {
            true => total_ns + at_ns.saturating_sub(self.since_ns.load(Ordering::Relaxed)),
            false => total_ns,
        }
    }
}

impl Spending {
    pub(super) fn begin(context: Option<Arc<Context>>, phase: Phase) -> Self {
        if let Some(context) = &context {
            context.clocks.enter(phase);
        }
        Self(context.map(|context| (context, phase)))
    }

    #[must_use]
    pub fn context(&self) -> Option<&Context> {
        let (context, _) = self.0.as_ref()?;
        Some(context)
    }
}

impl Drop for Spending {
    fn drop(&mut self) {
        if let Some((context, phase)) = &self.0 {
            context.clocks.leave(*phase);
        }
    }
}
