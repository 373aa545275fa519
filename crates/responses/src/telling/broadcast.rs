//! A response as this process shows it to waiting callers.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use tokio::sync::watch;

use crate::values::error::ResponseError;
use crate::values::request::ResponseRequest;
use crate::values::response::EndedResponse;

/// Bytes of the last events that are kept for readers of this process; others read them from the store.
const TAIL_BYTES: usize = 16 * 1_024;
/// Bytes of an event beyond its text.
const EVENT_BYTES: usize = 64;

/// How a response ended, for all waiting callers.
pub(crate) type ResponseResult = Result<EndedResponse, Arc<ResponseError>>;

/// How far a response is.
#[derive(Debug, Clone)]
pub(crate) enum Progress {
    /// It has not begun.
    Beginning,
    /// It is driven here.
    Here(Arc<ResponseRequest>),
    /// It is driven elsewhere.
    Elsewhere,
    /// It has ended, or its driver has stopped.
    Done(ResponseResult),
}

/// Shows the course of a response to all waiting callers.
#[derive(Debug)]
pub(crate) struct Broadcast {
    progress: watch::Sender<Progress>,
    /// The request, once the response has begun here.
    begun: OnceLock<Arc<ResponseRequest>>,
    tail: Mutex<Tail>,
}

/// The last events.
#[derive(Debug, Default)]
struct Tail {
    /// The number of the first one.
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

    /// Changes with the progress, and with each batch of events.
    pub(crate) fn subscribe(&self) -> watch::Receiver<Progress> {
        self.progress.subscribe()
    }

    /// The events before that number are in the store.
    pub(crate) fn begin_at(&self, first: u64) {
        self.tail().first = first;
    }

    /// Shows how far the response is, unless that is known to be its end.
    pub(crate) fn show(&self, progress: Progress) {
        if let Progress::Here(request) = &progress {
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

    /// The request, if the response has begun here.
    pub(crate) fn begun(&self) -> Option<Arc<ResponseRequest>> {
        self.begun.get().cloned()
    }

    /// Shows events that are written, of which the first has that number.
    pub(crate) fn tell(&self, first: u64, events: Vec<Bytes>) {
        if events.is_empty() {
            return;
        }
        self.tail().add(first, events);
        self.progress.send_modify(|_| {});
    }

    /// The events from that number on, as far as they are here; none if the store has to be asked.
    pub(crate) fn told_from(&self, number: u64) -> Option<Vec<Bytes>> {
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
            // of its exact size
            self.events.push_back(Bytes::copy_from_slice(&event));
        }
        while self.bytes > TAIL_BYTES
            && let Some(gone) = self.events.pop_front()
        {
            self.bytes -= gone.len() + EVENT_BYTES;
            self.first += 1;
        }
    }
}

/// Waits for the result of a response.
pub(crate) async fn result_of(broadcast: &Broadcast) -> ResponseResult {
    let mut progress = broadcast.subscribe();
    let is_done = |progress: &Progress| matches!(progress, Progress::Done(_));
    match progress.wait_for(is_done).await.as_deref() {
        Ok(Progress::Done(result)) => result.clone(),
        _ => Err(Arc::new(ResponseError::Stopping)),
    }
}
