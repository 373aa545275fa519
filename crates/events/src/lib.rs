//! Reads the event log, delivers its events, and ends expired threads.

#![warn(missing_docs)]

mod cloud_event;
mod consumers;
mod counters;
mod erasure;
mod global_stream;
mod lag;
mod listeners;
mod notice;
mod outage;
mod reaper;
mod sessions;
mod shares;
mod signing;
mod size;
mod subscriber;
mod tail;
mod thread_stream;
mod tidy;
mod values;
mod watcher;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use consumers::{Consumers, forget_lives};
use erasure::Erasures;
use listeners::{Listener, Listeners, Message};
use reaper::Reaper;
use sessions::Sessions;
use shares::Pool;
use size::key_name_bytes;
use threadkeep_domain::ThreadId;
use threadkeep_store::{Backend, Clock, EventLog, StoreError};
use values::values_of;
use watcher::{WATCH_LIFETIME, WATCH_RENEW_EVERY};

#[doc(hidden)]
pub use cloud_event::{STATE_BYTES_MAX, cloud_event, history_url, state_url};
pub use consumers::Purpose;
#[doc(hidden)]
pub use consumers::{Failure, Handler, Taken, Timing};
pub use consumers::{Parked, ParkedPage, Pending, PendingList};
pub use counters::{Counter, DeliveryCounters, EventCounters};
#[doc(hidden)]
pub use erasure::Erasing;
#[doc(hidden)]
pub use global_stream::{GlobalItem, GlobalStream, Watermark};
pub use lag::Lag;
pub use notice::Notice;
pub use outage::Outage;
#[doc(hidden)]
pub use signing::SigningStatus;
pub use subscriber::SubscribeError;
#[doc(hidden)]
pub use tail::{Follower, Tail};
#[doc(hidden)]
pub use thread_stream::{ThreadCursor, ThreadItem, ThreadStream};
pub use threadkeep_domain::{
    Completed, EndReason, Event, EventId, EventKind, EventType, EventTypes, Life, Position,
};
pub use threadkeep_store::{Archive, ArchiveHead};

/// Settings for the events of a replica.
#[derive(Debug, Clone)]
pub struct EventSettings {
    /// Base URL for links to this service, such as `https://threads.example.com`. If empty, links are paths.
    pub public_url: String,
    /// True to log the ends of requests.
    pub session_events: bool,
    #[doc(hidden)]
    pub poll_every: Duration,
    /// Maximum time without data on a stream.
    #[doc(hidden)]
    pub heartbeat: Duration,
    #[doc(hidden)]
    pub timing: Timing,
    #[doc(hidden)]
    pub clock: Clock,
}

impl Default for EventSettings {
    fn default() -> Self {
        Self {
            public_url: String::new(),
            session_events: false,
            poll_every: Duration::from_millis(50),
            heartbeat: Duration::from_secs(15),
            timing: Timing::DEFAULT,
            clock: Clock::system(),
        }
    }
}

/// Processes the events of one replica: runs background work and answers queries. All clones share the background work,
/// which stops on [`Self::shutdown`] or when the last clone is dropped.
#[derive(Debug, Clone)]
pub struct Events(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    backend: Arc<dyn Backend>,
    settings: EventSettings,
    holder: Arc<str>,
    counters: Arc<EventCounters>,
    tail: Tail,
    sessions: Option<Sessions>,
    consumers: Arc<Consumers>,
    erasures: Arc<Erasures>,
    tasks: TaskTracker,
    /// Ends the streams; a child of `stop`.
    end_streams: CancellationToken,
    stop: CancellationToken,
    _stop_on_drop: DropGuard,
}

impl Events {
    /// Starts the background work on the current Tokio runtime. Panics outside of a runtime.
    #[doc(hidden)]
    #[must_use]
    pub fn start(backend: Arc<dyn Backend>, settings: EventSettings) -> Self {
        let stop = CancellationToken::new();
        let tasks = TaskTracker::new();
        let counters = Arc::<EventCounters>::default();
        let tail = Tail::new(Arc::clone(&backend), Arc::clone(&counters), stop.clone());
        let log: Arc<dyn EventLog> = Arc::clone(&backend) as _;
        let sessions = settings
            .session_events
            .then(|| Sessions::start(&log, &counters, &tasks, &stop));
        let events = Self(Arc::new(Inner {
            backend,
            settings,
            holder: hex::encode(rand::random::<[u8; 16]>()).into(),
            counters: Arc::clone(&counters),
            tail: tail.clone(),
            sessions,
            consumers: Arc::default(),
            erasures: Arc::default(),
            tasks,
            end_streams: stop.child_token(),
            stop: stop.clone(),
            _stop_on_drop: stop.drop_guard(),
        }));
        events.spawn_until_stopped(tail.clone().run(events.0.settings.poll_every));
        events.spawn_until_stopped(watcher::run(log, tail, counters));
        let backend = Arc::clone(events.backend());
        events.spawn_until_stopped(async move { consumers::forget_abandoned(&*backend).await });
        events.start_upkeep();
        events
    }

