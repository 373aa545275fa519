use std::collections::VecDeque;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::thread_stream::{OpenStream, QUEUED_KEY_BYTES_MAX};
use super::{EventCounters, Follower, WATCH_LIFETIME, WATCH_RENEW_EVERY, key_name_bytes};
use threadkeep_domain::{Event, EventTypes, Position};
use threadkeep_store::{Backend, Heads, StoreError};

/// Maximum number of logs per read. The logs that are furthest behind are read first.
const LOGS_PER_READ_MAX: usize = 16;
/// Maximum number of events per log in one read.
const EVENTS_PER_LOG_MAX: usize = 64;
/// If a reader reached the end of all logs less than this many milliseconds ago, no unread events can have been
/// trimmed, unless the store has a memory limit.
const NEAR_MS: u64 = 2_000;
const RETRY_DELAY: Duration = Duration::from_secs(2);

/// The position of a reader of all events: a time according to the log's clock. The reader has received all events
/// before that time, and possibly some later events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Watermark(pub u64);

/// An item of the stream of all events.
#[derive(Debug, Clone)]
pub enum GlobalItem {
    /// An event.
    Event {
        /// The event itself.
        event: Box<Event>,
        /// The reader's position at this item.
        cursor: Watermark,
    },
    /// The reader has missed events that were not logged, or that are no longer in the log.
    Reset {
        /// The reader's position at this item.
        cursor: Watermark,
    },
}

/// A stream of the events of all threads, in order for each thread. Reads on demand, and buffers few events.
#[derive(Debug)]
pub struct GlobalStream {
    log: Arc<dyn Backend>,
    types: EventTypes,
    follower: Follower,
    positions: Vec<Position>,
    /// Position of the reader after the events in `ready`.
    reached: Watermark,
    ready: VecDeque<GlobalItem>,
    /// When all logs were last read to their end, according to the log's clock.
    caught_up_ms: u64,
    /// Time up to which missing events have been reported to the reader, according to the log's clock.
    reported_ms: u64,
    changes: Option<Changes>,
    counters: Arc<EventCounters>,
    stop: CancellationToken,
    _open: OpenStream,
}

/// The watch that causes changes to all threads to be logged.
#[derive(Debug)]
struct Changes {
    /// Start of the uninterrupted watch, in milliseconds.
    since: u64,
    renew_at: Instant,
}

pub(super) struct Parts {
    pub(super) log: Arc<dyn Backend>,
    pub(super) follower: Follower,
    pub(super) counters: Arc<EventCounters>,
    pub(super) stop: CancellationToken,
}

impl GlobalStream {
    pub(super) async fn open(
        types: EventTypes,
        after: Option<Watermark>,
        parts: Parts,
    ) -> Result<Self, StoreError> {
        let changes = if types.has_changes() {
            let renew_at = Instant::now() + WATCH_RENEW_EVERY;
            let since = parts.log.watch_all(WATCH_LIFETIME).await?;
            Some(Changes { since, renew_at })
        } else {
            None
        };
        let heads = parts.log.log_heads().await?;
        let now = Watermark(heads.now_ms);
        let mut stream = Self {
            log: parts.log,
            types,
            follower: parts.follower,
            positions: heads.positions,
            reached: now,
            ready: VecDeque::new(),
            caught_up_ms: heads.now_ms,
            reported_ms: 0,
            changes,
            _open: OpenStream::new(&parts.counters, |counters| &counters.global_streams),
            counters: parts.counters,
            stop: parts.stop,
        };
        if let Some(cursor) = after {
            stream.resume(cursor);
        }
        Ok(stream)
    }

    fn resume(&mut self, cursor: Watermark) {
        let since = self.changes.as_ref().map_or(0, |changes| changes.since);
        let now = self.reached;
        if cursor > now {
            // the log was deleted, or its clock was set back
            self.ready.push_back(GlobalItem::Reset { cursor: now });
            return;
        }
        self.reached = cursor;
        if cursor.0 < since {
            self.reported_ms = now.0;
            self.ready.push_back(GlobalItem::Reset { cursor });
        }
        let before = Position {
            ms: cursor.0.saturating_sub(1),
            seq: u64::MAX,
        };
        self.positions.fill(before);
        self.caught_up_ms = 0;
    }

