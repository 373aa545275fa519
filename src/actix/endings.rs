use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::RwLock;
use tokio::time::sleep;

use super::{Callbacks, Repeatable};
use threadkeep_domain::{Event, EventKind, EventType, Position, ThreadId};
use threadkeep_events::{Events, GlobalItem, GlobalStream, Notice};
use threadkeep_service::ServiceError;
use threadkeep_store::{Backend, StoreError};
use threadkeep_web::ApiError;

/// Maximum number of waiting callbacks for all threads together.
const CALLBACKS_MAX: usize = 10_000;
const CALLBACKS_PER_THREAD_MAX: usize = 100;
const PAUSE: Duration = Duration::from_secs(1);

#[derive(Debug, Clone)]
pub(super) struct Endings {
    events: Events,
    waiting: Arc<Waiting>,
    callbacks: Callbacks,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ticket {
    thread: ThreadId,
    number: u64,
}

#[derive(Debug, Default)]
struct Waiting {
    /// True if a task is reading the event log.
    ///
    /// [`Endings::add`] holds the read lock while it reads the end of the log and inserts the callback. Otherwise, an
    /// event could be dispatched between these two steps, and the callback would miss the event.
    is_reading: RwLock<bool>,
    list: Mutex<List>,
}

#[derive(Debug, Default)]
struct List {
    threads: HashMap<ThreadId, Vec<Waiter>>,
    count: usize,
    next: u64,
}

struct Waiter {
    number: u64,
    /// End of the log when the callback was registered. Events before it are about an earlier thread with the same id.
    after: Position,
    callback: Repeatable<Notice>,
}

impl Endings {
    pub(super) fn new(events: Events, callbacks: Callbacks) -> Self {
        Self {
            events,
            waiting: Arc::default(),
            callbacks,
        }
    }

    /// Registers a callback for the next time `thread` ends. Returns its ticket, and whether the thread exists.
    pub(super) async fn add(
        &self,
        thread: ThreadId,
        callback: Repeatable<Notice>,
    ) -> Result<(Ticket, bool), ApiError> {
        let _reading = loop {
            self.ensure_reading().await.map_err(ServiceError::Store)?;
            let is_reading = self.waiting.is_reading.read().await;
            // the reading task stops if no callbacks are waiting, so it may have stopped before this lock was acquired
            if *is_reading {
                break is_reading;
            }
        };
        // waits only 1 ms for changes, because only the current end of the log is needed
        let backend = self.events.backend();
        let watched = backend.watch(&[thread], Duration::from_millis(1)).await;
        let watched = watched.map_err(ServiceError::Store)?;
        let (after, exists) = match watched.first() {
            Some(watched) => (watched.head, watched.stamp.version > 0),
            None => (Position::default(), true),
        };
        let ticket = self.waiting.list().add(thread, after, callback)?;
        Ok((ticket, exists))
    }

    pub(super) fn forget(&self, ticket: Ticket) {
        self.waiting.list().forget(ticket);
    }

    async fn ensure_reading(&self) -> Result<(), StoreError> {
        if *self.waiting.is_reading.read().await {
            return Ok(());
        }
        let mut is_reading = self.waiting.is_reading.write().await;
        if !*is_reading {
            let types = [EventType::ThreadDestroyed, EventType::ThreadRotated];
            let types = types.into_iter().collect();
            let reader = Reader {
                stream: self.events.global_stream(types, None).await?,
                backend: Arc::clone(self.events.backend()),
                waiting: Arc::clone(&self.waiting),
                callbacks: self.callbacks.clone(),
            };
            self.events.spawn_until_stopped(reader.run());
            *is_reading = true;
        }
        Ok(())
    }
}

struct Reader {
    stream: GlobalStream,
    backend: Arc<dyn Backend>,
    waiting: Arc<Waiting>,
    callbacks: Callbacks,
}

impl Reader {
    async fn run(mut self) {
        loop {
            match self.stream.next().await {
                Ok(Some(GlobalItem::Event { event, .. })) => {
                    let mut is_reading = self.waiting.is_reading.write().await;
                    let waiters = {
                        let mut list = self.waiting.list();
                        *is_reading = list.count > 0;
                        list.take_affected_by(&event)
                    };
                    let continues = *is_reading;
                    drop(is_reading);
                    if !waiters.is_empty() {
                        let notice = self.notice(&event).await;
                        for waiter in waiters {
                            self.callbacks.call(waiter.callback, notice.clone());
                        }
                    }
                    if !continues {
                        return;
                    }
                }
                Ok(Some(GlobalItem::Reset { .. })) => {
                    tracing::warn!(
                        "event log trimmed: `on_destroyed` callbacks may have been missed"
                    );
                }
                Ok(None) => return,
                Err(_) => sleep(PAUSE).await,
            }
        }
    }

    /// Returns the event with the thread's final contents. Retries until the contents can be read.
    async fn notice(&self, event: &Event) -> Notice {
        loop {
            match Notice::of(&*self.backend, event).await {
                Ok(notice) => return notice,
                Err(_) => sleep(PAUSE).await,
            }
        }
    }
}

impl Waiting {
    fn list(&self) -> MutexGuard<'_, List> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl List {
    fn add(
        &mut self,
        thread: ThreadId,
        after: Position,
        callback: Repeatable<Notice>,
    ) -> Result<Ticket, ApiError> {
        let thread_count = self.threads.get(&thread).map_or(0, Vec::len);
        if self.count >= CALLBACKS_MAX || thread_count >= CALLBACKS_PER_THREAD_MAX {
            let what = "too many `on_destroyed` callbacks are waiting";
            return Err(ApiError::Internal { what, source: None });
        }
        self.next += 1;
        self.count += 1;
        let number = self.next;
        self.threads.entry(thread).or_default().push(Waiter {
            number,
            after,
            callback,
        });
        Ok(Ticket { thread, number })
    }

    fn forget(&mut self, ticket: Ticket) {
        self.remove(&ticket.thread, |waiter| waiter.number == ticket.number);
    }

    /// Removes and returns the callbacks to run for `event`. If the event is a rotation, which gives the thread a new
    /// id, moves the callbacks to the new id and returns an empty list.
    fn take_affected_by(&mut self, event: &Event) -> Vec<Waiter> {
        let (Some(id), position) = (event.thread(), event.id.position) else {
            return Vec::new();
        };
        let waiters = self.take(id, position);
        let EventKind::Rotated { to } = event.kind else {
            return waiters;
        };
        self.count += waiters.len();
        if !waiters.is_empty() {
            self.threads.entry(to).or_default().extend(waiters);
        }
        Vec::new()
    }

    fn take(&mut self, thread: &ThreadId, position: Position) -> Vec<Waiter> {
        self.remove(thread, |waiter| waiter.after < position)
    }

    fn remove(&mut self, thread: &ThreadId, which: impl Fn(&Waiter) -> bool) -> Vec<Waiter> {
        let Some(waiters) = self.threads.get_mut(thread) else {
            return Vec::new();
        };
        let removed: Vec<_> = waiters.extract_if(.., |waiter| which(waiter)).collect();
        self.count -= removed.len();
        if waiters.is_empty() {
            self.threads.remove(thread);
        }
        removed
    }
}

impl fmt::Debug for Waiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiter")
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}
