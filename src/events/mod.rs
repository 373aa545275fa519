//! Events: who reads the log and hands out what it holds, and who ends the threads that are due.

mod cloud_event;
mod counters;
mod listeners;
mod outage;
mod shares;
mod tail;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use crate::domain::Event;
use crate::store::{Backend, StoreError};

pub use cloud_event::{MOST_STATE_BYTES, cloud_event, state_url};
pub use counters::{Count, DeliveryCounters, EventCounters};
pub use tail::{Follower, Tail};

/// How the events of a replica are handled.
#[derive(Debug, Clone)]
pub struct EventSettings {
    /// What links to this service begin with, such as `https://threads.example.com`; empty: they
    /// are paths alone.
    pub public_url: String,
    /// Whether the ends of requests are logged too.
    pub session_events: bool,
    /// How often the log is looked at while somebody waits for it.
    #[doc(hidden)]
    pub poll_every: Duration,
    /// How long a stream is silent at most.
    #[doc(hidden)]
    pub heartbeat: Duration,
}

impl Default for EventSettings {
    fn default() -> Self {
        Self {
            public_url: String::new(),
            session_events: false,
            poll_every: Duration::from_millis(50),
            heartbeat: Duration::from_secs(15),
        }
    }
}

/// The events of one replica: all that goes on in the background, and what can be asked of it.
/// Clones share it; it stops with the last one, or when it is [told to](Self::shutdown).
#[derive(Debug, Clone)]
pub struct Events(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    backend: Arc<dyn Backend>,
    settings: EventSettings,
    holder: Arc<str>,
    counters: Arc<EventCounters>,
    tail: Tail,
    tasks: TaskTracker,
    stop: CancellationToken,
    _stop_with_the_last: DropGuard,
}

impl Events {
    /// Starts what goes on in the background.
    ///
    /// # Panics
    /// Outside of a Tokio runtime: it runs on the one that this is called from.
    #[must_use]
    pub fn start(backend: Arc<dyn Backend>, settings: EventSettings) -> Self {
        let stop = CancellationToken::new();
        let counters = Arc::<EventCounters>::default();
        let tail = Tail::new(Arc::clone(&backend), Arc::clone(&counters), stop.clone());
        let poll_every = settings.poll_every;
        let events = Self(Arc::new(Inner {
            backend,
            settings,
            holder: hex::encode(rand::random::<[u8; 16]>()).into(),
            counters,
            tail: tail.clone(),
            tasks: TaskTracker::new(),
            stop: stop.clone(),
            _stop_with_the_last: stop.drop_guard(),
        }));
        events.spawn(tail.run(poll_every));
        events
    }

    /// Ends what goes on in the background, and gives the shares in common work back.
    pub async fn shutdown(&self) {
        self.0.stop.cancel();
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }

    /// What happened here, in numbers.
    #[must_use]
    pub fn counters(&self) -> &Arc<EventCounters> {
        &self.0.counters
    }

    /// The end of the log.
    #[must_use]
    pub fn tail(&self) -> &Tail {
        &self.0.tail
    }

    /// Where the log is.
    #[must_use]
    pub fn backend(&self) -> &Arc<dyn Backend> {
        &self.0.backend
    }

    /// Who this replica is among those that share work.
    #[must_use]
    pub fn holder(&self) -> &Arc<str> {
        &self.0.holder
    }

    /// An event as it leaves the service; see [`cloud_event`].
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn render(&self, event: &Event) -> Result<String, StoreError> {
        let archives = &*self.0.backend;
        cloud_event(archives, &self.0.settings.public_url, event).await
    }

    /// Runs something in the background. It has to end soon after [`Self::stopped`], and must not
    /// hold a clone of this, or it would never stop by itself.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.0.tasks.spawn(task);
    }

    /// Is cancelled when this stops.
    pub(crate) fn stopped(&self) -> &CancellationToken {
        &self.0.stop
    }
}
