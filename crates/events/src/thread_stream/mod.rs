use std::collections::VecDeque;
use std::sync::Arc;

use tokio::task::yield_now;
use tokio_util::sync::CancellationToken;

use super::{Counter, EventCounters, Heard, Listener, bytes_named};
use threadkeep_domain::{
    EndReason, Event, EventKind, NAMED_KEY_BYTES_MAX, Position, Stamp, ThreadId,
};
use threadkeep_store::{Backend, StoreError, Watched};

/// Maximum number of events per read of the log.
const MOST: usize = 256;
/// Number of events in the first read. Their key names total up to 2 MiB.
const FIRST: usize = 32;
/// Approximate limit for the total size of the key names in queued events, in bytes. Without this limit, a stalled
/// reader could hold many events with a thousand keys each.
pub(super) const MOST_BYTES: usize = NAMED_KEY_BYTES_MAX;

/// The position of a reader of a thread's events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadCursor {
    /// Position up to which the reader has all events.
    pub position: Position,
    /// The thread's stamp at that position.
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
    /// The reader has missed events that are not in the log, so it must read the thread.
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
    /// number of events that fit. Any other read doubles it. As a result, an event with many key names is read only
    /// about twice, not again for each event that is taken.
    at_once: usize,
    ready: VecDeque<ThreadItem>,
    /// True if the thread has moved to a new id. The event that reports the move is the last in the stream.
    is_moved: bool,
    counters: Arc<EventCounters>,
    stop: CancellationToken,
    _open: Open,
}

#[derive(Debug, Clone, Copy)]
struct CatchUp {
    until: Watched,
    /// True if missing events have been reported to the reader.
    told: bool,
}

#[derive(Debug)]
pub(super) struct Open {
    counters: Arc<EventCounters>,
    which: fn(&EventCounters) -> &Counter,
}

