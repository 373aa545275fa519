//! Holds the context of a request: its trace, and how its time is spent.
//!
//! The context is task-local, so functions need not pass it on. For example, a store reads the trace when it logs an
//! event. A request that is neither traced nor timed has no context, so looking up its context costs only one access
//! to a thread-local variable.

mod span;
mod spent;
mod tracer;

use std::future::Future;
use std::sync::Arc;
use std::time::Instant;

use tokio::task_local;

pub use span::{Attribute, AttributeValue, Ended, Span, SpanKind};
use spent::Clocks;
pub use spent::{Phase, Spending, Times};
use threadkeep_domain::TraceParent;
pub use tracer::{Recording, Tracer};

task_local! {
    static CURRENT: Arc<Context>;
}

#[derive(Debug)]
pub struct Context {
    parent: Option<TraceParent>,
    recording: Option<Recording>,
    clocks: Clocks,
}

impl Context {
    /// Builds the context for a request that began at `started`. The request's events and deliveries inherit `parent`.
    #[must_use]
    pub fn new(parent: Option<TraceParent>, started: Instant) -> Arc<Self> {
        Arc::new(Self {
            parent,
            recording: None,
            clocks: Clocks::new(started),
        })
    }

    /// Builds the context for work that is recorded as a span. The span becomes the parent of later work.
    #[must_use]
    pub fn recorded(recording: Recording, started: Instant) -> Arc<Self> {
        Arc::new(Self {
            parent: Some(recording.span_context()),
            recording: Some(recording),
            clocks: Clocks::new(started),
        })
    }

    #[must_use]
    pub fn recording(&self) -> Option<&Recording> {
        self.recording.as_ref()
    }

    /// Returns the trace parent of events and deliveries.
    #[must_use]
    pub fn parent(&self) -> Option<TraceParent> {
        self.parent
    }

    #[must_use]
    pub fn times(&self, ended: Instant) -> Times {
        self.clocks.times(ended)
    }
}

pub async fn within<F: Future>(context: Arc<Context>, work: F) -> F::Output {
    CURRENT.scope(context, work).await
}

pub async fn continuing<F: Future>(parent: Option<TraceParent>, work: F) -> F::Output {
    match parent {
        Some(_) => within(Context::new(parent, Instant::now()), work).await,
        None => work.await,
    }
}

#[must_use]
pub fn current() -> Option<Arc<Context>> {
    CURRENT.try_with(Arc::clone).ok()
}

#[must_use]
pub fn parent() -> Option<TraceParent> {
    CURRENT.try_with(|context| context.parent).ok().flatten()
}

/// Counts time as spent in `phase` until the returned value is dropped.
#[must_use]
pub fn spend(phase: Phase) -> Spending {
    Spending::begin(current(), phase)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn a_parent() -> TraceParent {
        TraceParent::new([1; 16], [2; 8], true)
    }

    #[tokio::test]
    async fn the_trace_is_visible_only_inside_its_request() {
        assert_eq!(parent(), None);

        let seen = continuing(Some(a_parent()), async {
            let spawned = tokio::spawn(async { parent() });
            (parent(), spawned.await.unwrap())
        });

        assert_eq!(seen.await, (Some(a_parent()), None));
        assert_eq!(parent(), None);
    }

    #[tokio::test]
    async fn overlapping_times_count_once_and_add_up_to_the_total() {
        let start = Instant::now();
        let context = Context::new(None, start);

        within(Arc::clone(&context), async {
            let one = spend(Phase::Store);
            let other = spend(Phase::Store);
            tokio::time::sleep(Duration::from_millis(20)).await;
            drop(one);
            let waiting = spend(Phase::Waiting);
            tokio::time::sleep(Duration::from_millis(20)).await;
            drop((waiting, other));
        })
        .await;

        let total = start.elapsed();
        let times = context.times(start + total);
        assert!(times.store >= Duration::from_millis(20), "{times:?}");
        assert!(times.waiting >= Duration::from_millis(20), "{times:?}");
        assert_eq!(times.body, Duration::ZERO);
        assert_eq!(times.store + times.waiting + times.rest, total, "{times:?}");
    }
}
