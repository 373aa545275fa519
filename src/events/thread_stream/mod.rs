//! The events of one thread, from now on or from where a reader was before.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::task::yield_now;
use tokio_util::sync::CancellationToken;

use super::counters::{Count, EventCounters};
use super::listeners::{Heard, Listener};
use super::size::bytes_named;
use crate::domain::{EndReason, Event, EventKind, MOST_KEY_BYTES_NAMED, Position, Stamp, ThreadId};
use crate::store::{Backend, StoreError, Watched};

/// Events of the log that are read at once to catch up.
const MOST: usize = 256;
/// The same at first: with as many names as they may have, these are 2 MiB.
const FIRST: usize = 32;
/// Bytes of names of keys in events that wait to be taken, about, at most: a reader that takes
/// nothing would else hold many events of a thousand keys.
pub(super) const MOST_BYTES: usize = MOST_KEY_BYTES_NAMED;

/// How far a reader of a thread's events is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadCursor {
    /// Up to there it knows all events.
    pub position: Position,
    /// The thread as it was then.
    pub stamp: Stamp,
}

/// An item of the stream of a thread.
#[derive(Debug, Clone)]
pub enum ThreadItem {
    /// Something happened.
    Event {
        /// The event.
        event: Arc<Event>,
        /// How far the reader is with it.
        cursor: ThreadCursor,
    },
    /// An event was not logged, or has left the log: the reader has to read the thread itself.
    Reset {
        /// The version that the thread has come to meanwhile.
        version: u64,
        /// How far the reader is with it.
        cursor: ThreadCursor,
    },
}

/// The events of a thread.
///
/// Each accepted write is one version, so a reader that knows one version and meets the next but
/// one has missed something: that is how gaps are seen.
#[derive(Debug)]
pub struct ThreadStream {
    log: Arc<dyn Backend>,
    id: ThreadId,
    listener: Listener,
    /// Up to where events were taken, be it from the log or from the listener.
    read: ThreadCursor,
    /// The position of the last thing that `read.stamp` was checked against.
    proven: Position,
    /// The part of the log to read first.
    behind: Option<CatchUp>,
    /// Events of the log that are read at once now. After a read of more than could be kept it is as many
    /// as were, and it doubles while all are, so that events with many names are read about twice and not
    /// once more for each that is taken.
    at_once: usize,
    ready: VecDeque<ThreadItem>,
    counters: Arc<EventCounters>,
    stop: CancellationToken,
    _open: Open,
}

/// A part of the log that has to be read.
#[derive(Debug, Clone, Copy)]
struct CatchUp {
    /// Its end, and the thread there.
    until: Watched,
    /// Whether the reader knows already that events are missing.
    told: bool,
}

/// Counts a stream for as long as it is open.
#[derive(Debug)]
pub(super) struct Open {
    counters: Arc<EventCounters>,
    which: fn(&EventCounters) -> &Count,
}

