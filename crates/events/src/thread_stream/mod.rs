use std::collections::VecDeque;
use std::sync::Arc;

use tokio::task::yield_now;
use tokio_util::sync::CancellationToken;

use super::{Counter, EventCounters, Listener, Message, key_name_bytes};
use threadkeep_domain::{
    EndReason, Event, EventKind, NAMED_KEY_BYTES_MAX, Position, Stamp, ThreadId,
};
use threadkeep_store::{Backend, StoreError, Watched};

/// Maximum number of events per read of the log.
const EVENTS_PER_READ_MAX: usize = 256;
/// Number of events in the first read. The number is small, because the key names of these events can total 2 MiB.
const FIRST_READ_EVENTS: usize = 32;
/// Approximate limit for the total size of the key names in queued events, in bytes. Without this limit, a stalled
/// reader could hold many events with a thousand keys each.
pub(super) const QUEUED_KEY_BYTES_MAX: usize = NAMED_KEY_BYTES_MAX;

/// The position of a reader of a thread's events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadCursor {
    /// Position up to which the reader has all events.
    pub position: Position,
    /// The thread's stamp (life and version) at that position.
    pub stamp: Stamp,
    /// Sequence number of the next history item at `position`; 0 if unknown.
    pub next_seq: u64,
}

/// An item of the stream of a thread.
#[derive(Debug, Clone)]
pub enum ThreadItem {
    /// An event.
    Event {
        /// The event itself.
        event: Arc<Event>,
        /// The reader's position at this item.
        cursor: ThreadCursor,
    },
    /// The reader has missed events that are not in the log, so the reader must read the thread again.
    Reset {
        /// Current version of the thread.
        version: u64,
        /// The reader's position at this item.
        cursor: ThreadCursor,
    },
}

/// A stream of the events of a thread.
///
/// Each accepted write increments the version by 1, so a gap in the versions reveals a missed event. For example, a
/// reader at version 5 that receives version 7 has missed an event.
#[derive(Debug)]
pub struct ThreadStream {
    log: Arc<dyn Backend>,
    id: ThreadId,
    listener: Listener,
    read: ThreadCursor,
    /// Position at which `read.stamp` was last verified.
    verified_up_to: Position,
    behind: Option<CatchUp>,
    /// Number of events to read from the log at once. A read that exceeds the byte limit reduces this number to the
    /// number of events that fit. Any other read doubles this number. As a result, an event with many key names is read
    /// about twice, not once for each earlier event that the reader takes.
    read_size: usize,
    ready: VecDeque<ThreadItem>,
    /// True if the thread has rotated to a new id. The event that reports the rotation is the last in the stream.
    is_rotated: bool,
    counters: Arc<EventCounters>,
    stop: CancellationToken,
    _open: OpenStream,
}

#[derive(Debug, Clone, Copy)]
struct CatchUp {
    until: Watched,
    /// True if missing events have been reported to the reader.
    is_reported: bool,
}

#[derive(Debug)]
pub(super) struct OpenStream {
    counters: Arc<EventCounters>,
    gauge: fn(&EventCounters) -> &Counter,
}

impl OpenStream {
    pub(super) fn new(
        counters: &Arc<EventCounters>,
        gauge: fn(&EventCounters) -> &Counter,
    ) -> Self {
        gauge(counters).inc();
        Self {
            counters: Arc::clone(counters),
            gauge,
        }
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        (self.gauge)(&self.counters).dec();
    }
}

pub(super) struct Parts {
    pub(super) log: Arc<dyn Backend>,
    pub(super) counters: Arc<EventCounters>,
    pub(super) stop: CancellationToken,
    pub(super) listener: Listener,
    /// The thread, read after the listener was added.
    pub(super) watched: Watched,
}

impl ThreadStream {
    pub(super) fn new(id: ThreadId, after: Option<ThreadCursor>, parts: Parts) -> Self {
        let watched = parts.watched;
        let now = ThreadCursor {
            position: watched.head,
            stamp: watched.stamp,
            next_seq: watched.next_seq,
        };
        let mut stream = Self {
            log: parts.log,
            id,
            listener: parts.listener,
            read: now,
            verified_up_to: now.position,
            behind: None,
            read_size: FIRST_READ_EVENTS,
            ready: VecDeque::new(),
            is_rotated: false,
            _open: OpenStream::new(&parts.counters, |counters| &counters.thread_streams),
            counters: parts.counters,
            stop: parts.stop,
        };
        match after {
            // compares the whole cursor, because some events, such as those of sessions, do not change the version
            Some(cursor) if cursor != now => stream.resume(cursor, watched),
            _ => {}
        }
        stream
    }

