//! Logs completed requests through a queue, so that requests do not wait for the log.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{EventCounters, Outage};
use threadkeep_domain::{Completed, ThreadId, TraceParent};
use threadkeep_store::{EventLog, StoreError};
use threadkeep_trace as trace;

/// Number of concurrent writers. All events of a thread go to the same writer, which keeps them in order.
const WRITERS: usize = 8;
/// Maximum number of events in the queue of each writer.
const QUEUED_EVENTS_MAX: usize = 512;
/// Time limit for writing the remaining events at shutdown.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Debug)]
struct Ended {
    id: ThreadId,
    completed: Completed,
    trace: Option<TraceParent>,
}

#[derive(Debug)]
pub(super) struct Sessions {
    writers: Vec<Sender<Ended>>,
    counters: Arc<EventCounters>,
}

impl Sessions {
    pub(super) fn start(
        log: &Arc<dyn EventLog>,
        counters: &Arc<EventCounters>,
        tasks: &TaskTracker,
        stop: &CancellationToken,
    ) -> Self {
        let writers = (0..WRITERS).map(|_| {
            let (sender, queue) = mpsc::channel(QUEUED_EVENTS_MAX);
            let writer = Writer {
                log: Arc::clone(log),
                counters: Arc::clone(counters),
                queue,
                outage: Outage::new("logging the ends of requests"),
            };
            tasks.spawn(writer.run(stop.clone()));
            sender
        });
        Self {
            writers: writers.collect(),
            counters: Arc::clone(counters),
        }
    }

    /// Queues the event of a completed request. If the queue is full, drops and counts the event. Never waits.
    pub(super) fn log(&self, id: ThreadId, completed: Completed) {
        let mut hasher = DefaultHasher::new();
        id.hash(&mut hasher);
        let writer = &self.writers[hasher.finish() as usize % self.writers.len()];
        let ended = Ended {
            id,
            completed,
            trace: trace::parent(),
        };
        if writer.try_send(ended).is_err() {
            self.counters.sessions_dropped.inc();
        }
    }
}

impl Ended {
    async fn log(&self, log: &dyn EventLog) -> Result<(), StoreError> {
        let logging = log.log_completed(&self.id, &self.completed);
        trace::continuing(self.trace, logging).await
    }
}

struct Writer {
    log: Arc<dyn EventLog>,
    counters: Arc<EventCounters>,
    queue: Receiver<Ended>,
    outage: Outage,
}

impl Writer {
    async fn run(mut self, stop: CancellationToken) {
        loop {
            let next = tokio::select! {
                next = self.queue.recv() => next,
                () = stop.cancelled() => break,
            };
            let Some(ended) = next else {
                return;
            };
            self.write(&ended, &stop).await;
        }
        self.queue.close();
        let remaining = async {
            while let Some(ended) = self.queue.recv().await {
                if ended.log(&*self.log).await.is_err() {
                    self.counters.sessions_dropped.inc();
                }
            }
        };
        let _ = timeout(SHUTDOWN_TIMEOUT, remaining).await;
    }

    /// Writes an event. Retries while the store is unavailable or full. An event that may already have been written is
    /// not retried, so that no event is logged twice.
    async fn write(&mut self, ended: &Ended, stop: &CancellationToken) {
        loop {
            match ended.log(&*self.log).await {
                Ok(()) => {
                    self.outage.record_success();
                    return;
                }
                Err(error @ (StoreError::Unavailable(_) | StoreError::Full)) => {
                    let pause = self.outage.record_failure(&error);
                    if timeout(pause, stop.cancelled()).await.is_ok() {
                        self.counters.sessions_dropped.inc();
                        return;
                    }
                }
                Err(error) => {
                    self.outage.record_failure(&error);
                    self.counters.sessions_dropped.inc();
                    return;
                }
            }
        }
    }
}