impl Open {
    pub(super) fn new(counters: &Arc<EventCounters>, which: fn(&EventCounters) -> &Count) -> Self {
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

/// The parts of a stream.
pub(super) struct Parts {
    pub(super) log: Arc<dyn Backend>,
    pub(super) counters: Arc<EventCounters>,
    pub(super) stop: CancellationToken,
    pub(super) listener: Listener,
    /// The thread after the listener began to listen.
    pub(super) watched: Watched,
    /// Whether the log may hold more of a thread than changes.
    pub(super) has_sessions: bool,
}

impl ThreadStream {
    /// A stream of a thread, after a cursor, or from now on.
    pub(super) fn new(id: ThreadId, after: Option<ThreadCursor>, parts: Parts) -> Self {
        let (watched, sessions) = (parts.watched, parts.has_sessions);
        let now = ThreadCursor {
            position: watched.head,
            stamp: watched.stamp,
        };
        let mut stream = Self {
            log: parts.log,
            id,
            listener: parts.listener,
            read: now,
            proven: now.position,
            behind: None,
            at_once: FIRST,
            ready: VecDeque::new(),
            _open: Open::new(&parts.counters, |counters| &counters.thread_streams),
            counters: parts.counters,
            stop: parts.stop,
        };
        match after {
            // a life has each version once, so nothing has changed between two that are the same;
            // while there is no life, one may have come and gone
            Some(cursor) if cursor.stamp != now.stamp || now.stamp.version == 0 || sessions => {
                stream.resume(cursor, watched);
            }
            _ => {}
        }
        stream
    }

    /// The next thing; none when this replica stops, or when the reader is too slow and is cut off.
    /// May be dropped and called again.
    ///
    /// # Errors
    /// [`StoreError`] when what was missed cannot be read.
    pub async fn next(&mut self) -> Result<Option<ThreadItem>, StoreError> {
        let stop = self.stop.clone();
        tokio::select! {
            next = self.take() => next,
            () = stop.cancelled() => Ok(None),
        }
    }

    /// The reader's position once it has all events until now; none if there are more.
    #[must_use]
    pub fn cursor(&self) -> Option<ThreadCursor> {
        if self.behind.is_some() || !self.ready.is_empty() {
            return None;
        }
        let position = self.listener.heard_up_to()?;
        Some(ThreadCursor {
            position: position.max(self.read.position),
            ..self.read
        })
    }

    /// Where the stream begins, before anything was taken from it.
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
            if let Some(behind) = self.behind {
                self.catch_up(behind).await?;
                // a store that need not wait would let nobody else have a turn
                yield_now().await;
                continue;
            }
            match self.listener.hear().await {
                None => return Ok(None),
                Some(Heard::Lapsed(watched)) => self.fall_behind(watched),
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
            // the log that it is of is gone
            self.reset(now.stamp.version);
            return;
        }
        self.read = cursor;
        self.proven = cursor.position;
        self.fall_behind(now);
    }

    /// Has the log read up to a moment at which the thread is known.
    fn fall_behind(&mut self, until: Watched) {
        let told = false;
        self.behind = Some(CatchUp { until, told });
    }

    /// Reads on in the log. Nothing has changed when this is dropped before it ends.
    async fn catch_up(&mut self, behind: CatchUp) -> Result<(), StoreError> {
        let CatchUp { until, mut told } = behind;
        let from = self.read.position;
        let bucket = self.log.bucket_of(&self.id);
        let mut events = Vec::new();
        if from < until.head {
            let mut read = self.log.read_log(&[(bucket, from)], self.at_once).await?;
            // only now it is known whether that read has skipped any
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
                // the listener hears that
                is_all = true;
                break;
            }
            if event.thread() != Some(&self.id) || event.is_of_scope() {
                self.read.position = event.id.position;
                continue;
            }
            // a reader that got a reset reads the thread as it is now, or later
            let reset = (!told).then_some(until.stamp.version);
            bytes += bytes_named(&event);
            told |= self.push(Arc::new(event), reset);
            if bytes >= MOST_BYTES {
                // the rest is read once more when these are taken
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

    /// All up to that moment is read: the reader should know the thread as it was then.
    fn arrive(&mut self, until: Watched, told: bool) {
        self.read.position = self.read.position.max(until.head);
        if self.proven > until.head {
            return;
        }
        self.proven = until.head;
        // the event of a thread that is over at this moment is still to come
        let is_ending = until.stamp.version == 0 && !told;
        if self.read.stamp == until.stamp || is_ending {
            return;
        }
        self.read.stamp = until.stamp;
        if !told {
            self.reset(until.stamp.version);
        }
    }

    /// Takes an event. Before an event that does not follow the reader's state, sends a reset with this version, if
    /// one is due. Returns whether the event does not follow.
    fn push(&mut self, event: Arc<Event>, reset: Option<u64>) -> bool {
        let is_gap = !follows(&event, self.read.stamp);
        if let (true, Some(version)) = (is_gap, reset) {
            self.reset(version);
        }
        let position = event.id.position;
        let stamp = after(&event, self.read.stamp);
        if !matches!(event.kind, EventKind::Completed(_)) {
            self.proven = position;
        }
        self.read = ThreadCursor { position, stamp };
        let cursor = self.read;
        self.ready.push_back(ThreadItem::Event { event, cursor });
        is_gap
    }

    fn reset(&mut self, version: u64) {
        let cursor = self.read;
        self.ready.push_back(ThreadItem::Reset { version, cursor });
    }
}

/// Whether nothing can have happened between what is known and an event.
fn follows(event: &Event, known: Stamp) -> bool {
    let is_living = known.version > 0;
    match event.kind {
        EventKind::Created { .. } => !is_living,
        EventKind::Updated { .. } => {
            is_living && event.life == known.life && event.version == known.version + 1
        }
        // a thread whose time has passed is absent before its event comes; of one that was lost
        // nobody knows the version; and the changes of one that was erased have left the log with it
        EventKind::Destroyed { reason, state_lost } => {
            !is_living
                || state_lost
                || event.life == known.life
                    && (event.version == known.version || reason == EndReason::Erased)
        }
        EventKind::Completed(_) | EventKind::KvUpdated { .. } | EventKind::TaskListUpdated => true,
    }
}

/// The thread after an event.
fn after(event: &Event, known: Stamp) -> Stamp {
    match event.kind {
        EventKind::Created { .. } | EventKind::Updated { .. } => Stamp {
            version: event.version,
            life: event.life,
        },
        EventKind::Destroyed { .. } => Stamp::default(),
        EventKind::Completed(_) | EventKind::KvUpdated { .. } | EventKind::TaskListUpdated => known,
    }
}

#[cfg(test)]
mod tests;