    /// Returns the next item. Returns `None` after the thread has rotated to a new id, when this replica stops, or
    /// when the reader is too slow. Cancel safe. Fails if missed events cannot be read.
    pub async fn next(&mut self) -> Result<Option<ThreadItem>, StoreError> {
        let stop = self.stop.clone();
        tokio::select! {
            next = self.take() => next,
            () = stop.cancelled() => Ok(None),
        }
    }

    /// Returns the reader's position, or `None` if more events are available.
    #[must_use]
    pub fn cursor(&self) -> Option<ThreadCursor> {
        if self.behind.is_some() || !self.ready.is_empty() {
            return None;
        }
        let position = self.listener.received_up_to()?;
        Some(ThreadCursor {
            position: position.max(self.read.position),
            ..self.read
        })
    }

    /// Returns the position at which the stream starts. Call this before the first item is taken.
    #[must_use]
    pub fn start(&self) -> ThreadCursor {
        self.read
    }

    async fn take(&mut self) -> Result<Option<ThreadItem>, StoreError> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                if let ThreadItem::Reset { .. } = item {
                    self.counters.resets.inc();
                }
                return Ok(Some(item));
            }
            if self.is_rotated {
                return Ok(None);
            }
            if let Some(behind) = self.behind {
                self.catch_up(behind).await?;
                // calls to some stores never wait, so yield to let the other tasks of this worker thread run
                yield_now().await;
                continue;
            }
            match self.listener.recv().await {
                None => return Ok(None),
                Some(Message::WatchLapsed(watched)) => self.start_catch_up(watched),
                Some(Message::Event(event)) => {
                    if event.id.position > self.read.position {
                        let version = event.version;
                        self.push(event, Some(version));
                    }
                }
            }
        }
    }

    fn resume(&mut self, cursor: ThreadCursor, now: Watched) {
        if cursor.position > now.head {
            // the log was deleted
            self.reset(now.stamp.version);
            return;
        }
        self.read = cursor;
        self.verified_up_to = cursor.position;
        self.start_catch_up(now);
    }

    fn start_catch_up(&mut self, until: Watched) {
        let is_reported = false;
        self.behind = Some(CatchUp { until, is_reported });
    }

    /// Reads more of the log. Cancel safe.
    async fn catch_up(&mut self, behind: CatchUp) -> Result<(), StoreError> {
        let CatchUp {
            until,
            mut is_reported,
        } = behind;
        let from = self.read.position;
        let bucket = self.log.bucket_of(&self.id);
        let mut events = Vec::new();
        if from < until.head {
            let mut read = self.log.read_log(&[(bucket, from)], self.read_size).await?;
            // checked after the read, because events may also be deleted during the read
            let horizons = self.log.log_horizons(&[bucket]).await?;
            events = read.pop().unwrap_or_default();
            self.counters.events_read.add(events.len() as u64);
            if horizons.first().is_some_and(|horizon| *horizon > from) && !is_reported {
                is_reported = true;
                self.reset(until.stamp.version);
            }
        }
        let mut is_complete = events.len() < self.read_size;
        let mut read_size = EVENTS_PER_READ_MAX.min(2 * self.read_size);
        let mut bytes = 0;
        for (index, event) in events.into_iter().enumerate() {
            if event.id.position > until.head {
                // the listener receives this event and all later events
                is_complete = true;
                break;
            }
            if event.thread() != Some(&self.id) || event.is_scope_change() {
                self.read.position = event.id.position;
                continue;
            }
            // one reset is enough, because the reader then reads the thread at this version or a later version
            let reset = (!is_reported).then_some(until.stamp.version);
            bytes += key_name_bytes(&event);
            is_reported |= self.push(Arc::new(event), reset);
            if self.is_rotated {
                return Ok(());
            }
            if bytes >= QUEUED_KEY_BYTES_MAX {
                // the remaining events are read again after these events are taken
                is_complete = false;
                read_size = index + 1;
                break;
            }
        }
        self.read_size = read_size;
        if is_complete || self.read.position >= until.head {
            self.finish_catch_up(until, is_reported);
            self.behind = None;
        } else {
            self.behind = Some(CatchUp { until, is_reported });
        }
        Ok(())
    }

    /// Compares the cursor with the thread after all events up to `until` have been read. Queues a reset if events are
    /// missing.
    fn finish_catch_up(&mut self, until: Watched, is_reported: bool) {
        self.read.position = self.read.position.max(until.head);
        if self.verified_up_to > until.head {
            return;
        }
        self.verified_up_to = until.head;
        // true if the thread has just ended, and its end has not been logged yet
        let is_ending = until.stamp.version == 0 && !is_reported;
        let has_same_history = [0, until.next_seq].contains(&self.read.next_seq);
        self.read.next_seq = until.next_seq;
        if self.read.stamp == until.stamp && has_same_history || is_ending {
            return;
        }
        self.read.stamp = until.stamp;
        if !is_reported {
            self.reset(until.stamp.version);
        }
    }

    /// Queues an event. If earlier events may be missing, first queues a reset with the version in `reset`, if any.
    /// Returns whether earlier events may be missing.
    fn push(&mut self, event: Arc<Event>, reset: Option<u64>) -> bool {
        let is_gap = !follows(&event, &self.read);
        if let (true, Some(version)) = (is_gap, reset) {
            self.reset(version);
        }
        let position = event.id.position;
        let after = advanced(&event, self.read);
        if !matches!(event.kind, EventKind::Completed(_)) {
            self.verified_up_to = position;
        }
        self.is_rotated = matches!(event.kind, EventKind::Rotated { .. });
        self.read = after;
        let cursor = self.read;
        self.ready.push_back(ThreadItem::Event { event, cursor });
        is_gap
    }

    fn reset(&mut self, version: u64) {
        let cursor = self.read;
        self.ready.push_back(ThreadItem::Reset { version, cursor });
    }
}

