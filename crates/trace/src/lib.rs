//! The context of a request, for all code that works for it: its trace, and where its time goes.
//!
//! Traces go through all layers without being named in any of them, as in other systems: a store asks for the trace when it
//! logs an event. Requests without a trace, and of which no times are wanted, have no context, and asking for one then
//! costs a look at a variable of the thread.

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

/// The context of a request.
#[derive(Debug)]
pub struct Context {
    parent: Option<TraceParent>,
    recording: Option<Recording>,
    clocks: Clocks,
}

impl Context {
    /// That of a request which began then. Its events and deliveries get this parent.
    #[must_use]
    pub fn new(parent: Option<TraceParent>, started: Instant) -> Arc<Self> {
        Arc::new(Self {
            parent,
            recording: None,
            clocks: Clocks::new(started),
        })
    }

    /// That of work which is recorded as a span. All that it leads to is a part of the span.
    #[must_use]
    pub fn recorded(recording: Recording, started: Instant) -> Arc<Self> {
        Arc::new(Self {
            parent: Some(recording.place()),
            recording: Some(recording),
            clocks: Clocks::new(started),
        })
    }

    /// The span, if it is recorded.
    #[must_use]
    pub fn recording(&self) -> Option<&Recording> {
        self.recording.as_ref()
    }

    /// The parent of all that it leads to.
    #[must_use]
    pub fn parent(&self) -> Option<TraceParent> {
        self.parent
    }

    /// Where the time went until then.
    #[must_use]
    pub fn times(&self, ended: Instant) -> Times {
        self.clocks.times(ended)
    }
}

/// Does something in the context of a request.
pub async fn within<F: Future>(context: Arc<Context>, work: F) -> F::Output {
    CURRENT.scope(context, work).await
}

/// Does something that continues a trace, if there is one.
pub async fn continuing<F: Future>(parent: Option<TraceParent>, work: F) -> F::Output {
    match parent {
        Some(_) => within(Context::new(parent, Instant::now()), work).await,
        None => work.await,
    }
}

/// The context of the code that asks.
#[must_use]
pub fn current() -> Option<Arc<Context>> {
    CURRENT.try_with(Arc::clone).ok()
}

/// The parent of all that the code leads to which asks.
#[must_use]
pub fn parent() -> Option<TraceParent> {
    CURRENT.try_with(|context| context.parent).ok().flatten()
}

/// Counts the time until the value is dropped as spent in this way.
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
    async fn the_trace_of_a_request_is_known_to_its_own_code_alone() {
        assert_eq!(parent(), None);

        let seen = continuing(Some(a_parent()), async {
            let spawned = tokio::spawn(async { parent() });
            (parent(), spawned.await.unwrap())
        });

        assert_eq!(seen.await, (Some(a_parent()), None));
        assert_eq!(parent(), None);
    }

    #[tokio::test]
    async fn times_that_overlap_count_once_and_the_rest_is_the_rest() {
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
