use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::mpsc::{self, Receiver, Sender};

use super::span::{Ended, Span};
use threadkeep_domain::TraceParent;

/// Records spans. Clones share the queue.
#[derive(Debug, Clone)]
pub struct Tracer(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    queue: Sender<Span>,
    /// The fraction of new traces that are recorded, from 0 to 1.
    ratio: f64,
    dropped: AtomicU64,
}

/// A span in progress. It is recorded when it ends, and discarded if it is dropped before that.
#[derive(Debug, Clone)]
pub struct Recording {
    tracer: Tracer,
    span_context: TraceParent,
    parent: Option<[u8; 8]>,
    started: Instant,
    /// The wall-clock time of `started`.
    start: SystemTime,
}

impl Tracer {
    /// Returns a tracer whose queue holds up to `length` spans, and the receiver of the queue. While the queue is full,
    /// new spans are dropped and counted.
    #[must_use]
    pub fn new(length: usize, ratio: f64) -> (Self, Receiver<Span>) {
        let (queue, spans) = mpsc::channel(length);
        let dropped = AtomicU64::new(0);
        let shared = Shared {
            queue,
            ratio,
            dropped,
        };
        (Self(Arc::new(shared)), spans)
    }

    /// Starts a span in the trace of `parent`, or in a new trace. Returns `None` if the trace is not recorded. This
    /// depends on the sampling flag of `parent` or, for a new trace, on the sampling ratio.
    #[must_use]
    pub fn begin(&self, parent: Option<TraceParent>, started: Instant) -> Option<Recording> {
        let (span_context, parent) = match parent {
            Some(parent) if parent.is_sampled() => {
                (parent.with_span(span_id()), Some(parent.span_id()))
            }
            Some(_) => return None,
            None => (self.root()?, None),
        };
        Some(Recording {
            tracer: self.clone(),
            span_context,
            parent,
            started,
            start: SystemTime::now() - started.elapsed(),
        })
    }

    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.0.dropped.load(Ordering::Relaxed)
    }

    fn root(&self) -> Option<TraceParent> {
        let is_recorded = self.0.ratio > 0.0 && rand::random::<f64>() < self.0.ratio;
        is_recorded.then(|| {
            // ids must not be zero
            let trace_id = rand::random::<u128>().max(1).to_be_bytes();
            TraceParent::new(trace_id, span_id(), true)
        })
    }

    fn record(&self, span: Span) {
        if self.0.queue.try_send(span).is_err() {
            self.0.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn span_id() -> [u8; 8] {
    rand::random::<u64>().max(1).to_be_bytes()
}

impl Recording {
    /// Returns the trace parent of later work.
    #[must_use]
    pub fn span_context(&self) -> TraceParent {
        self.span_context
    }

    pub fn end(&self, ended: Instant, end: Ended) {
        self.record(self.span_context, self.parent, self.started, ended, end);
    }

    pub fn part(&self, started: Instant, ended: Instant, end: Ended) {
        let span_context = self.span_context.with_span(span_id());
        let parent = Some(self.span_context.span_id());
        self.record(span_context, parent, started, ended, end);
    }

    fn record(
        &self,
        span_context: TraceParent,
        parent: Option<[u8; 8]>,
        started: Instant,
        ended: Instant,
        end: Ended,
    ) {
        self.tracer.record(Span {
            context: span_context,
            parent,
            name: end.name,
            kind: end.kind,
            start_ns: self.ns(started),
            end_ns: self.ns(ended),
            attributes: end.attributes,
            has_failed: end.has_failed,
        });
    }

    fn ns(&self, at: Instant) -> u64 {
        let at = self.start + at.saturating_duration_since(self.started);
        let since = at.duration_since(SystemTime::UNIX_EPOCH);
        u64::try_from(since.unwrap_or(Duration::ZERO).as_nanos()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SpanKind;

    fn ended() -> Ended {
        Ended {
            name: "a".into(),
            kind: SpanKind::Internal,
            attributes: Vec::new(),
            has_failed: false,
        }
    }

    #[test]
    fn a_trace_continues_if_its_caller_samples_it() {
        let (tracer, mut spans) = Tracer::new(8, 0.0);
        let parent = |is_sampled| TraceParent::new([1; 16], [2; 8], is_sampled);
        let start = Instant::now();

        assert!(tracer.begin(Some(parent(false)), start).is_none());
        assert!(tracer.begin(None, start).is_none());
        let recording = tracer.begin(Some(parent(true)), start).unwrap();
        let later = start + Duration::from_millis(5);
        recording.part(start, later, ended());
        recording.end(later, ended());

        let (part, span) = (spans.try_recv().unwrap(), spans.try_recv().unwrap());
        assert_eq!(span.context, recording.span_context());
        assert_eq!(span.context.trace_id(), [1; 16]);
        assert_eq!(span.parent, Some([2; 8]));
        assert_eq!(part.parent, Some(span.context.span_id()));
        assert_ne!(part.context.span_id(), span.context.span_id());
        assert_eq!(span.end_ns - span.start_ns, 5_000_000);
    }

    #[test]
    fn new_traces_are_sampled_at_the_ratio() {
        let count = |ratio| {
            let (tracer, _spans) = Tracer::new(1, ratio);
            let begun = (0..10_000).filter_map(|_| tracer.begin(None, Instant::now()));
            begun.filter(|recording| recording.parent.is_none()).count()
        };

        assert_eq!(count(1.0), 10_000);
        let half = count(0.5);
        assert!((4_500..5_500).contains(&half), "{half}");
    }

    #[test]
    fn spans_are_dropped_and_counted_when_the_queue_is_full() {
        let (tracer, spans) = Tracer::new(2, 1.0);
        let recording = tracer.begin(None, Instant::now()).unwrap();

        for _ in 0..5 {
            recording.end(Instant::now(), ended());
        }

        assert_eq!(tracer.dropped(), 3);
        assert_eq!(spans.len(), 2);
    }
}