impl Open {
    pub(super) fn new(
        counters: &Arc<EventCounters>,
        which: fn(&EventCounters) -> &Counter,
    ) -> Self {
        which(counters).inc();
        Self {
            counters: Arc::clone(counters),
            which,
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        (self.which)(&self.counters).dec();
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
            at_once: FIRST,
            ready: VecDeque::new(),
            is_moved: false,
            _open: Open::new(&parts.counters, |counters| &counters.thread_streams),
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

    /// Returns the next item. Returns `None` after the thread has moved to a different id, when this replica stops, or
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
            if self.is_moved {
                return Ok(None);
            }
            if let Some(behind) = self.behind {
                self.catch_up(behind).await?;
                // calls to some stores never wait, so yield to let the other tasks of this worker run
                yield_now().await;
                continue;
            }
            match self.listener.hear().await {
                None => return Ok(None),
                Some(Heard::WatchLapsed(watched)) => self.start_catch_up(watched),
                Some(Heard::Event(event)) => {
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
        let told = false;
        self.behind = Some(CatchUp { until, told });
    }

    /// Reads more of the log. Cancel safe.
    async fn catch_up(&mut self, behind: CatchUp) -> Result<(), StoreError> {
        let CatchUp { until, mut told } = behind;
        let from = self.read.position;
        let bucket = self.log.bucket_of(&self.id);
        let mut events = Vec::new();
        if from < until.head {
            let mut read = self.log.read_log(&[(bucket, from)], self.at_once).await?;
            // checked after the read, because events may also be deleted during the read
            let horizons = self.log.log_horizons(&[bucket]).await?;
            events = read.pop().unwrap_or_default();
            self.counters.events_read.add(events.len() as u64);
            if horizons.first().is_some_and(|horizon| *horizon > from) && !told {
                told = true;
                self.reset(until.stamp.version);
            }
        }
        let mut is_all = events.len() < self.at_once;
        let mut at_once = MOST.min(2 * self.at_once);
        let mut bytes = 0;
        for (index, event) in events.into_iter().enumerate() {
            if event.id.position > until.head {
                // the listener receives this event and all later events
                is_all = true;
                break;
            }
            if event.thread() != Some(&self.id) || event.is_scope_change() {
                self.read.position = event.id.position;
                continue;
            }
            // after a reset, the reader reads the thread at this version or a later one
            let reset = (!told).then_some(until.stamp.version);
            bytes += bytes_named(&event);
            told |= self.push(Arc::new(event), reset);
            if self.is_moved {
                return Ok(());
            }
            if bytes >= MOST_BYTES {
                // the remaining events are read again after these events are taken
                is_all = false;
                at_once = index + 1;
                break;
            }
        }
        self.at_once = at_once;
        if is_all || self.read.position >= until.head {
            self.arrive(until, told);
            self.behind = None;
        } else {
            self.behind = Some(CatchUp { until, told });
        }
        Ok(())
    }

    /// Compares the cursor with the thread after all events up to `until` have been read. Queues a reset if they
    /// differ.
    fn arrive(&mut self, until: Watched, told: bool) {
        self.read.position = self.read.position.max(until.head);
        if self.verified_up_to > until.head {
            return;
        }
        self.verified_up_to = until.head;
        // the thread has just ended, and its end has not been logged yet
        let is_ending = until.stamp.version == 0 && !told;
        let knows_history = [0, until.next_seq].contains(&self.read.next_seq);
        self.read.next_seq = until.next_seq;
        if self.read.stamp == until.stamp && knows_history || is_ending {
            return;
        }
        self.read.stamp = until.stamp;
        if !told {
            self.reset(until.stamp.version);
        }
    }

    /// Queues an event. If events may be missing before it, and `reset` is given, first queues a reset with that
    /// version. Returns whether events may be missing.
    fn push(&mut self, event: Arc<Event>, reset: Option<u64>) -> bool {
        let is_gap = !follows(&event, &self.read);
        if let (true, Some(version)) = (is_gap, reset) {
            self.reset(version);
        }
        let position = event.id.position;
        let after = after(&event, self.read);
        if !matches!(event.kind, EventKind::Completed(_)) {
            self.verified_up_to = position;
        }
        self.is_moved = matches!(event.kind, EventKind::Rotated { .. });
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

/// Returns whether no event can be missing between `known` and `event`.
fn follows(event: &Event, known: &ThreadCursor) -> bool {
    let known_version = known.stamp.version;
    let is_living = known_version > 0;
    let is_of_life = is_living && event.life == known.stamp.life;
    match event.kind {
        EventKind::Created { .. } => !is_living,
        EventKind::Updated { .. } => is_of_life && event.version == known_version + 1,
        // the version cannot be checked in three cases: an expired thread is already absent when its event arrives, the
        // version of a lost thread is unknown, and the changes to an erased thread are no longer in the log
        EventKind::Destroyed { reason, state_lost } => {
            !is_living
                || state_lost
                || is_of_life && (event.version == known_version || reason == EndReason::Erased)
        }
        EventKind::HistoryAppended { first_seq, .. } => {
            is_of_life && event.version == known_version && [0, first_seq].contains(&known.next_seq)
        }
        EventKind::Rotated { .. } => is_of_life && event.version == known_version,
        EventKind::Completed(_)
        | EventKind::KvUpdated { .. }
        | EventKind::TaskListUpdated
        | EventKind::Forked { .. } => true,
    }
}

fn after(event: &Event, known: ThreadCursor) -> ThreadCursor {
    let stamp = Stamp {
        version: event.version,
        life: event.life,
    };
    let position = event.id.position;
    let known = ThreadCursor { position, ..known };
    match event.kind {
        // a restored or imported thread may have a history
        EventKind::Created { restored, .. } => ThreadCursor {
            stamp,
            next_seq: u64::from(!restored && event.version == 1),
            ..known
        },
        EventKind::Forked { .. } => ThreadCursor {
            next_seq: 0,
            ..known
        },
        EventKind::Updated { .. } => ThreadCursor { stamp, ..known },
        EventKind::HistoryAppended { last_seq, .. } => ThreadCursor {
            stamp,
            next_seq: last_seq + 1,
            ..known
        },
        EventKind::Destroyed { .. } | EventKind::Rotated { .. } => ThreadCursor {
            stamp: Stamp::default(),
            next_seq: 1,
            ..known
        },
        EventKind::Completed(_) | EventKind::KvUpdated { .. } | EventKind::TaskListUpdated => known,
    }
}

#[cfg(test)]
mod tests;
