//! Publishes the progress of a response to waiting callers in this process.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use tokio::sync::watch;

use crate::values::error::ResponseError;
use crate::values::request::ResponseRequest;
use crate::values::response::EndedResponse;

/// Maximum total size of the recent events that are kept in memory, in bytes. Earlier events are read from the store.
const TAIL_BYTES: usize = 16 * 1_024;
/// Estimated overhead of an event in memory, in bytes.
const EVENT_BYTES: usize = 64;

pub(crate) type ResponseResult = Result<EndedResponse, Arc<ResponseError>>;

#[derive(Debug, Clone)]
pub(crate) enum Progress {
    Beginning,
    /// A driver in this process runs the response.
    Local(Arc<ResponseRequest>),
    /// A driver in a different process runs the response.
    Remote,
    /// The response has ended, or its driver has stopped.
    Done(ResponseResult),
}

#[derive(Debug)]
pub(crate) struct Broadcast {
    progress: watch::Sender<Progress>,
    /// Set once the response has begun in this process.
    begun: OnceLock<Arc<ResponseRequest>>,
    tail: Mutex<Tail>,
}

#[derive(Debug, Default)]
struct Tail {
    /// Number of the first event in `events`.
    first: u64,
    events: VecDeque<Bytes>,
    bytes: usize,
}

impl Broadcast {
    pub(crate) fn new() -> Self {
        Self {
            progress: watch::Sender::new(Progress::Beginning),
            begun: OnceLock::new(),
            tail: Mutex::default(),
        }
    }

    /// Returns a receiver that is notified of each change in progress and of each batch of events.
    pub(crate) fn subscribe(&self) -> watch::Receiver<Progress> {
        self.progress.subscribe()
    }

    /// Sets the number of the first event that is kept in memory. Earlier events must be read from the store.
    pub(crate) fn begin_at(&self, first: u64) {
        self.tail().first = first;
    }

    /// Publishes the progress. Has no effect if the end has already been published.
    pub(crate) fn show(&self, progress: Progress) {
        if let Progress::Local(request) = &progress {
            self.begun.get_or_init(|| Arc::clone(request));
        }
        self.progress.send_if_modified(|shown| {
            let is_done = matches!(shown, Progress::Done(_));
            if !is_done {
                *shown = progress;
            }
            !is_done
        });
    }

    pub(crate) fn begun(&self) -> Option<Arc<ResponseRequest>> {
        self.begun.get().cloned()
    }

    /// Publishes stored events. `first` is the number of the first event.
    pub(crate) fn publish(&self, first: u64, events: Vec<Bytes>) {
        if events.is_empty() {
            return;
        }
        self.tail().add(first, events);
        self.progress.send_modify(|_| {});
    }

    /// Returns the events starting at number `number`, or `None` if they must be read from the store.
    pub(crate) fn events_from(&self, number: u64) -> Option<Vec<Bytes>> {
        let tail = self.tail();
        let skipped = number.checked_sub(tail.first)?;
        let skipped = usize::try_from(skipped).ok()?;
        Some(tail.events.iter().skip(skipped).cloned().collect())
    }

    fn tail(&self) -> MutexGuard<'_, Tail> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tail {
    fn add(&mut self, first: u64, events: Vec<Bytes>) {
        if self.events.is_empty() || first != self.first + self.events.len() as u64 {
            *self = Self {
                first,
                ..Self::default()
            };
        }
        for event in events {
            self.bytes += event.len() + EVENT_BYTES;
            // copies the event, because a slice of a larger buffer would keep the whole buffer in memory
            self.events.push_back(Bytes::copy_from_slice(&event));
        }
        while self.bytes > TAIL_BYTES
            && let Some(removed) = self.events.pop_front()
        {
            self.bytes -= removed.len() + EVENT_BYTES;
            self.first += 1;
        }
    }
}

pub(crate) async fn result_of(broadcast: &Broadcast) -> ResponseResult {
    let mut progress = broadcast.subscribe();
    let is_done = |progress: &Progress| matches!(progress, Progress::Done(_));
    match progress.wait_for(is_done).await.as_deref() {
        Ok(Progress::Done(result)) => result.clone(),
        _ => Err(Arc::new(ResponseError::Stopping)),
    }
}
