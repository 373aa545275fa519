//! Stores the listeners of this replica by thread, and the last position that was read from each log for the listeners.

use std::collections::HashMap;
use std::mem;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

use super::key_name_bytes;
use threadkeep_domain::{Event, NAMED_KEY_BYTES_MAX, Position, ThreadId};
use threadkeep_store::Watched;

/// Maximum number of events that can wait for a listener. A listener that falls further behind is disconnected.
const WAITING_EVENTS_MAX: usize = 128;
/// Approximate maximum size of the key names in waiting events, in bytes. Without this limit, a client that listens to
/// many threads without reading events could use 8 MiB for each thread.
const WAITING_KEY_BYTES_MAX: usize = 4 * NAMED_KEY_BYTES_MAX;

#[derive(Debug, Clone)]
pub(super) enum Message {
    Event(Arc<Event>),
    /// The watch, which makes the store log changes, may have expired before it was renewed, so changes may be missing.
    WatchLapsed(Watched),
}

#[derive(Debug, Default)]
pub(super) struct Listeners {
    logs: Mutex<HashMap<u16, Log>>,
    poll_requested: Notify,
    next: AtomicU64,
}

#[derive(Debug, Default)]
struct Log {
    /// Position up to which events were delivered; `None` until the first position is known.
    position: Option<Position>,
    threads: HashMap<ThreadId, ThreadListeners>,
}

#[derive(Debug)]
struct ThreadListeners {
    /// Keyed by listener number, so that removing a listener takes constant time.
    channels: HashMap<u64, Channel>,
    watched_at: Instant,
}

#[derive(Debug)]
struct Channel {
    sender: mpsc::Sender<Message>,
    waiting_bytes: Arc<AtomicUsize>,
}

/// A listener for one thread. A listener that is too slow is disconnected.
#[derive(Debug)]
pub(super) struct Listener {
    listeners: Arc<Listeners>,
    bucket: u16,
    thread: ThreadId,
    number: u64,
    /// True if this listener sets the first position of the log.
    is_first: bool,
    messages: mpsc::Receiver<Message>,
    waiting_bytes: Arc<AtomicUsize>,
}

impl Message {
    fn bytes(&self) -> usize {
        match self {
            Self::Event(event) => key_name_bytes(event),
            Self::WatchLapsed(_) => 0,
        }
    }
}

impl Listeners {
    /// Adds a listener, which receives all events after the position that [`Listener::start`] sets.
    pub(super) fn listen(self: &Arc<Self>, bucket: u16, thread: ThreadId) -> Listener {
        let (sender, messages) = mpsc::channel(WAITING_EVENTS_MAX);
        let waiting_bytes = Arc::<AtomicUsize>::default();
        let channel = Channel {
            sender,
            waiting_bytes: Arc::clone(&waiting_bytes),
        };
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut logs = self.lock();
        let log = logs.entry(bucket).or_default();
        let is_first = log.position.is_none();
        let listeners = log
            .threads
            .entry(thread)
            .or_insert_with(|| ThreadListeners {
                channels: HashMap::new(),
                watched_at: Instant::now(),
            });
        listeners.channels.insert(number, channel);
        Listener {
            listeners: Arc::clone(self),
            bucket,
            thread,
            number,
            is_first,
            messages,
            waiting_bytes,
        }
    }

    /// Returns the logs with listeners, each with the last position that was read.
    pub(super) fn logs_to_read(&self) -> Vec<(u16, Position)> {
        let logs = self.lock();
        let position = |(bucket, log): (&u16, &Log)| Some((*bucket, log.position?));
        logs.iter().filter_map(position).collect()
    }

    pub(super) async fn poll_requested(&self) {
        self.poll_requested.notified().await;
    }

    pub(super) fn request_poll(&self) {
        self.poll_requested.notify_one();
    }

    /// Delivers events that were read after `from`. If the log's position has changed since, delivers no events,
    /// because the log will be read again. Returns the number of disconnected listeners.
    pub(super) fn deliver_to_listeners(
        &self,
        bucket: u16,
        from: Position,
        events: Vec<Event>,
    ) -> usize {
        let mut logs = self.lock();
        let Some(log) = logs.get_mut(&bucket) else {
            return 0;
        };
        let (Some(last), true) = (events.last(), log.position == Some(from)) else {
            return 0;
        };
        // the position advances before the events become visible
        log.position = Some(last.id.position);
        let mut disconnected = 0;
        for event in events {
            let thread = event.thread().filter(|_| !event.is_scope_change());
            if let Some(listeners) = thread.and_then(|id| log.threads.get_mut(id)) {
                disconnected += listeners.send(&Message::Event(Arc::new(event)));
            }
        }
        disconnected
    }