    /// Starts two tasks for this replica's share of the buckets (partitions of the store). One task ends expired
    /// threads. The other task deletes data after its retention period.
    fn start_upkeep(&self) {
        let pool = reaper::pool();
        let (share, held) = watch::channel(Vec::new());
        let backend = &self.0.backend;
        let upkeep = Reaper {
            upkeep: Arc::clone(backend) as _,
            counters: Arc::clone(self.counters()),
            pool: pool.clone(),
            buckets: backend.buckets(),
            held: held.clone(),
            behind_since: None,
        };
        self.spawn_until_stopped(upkeep.run());
        self.spawn_until_stopped(tidy::run(Arc::clone(backend), pool.clone(), held));
        let holder = Arc::clone(self.holder());
        let leases = Arc::clone(backend) as _;
        self.spawn(pool.hold(leases, holder, share, self.stopped().clone()));
    }

    #[doc(hidden)]
    pub fn end_streams(&self) {
        self.0.end_streams.cancel();
    }

    #[doc(hidden)]
    #[must_use]
    pub fn streams_end(&self) -> CancellationToken {
        self.0.end_streams.clone()
    }

    /// Ends the background work, and releases the leases of this replica.
    pub async fn shutdown(&self) {
        self.0.stop.cancel();
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }

    /// Returns the counters of this replica.
    #[must_use]
    pub fn counters(&self) -> &Arc<EventCounters> {
        &self.0.counters
    }

    #[doc(hidden)]
    #[must_use]
    pub fn tail(&self) -> &Tail {
        &self.0.tail
    }

    #[doc(hidden)]
    #[must_use]
    pub fn backend(&self) -> &Arc<dyn Backend> {
        &self.0.backend
    }

    #[doc(hidden)]
    #[must_use]
    pub fn holder(&self) -> &Arc<str> {
        &self.0.holder
    }

    #[doc(hidden)]
    pub async fn render(&self, event: &Event) -> Result<String, StoreError> {
        let archives = &*self.0.backend;
        cloud_event(archives, &self.0.settings.public_url, event).await
    }

    /// Like [`Self::render`], but includes the new values of the changed keys if the values are known and small enough.
    #[doc(hidden)]
    pub async fn render_with_values(&self, event: &Event) -> Result<String, StoreError> {
        let json = self.render(event).await?;
        Ok(match values_of(&*self.0.backend, event).await? {
            Some(values) => cloud_event::with_values(json, &values),
            None => json,
        })
    }

    /// Streams the events of a thread after the cursor `after`, or from now on. Changes to the thread are logged while
    /// the stream is open, and for a short time afterwards. Does not extend the thread's lifetime.
    #[doc(hidden)]
    pub async fn thread_stream(
        &self,
        id: &ThreadId,
        after: Option<ThreadCursor>,
    ) -> Result<ThreadStream, StoreError> {
        let backend = &self.0.backend;
        // add the listener before reading the thread, so that it receives all events that are logged later
        let mut listener = self.0.tail.listen(*id);
        let watched = backend.watch(&[*id], watcher::WATCH_LIFETIME).await?;
        let watched = watched.first().ok_or(StoreError::Corrupt("no answer"))?;
        listener.start(watched.head);
        let parts = thread_stream::Parts {
            log: Arc::clone(backend),
            counters: Arc::clone(&self.0.counters),
            stop: self.0.end_streams.clone(),
            listener,
            watched: *watched,
        };
        Ok(ThreadStream::new(*id, after, parts))
    }

    /// Streams events of the given types from all threads, after the cursor `after` or from now on.
    #[doc(hidden)]
    pub async fn global_stream(
        &self,
        types: EventTypes,
        after: Option<Watermark>,
    ) -> Result<GlobalStream, StoreError> {
        let parts = global_stream::Parts {
            log: Arc::clone(&self.0.backend),
            follower: self.0.tail.follow(),
            counters: Arc::clone(&self.0.counters),
            stop: self.0.end_streams.clone(),
        };
        GlobalStream::open(types, after, parts).await
    }

    /// If session events are enabled, queues an event for the end of a request. Never waits. If the queue is full, the
    /// event is dropped and counted.
    #[doc(hidden)]
    pub fn session_completed(&self, id: &ThreadId, completed: impl FnOnce() -> Completed) {
        if let Some(sessions) = &self.0.sessions {
            sessions.log(*id, completed());
        }
    }

    #[doc(hidden)]
    #[must_use]
    pub fn public_url(&self) -> &str {
        &self.0.settings.public_url
    }

    #[doc(hidden)]
    #[must_use]
    pub fn heartbeat(&self) -> Duration {
        self.0.settings.heartbeat
    }

    /// Runs a task in the background. The task must end soon after [`Self::stopped`], and must not hold a clone of
    /// `self`, which would keep the background work alive.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.0.tasks.spawn(task);
    }

    /// Runs a task in the background until `self` stops. The task may be dropped at any await point.
    #[doc(hidden)]
    pub fn spawn_until_stopped(&self, task: impl Future<Output = ()> + Send + 'static) {
        let stop = self.0.stop.clone();
        self.spawn(async move {
            tokio::select! {
                () = task => {}
                () = stop.cancelled() => {}
            }
        });
    }

    #[doc(hidden)]
    pub fn draining(&self) -> &CancellationToken {
        &self.0.end_streams
    }

    pub(crate) fn stopped(&self) -> &CancellationToken {
        &self.0.stop
    }
}