    /// Returns the next item, or `None` when this replica stops. Cancel safe. Fails if the log cannot be read.
    pub async fn next(&mut self) -> Result<Option<GlobalItem>, StoreError> {
        let stop = self.stop.clone();
        tokio::select! {
            next = self.take() => next.map(Some),
            () = stop.cancelled() => Ok(None),
        }
    }

    /// Returns the reader's position, or `None` if events that were read from the logs have not been taken yet.
    #[must_use]
    pub fn cursor(&self) -> Option<Watermark> {
        self.ready.is_empty().then_some(self.reached)
    }

    /// Returns the position at which the stream starts. Call this only before the first item is taken.
    #[must_use]
    pub fn start(&self) -> Watermark {
        self.reached
    }

    async fn take(&mut self) -> Result<GlobalItem, StoreError> {
        loop {
            self.renew_watch().await;
            if let Some(item) = self.ready.pop_front() {
                if let GlobalItem::Reset { .. } = item {
                    self.counters.resets.inc();
                }
                return Ok(item);
            }
            if self.read().await? {
                // calls to some stores never wait, so yield to let the other tasks of this worker thread run
                yield_now().await;
                continue;
            }
            let renew_at = self.changes.as_ref().map(|changes| changes.renew_at);
            let renewal_due = async {
                match renew_at {
                    Some(renew_at) => sleep_until(renew_at).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                moved = self.follower.moved() => if !moved {
                    pending::<()>().await;
                },
                () = renewal_due => {}
            }
        }
    }

    /// Renews the watch, which makes the store log all changes, if a renewal is due. Reports any gap to the reader.
    /// Retries a failed renewal before the watch expires.
    async fn renew_watch(&mut self) {
        let Some(changes) = &mut self.changes else {
            return;
        };
        let now = Instant::now();
        if changes.renew_at > now {
            return;
        }
        let Ok(since) = self.log.watch_all(WATCH_LIFETIME).await else {
            changes.renew_at = now + RETRY_DELAY;
            return;
        };
        changes.renew_at = now + WATCH_RENEW_EVERY;
        if since > changes.since {
            changes.since = since;
            let cursor = self.reached;
            self.ready.push_back(GlobalItem::Reset { cursor });
        }
    }

    /// Reads the logs that are furthest behind. Returns false if no log is behind. Cancel safe.
    async fn read(&mut self) -> Result<bool, StoreError> {
        let heads = self.follower.heads();
        let behind = self.behind(&heads);
        if behind.is_empty() {
            self.reach(&heads);
            return Ok(false);
        }
        let read = self.log.read_log(&behind, EVENTS_PER_LOG_MAX).await?;
        let is_near = heads.now_ms.saturating_sub(self.caught_up_ms) < NEAR_MS;
        let may_be_trimmed = !is_near || self.log.memory_use().is_some();
        if may_be_trimmed && self.is_trimmed(&behind).await? {
            self.reported_ms = heads.now_ms;
            let cursor = self.reached;
            self.ready.push_back(GlobalItem::Reset { cursor });
        }
        // the position before the events that are being read
        let cursor = self.reached;
        let mut bytes = 0;
        for ((bucket, _), events) in behind.iter().zip(read) {
            if bytes >= QUEUED_KEY_BYTES_MAX {
                // the rest is read again after these events are taken
                break;
            }
            self.counters.events_read.add(events.len() as u64);
            let bucket = usize::from(*bucket);
            // if no events were read, all events up to the head have been trimmed
            let last = events.last().map(|event| event.id.position);
            let head = heads.positions[bucket];
            self.positions[bucket] = match last {
                Some(last) if events.len() >= EVENTS_PER_LOG_MAX => last,
                last => last.unwrap_or(head).max(head),
            };
            let wanted = events
                .into_iter()
                .filter(|event| self.types.contains(event.event_type()))
                .inspect(|event| bytes += key_name_bytes(event));
            let event = |event| GlobalItem::Event {
                event: Box::new(event),
                cursor,
            };
            let items = wanted.map(event);
            self.ready.extend(items);
        }
        self.reach(&heads);
        Ok(true)
    }

    fn reach(&mut self, heads: &Heads) {
        let reached = match self.behind(heads).first() {
            // events that are logged later do not have an earlier time
            None => {
                self.caught_up_ms = heads.now_ms;
                heads.now_ms
            }
            // all other logs are known only up to their heads
            Some((_, furthest_behind)) => furthest_behind.ms.min(heads.now_ms),
        };
        self.reached = self.reached.max(Watermark(reached));
    }

    /// Returns logs that have events to read, and the reader's positions in them, furthest behind first.
    fn behind(&self, heads: &Heads) -> Vec<(u16, Position)> {
        let logs = (0_u16..).zip(self.positions.iter().copied());
        let mut behind: Vec<_> = logs
            .zip(&heads.positions)
            .filter(|((_, position), head)| position < head)
            .map(|(log, _)| log)
            .collect();
        behind.sort_unstable_by_key(|(_, position)| *position);
        behind.truncate(LOGS_PER_READ_MAX);
        behind
    }

    async fn is_trimmed(&self, logs: &[(u16, Position)]) -> Result<bool, StoreError> {
        let buckets: Vec<_> = logs.iter().map(|(bucket, _)| *bucket).collect();
        let horizons = self.log.log_horizons(&buckets).await?;
        let mut both = logs.iter().zip(horizons);
        Ok(both
            .any(|((_, position), horizon)| horizon > *position && horizon.ms >= self.reported_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EventSettings, Events};
    use threadkeep_domain::{EventType, Key, Operation, ThreadId, ThreadPolicy, Value, Write};
    use threadkeep_store::{Clock, EventLog as _, Store as _};
    use threadkeep_store_memory::MemoryStore;

    #[tokio::test]
    async fn the_cursor_does_not_pass_the_last_known_heads() {
        let store = MemoryStore::new(Clock::system());
        let logs = usize::from(store.buckets());
        let events = Events::start(Arc::new(store), EventSettings::default());
        let mut stream = events.global_stream(EventTypes::ALL, None).await.unwrap();
        let now_ms = stream.reached.0;
        let at = |ms| Position { ms, seq: 0 };

        // log 0 has grown since all heads were read, and was read only in part; other logs may have grown too
        let mut positions = vec![Position::default(); logs];
        positions[0] = at(now_ms + 500);
        stream.positions[0] = at(now_ms + 400);
        stream.reach(&Heads { now_ms, positions });

        assert_eq!(stream.cursor(), Some(Watermark(now_ms)));
    }
    #[tokio::test]
    async fn a_resumed_stream_buffers_few_events() {
        let store = MemoryStore::new(Clock::system());
        let events = Events::start(Arc::new(store.clone()), EventSettings::default());
        let types = [EventType::ThreadCreated].into_iter().collect();
        let start = events.global_stream(types, None).await.unwrap().start();
        let set = |number| Operation::Set {
            key: Key::new(format!("{number:0100}")).unwrap(),
            value: Value::parse("1").unwrap(),
        };
        let operations: Vec<_> = (0..500).map(set).collect();
        let write = Write {
            operations: &operations,
            ..Write::new(&ThreadPolicy::THREAD)
        };
        for _ in 0..100 {
            let id = ThreadId::random();
            store.write(&id, &write).await.unwrap();
        }

        let mut stream = events.global_stream(types, Some(start)).await.unwrap();
        let mut ready_max = 0;
        for _ in 0..100 {
            let item = stream.next().await.unwrap().unwrap();
            assert!(matches!(item, GlobalItem::Event { .. }));
            ready_max = stream.ready.len().max(ready_max);
        }

        assert!(ready_max < 10, "{ready_max}");
        assert_eq!(events.counters().resets.get(), 0);
    }
}