    /// Disconnects all listeners of a log after unread events from `from` to `horizon` were deleted. The readers
    /// reconnect with their cursors and get a reset. Returns the number of disconnected listeners.
    pub(super) fn disconnect_all(&self, bucket: u16, from: Position, horizon: Position) -> usize {
        let mut logs = self.lock();
        let log = logs.get_mut(&bucket);
        let Some(log) = log.filter(|log| log.position == Some(from)) else {
            return 0;
        };
        log.position = Some(horizon);
        let threads = log.threads.values_mut();
        threads
            .map(|listeners| mem::take(&mut listeners.channels).len())
            .sum()
    }

    pub(super) fn threads(&self) -> Vec<(u16, ThreadId)> {
        let logs = self.lock();
        let threads = |(bucket, log): (&u16, &Log)| {
            let bucket = *bucket;
            let ids: Vec<_> = log.threads.keys().map(|id| (bucket, *id)).collect();
            ids
        };
        logs.iter().flat_map(threads).collect()
    }

    /// Records that changes to a thread are logged for `lifetime` after `requested_at`. Notifies listeners if the
    /// previous watch may have expired. Returns the number of listeners that were disconnected.
    pub(super) fn record_watch(
        &self,
        bucket: u16,
        thread: &ThreadId,
        requested_at: Instant,
        lifetime: Duration,
        watched: Watched,
    ) -> usize {
        let mut logs = self.lock();
        let log = logs.get_mut(&bucket);
        let Some(listeners) = log.and_then(|log| log.threads.get_mut(thread)) else {
            return 0;
        };
        let lapsed = listeners.watched_at.elapsed() >= lifetime;
        listeners.watched_at = requested_at;
        if lapsed {
            listeners.send(&Message::WatchLapsed(watched))
        } else {
            0
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u16, Log>> {
        self.logs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ThreadListeners {
    fn send(&mut self, message: &Message) -> usize {
        let (before, bytes) = (self.channels.len(), message.bytes());
        self.channels
            .retain(|_, channel| channel.send(message, bytes));
        before - self.channels.len()
    }
}

impl Channel {
    fn send(&self, message: &Message, bytes: usize) -> bool {
        // counted before the listener can receive it
        let waiting_bytes = self.waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
        waiting_bytes + bytes <= WAITING_KEY_BYTES_MAX
            && self.sender.try_send(message.clone()).is_ok()
    }
}

impl Listener {
    /// Starts the delivery of events after `head`, unless events from this log are already delivered. `head` must have
    /// been read after this listener was added.
    pub(super) fn start(&mut self, head: Position) {
        if !self.is_first {
            return;
        }
        let mut logs = self.listeners.lock();
        if let Some(log) = logs.get_mut(&self.bucket) {
            // a concurrent listener may have set a later position
            let position = log.position.unwrap_or(head);
            log.position = Some(position.min(head));
        }
        drop(logs);
        self.listeners.poll_requested.notify_one();
    }

    /// Returns the next message, or `None` if the listener was disconnected because it was too slow. Cancel safe.
    pub(super) async fn recv(&mut self) -> Option<Message> {
        let message = self.messages.recv().await?;
        self.waiting_bytes
            .fetch_sub(message.bytes(), Ordering::Relaxed);
        Some(message)
    }

    /// Returns the position up to which this listener has received all events, or `None` if an event is waiting.
    pub(super) fn received_up_to(&self) -> Option<Position> {
        // read the position first, because all events up to that position have already been sent to the channel
        let position = self.listeners.lock().get(&self.bucket)?.position;
        if self.messages.is_empty() {
            position
        } else {
            None
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut logs = self.listeners.lock();
        let Some(log) = logs.get_mut(&self.bucket) else {
            return;
        };
        if let Some(listeners) = log.threads.get_mut(&self.thread) {
            listeners.channels.remove(&self.number);
            if listeners.channels.is_empty() {
                log.threads.remove(&self.thread);
            }
        }
        if log.threads.is_empty() {
            logs.remove(&self.bucket);
        }
    }
}

#[cfg(test)]
mod tests;
