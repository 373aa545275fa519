//! Follows the end of the log. One poller per replica wakes all readers that wait for events.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::{EventCounters, Listener, Listeners, Outage};
use threadkeep_domain::{Position, ThreadId};
use threadkeep_store::{Backend, Heads, StoreError};

/// Maximum number of events per log in one read.
const EVENTS_PER_READ_MAX: usize = 128;
/// Interval between reads of the heads (the newest positions of all logs), which cost more than reads of events.
const HEADS_EVERY: Duration = Duration::from_secs(1);

/// The end of the log as last read by this replica. All clones share the same view. Followers wake when the log grows,
/// and read the new events themselves. Listeners receive the events of a single thread.
#[derive(Debug, Clone)]
pub struct Tail(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    backend: Arc<dyn Backend>,
    counters: Arc<EventCounters>,
    listeners: Arc<Listeners>,
    heads: watch::Sender<Arc<Heads>>,
    stop: CancellationToken,
}

/// Follows the end of the log.
#[derive(Debug, Clone)]
pub struct Follower {
    heads: watch::Receiver<Arc<Heads>>,
    stop: CancellationToken,
}

impl Tail {
    pub(super) fn new(
        backend: Arc<dyn Backend>,
        counters: Arc<EventCounters>,
        stop: CancellationToken,
    ) -> Self {
        let heads = Heads {
            now_ms: 0,
            positions: vec![Position::default(); usize::from(backend.buckets())],
        };
        Self(Arc::new(Shared {
            backend,
            counters,
            listeners: Arc::default(),
            heads: watch::Sender::new(Arc::new(heads)),
            stop,
        }))
    }

    /// Starts to follow all logs.
    #[must_use]
    pub fn follow(&self) -> Follower {
        let follower = Follower {
            heads: self.0.heads.subscribe(),
            stop: self.0.stop.clone(),
        };
        self.0.listeners.request_poll();
        follower
    }

    pub(super) fn listen(&self, thread: ThreadId) -> Listener {
        let bucket = self.0.backend.bucket_of(&thread);
        self.0.listeners.listen(bucket, thread)
    }

    pub(super) fn listeners(&self) -> &Listeners {
        &self.0.listeners
    }

    /// Checks for new events every `pause` while a reader is waiting. Never returns.
    pub(super) async fn run(self, pause: Duration) {
        let mut outage = Outage::new("reading the log of events");
        let mut poller = Poller {
            shared: &self.0,
            heads_read_at: None,
        };
        loop {
            match poller.poll().await {
                Ok(PollOutcome::Idle) => self.0.listeners.poll_requested().await,
                Ok(PollOutcome::CaughtUp) => {
                    outage.record_success();
                    sleep(pause).await;
                }
                Ok(PollOutcome::More) => {}
                Err(error) => sleep(outage.record_failure(&error)).await,
            }
        }
    }
}

enum PollOutcome {
    Idle,
    CaughtUp,
    More,
}

struct Poller<'a> {
    shared: &'a Shared,
    heads_read_at: Option<Instant>,
}

impl Poller<'_> {
    async fn poll(&mut self) -> Result<PollOutcome, StoreError> {
        let is_followed = self.shared.heads.receiver_count() > 0;
        if !is_followed {
            self.heads_read_at = None;
        } else if self
            .heads_read_at
            .is_none_or(|at| at.elapsed() >= HEADS_EVERY)
        {
            let heads = self.shared.backend.log_heads().await?;
            self.heads_read_at = Some(Instant::now());
            self.shared.publish(heads);
        }
        let mut logs = self.shared.listeners.logs_to_read();
        if is_followed {
            self.shared.add_others(&mut logs);
        }
        if logs.is_empty() {
            return Ok(PollOutcome::Idle);
        }
        self.shared.read(&logs, is_followed).await
    }
}

impl Shared {
    fn add_others(&self, logs: &mut Vec<(u16, Position)>) {
        let heads = Arc::clone(&self.heads.borrow());
        let listened: HashSet<_> = logs.iter().map(|(bucket, _)| *bucket).collect();
        let all = (0..).zip(heads.positions.iter().copied());
        logs.extend(all.filter(|(bucket, _)| !listened.contains(bucket)));
    }

    async fn read(
        &self,
        logs: &[(u16, Position)],
        is_followed: bool,
    ) -> Result<PollOutcome, StoreError> {
        let read = self.backend.read_log(logs, EVENTS_PER_READ_MAX).await?;
        let buckets: Vec<_> = logs.iter().map(|(bucket, _)| *bucket).collect();
        let horizons = horizons(&*self.backend, &buckets).await?;
        let mut heads = Heads::clone(&self.heads.borrow());
        let mut outcome = PollOutcome::CaughtUp;
        for (((bucket, from), events), horizon) in logs.iter().zip(read).zip(horizons) {
            self.counters.events_read.add(events.len() as u64);
            if events.len() >= EVENTS_PER_READ_MAX {
                outcome = PollOutcome::More;
            }
            if let (Some(last), Some(head)) =
                (events.last(), heads.positions.get_mut(usize::from(*bucket)))
            {
                *head = last.id.position.max(*head);
            }
            let disconnected = match horizon > *from {
                true => self.listeners.disconnect_all(*bucket, *from, horizon),
                false => self.listeners.deliver_to_listeners(*bucket, *from, events),
            };
            self.counters.streams_cut_off.add(disconnected as u64);
        }
        if is_followed {
            self.publish(heads);
        }
        Ok(outcome)
    }

    fn publish(&self, heads: Heads) {
        self.heads.send_if_modified(|current| {
            let is_new = current.positions != heads.positions;
            *current = Arc::new(heads);
            is_new
        });
    }
}

/// Returns, for each log, the position up to which unread events may have been deleted. A store with a memory limit may
/// delete even new events. Other stores do not, so their positions are 0.
pub(super) async fn horizons(
    backend: &dyn Backend,
    buckets: &[u16],
) -> Result<Vec<Position>, StoreError> {
    match backend.memory_use() {
        Some(_) => backend.log_horizons(buckets).await,
        None => Ok(vec![Position::default(); buckets.len()]),
    }
}

impl Follower {
    /// Returns the heads (the newest position of each log) as of the last poll. All events up to these heads can be
    /// read. [`Self::moved`] waits for newer heads.
    pub fn heads(&mut self) -> Arc<Heads> {
        Arc::clone(&self.heads.borrow_and_update())
    }

    /// Waits for newer heads than [`Self::heads`] last returned. Returns false when this replica stops. Cancel safe.
    pub async fn moved(&mut self) -> bool {
        tokio::select! {
            moved = self.heads.changed() => moved.is_ok(),
            () = self.stop.cancelled() => false,
        }
    }
}