/// Returns whether no event can be missing between `cursor` and `event`.
fn follows(event: &Event, cursor: &ThreadCursor) -> bool {
    let version = cursor.stamp.version;
    let is_alive = version > 0;
    let is_same_life = is_alive && event.life == cursor.stamp.life;
    match event.kind {
        EventKind::Created { .. } => !is_alive,
        EventKind::Updated { .. } => is_same_life && event.version == version + 1,
        // the version cannot be checked in three cases: an expired thread is already absent when its event arrives, the
        // version of a lost thread is unknown, and the changes to an erased thread are no longer in the log
        EventKind::Destroyed { reason, state_lost } => {
            !is_alive
                || state_lost
                || is_same_life && (event.version == version || reason == EndReason::Erased)
        }
        EventKind::HistoryAppended { first_seq, .. } => {
            is_same_life && event.version == version && [0, first_seq].contains(&cursor.next_seq)
        }
        EventKind::Rotated { .. } => is_same_life && event.version == version,
        EventKind::Completed(_)
        | EventKind::KvUpdated { .. }
        | EventKind::TaskListUpdated
        | EventKind::Forked { .. } => true,
    }
}

fn advanced(event: &Event, cursor: ThreadCursor) -> ThreadCursor {
    let stamp = Stamp {
        version: event.version,
        life: event.life,
    };
    let position = event.id.position;
    let cursor = ThreadCursor { position, ..cursor };
    match event.kind {
        // a restored or imported thread may have a history
        EventKind::Created { restored, .. } => ThreadCursor {
            stamp,
            next_seq: u64::from(!restored && event.version == 1),
            ..cursor
        },
        EventKind::Forked { .. } => ThreadCursor {
            next_seq: 0,
            ..cursor
        },
        EventKind::Updated { .. } => ThreadCursor { stamp, ..cursor },
        EventKind::HistoryAppended { last_seq, .. } => ThreadCursor {
            stamp,
            next_seq: last_seq + 1,
            ..cursor
        },
        EventKind::Destroyed { .. } | EventKind::Rotated { .. } => ThreadCursor {
            stamp: Stamp::default(),
            next_seq: 1,
            ..cursor
        },
        EventKind::Completed(_) | EventKind::KvUpdated { .. } | EventKind::TaskListUpdated => {
            cursor
        }
    }
}

#[cfg(test)]
mod tests;
