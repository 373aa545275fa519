//! Notifies callers that wait for a turn to end. All server processes publish the ends of turns on one Redis channel.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use futures_util::StreamExt;
use redis::RedisError;
use redis::aio::PubSub;
use tokio::sync::broadcast;
use tokio::time::{sleep, timeout};

use crate::transport::Link;
use threadkeep_domain::ThreadId;

/// Maximum number of unread notifications per receiver. A receiver that falls further behind misses the oldest ones.
const BUFFERED_MAX: usize = 1_024;
/// Maximum time without a message before a subscription is replaced, because its connection may be dead.
const SILENCE_MAX: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_secs(1);

/// The subscription of this process to the ends of turns. The subscription exists while it has receivers.
#[derive(Debug, Clone)]
pub(crate) struct EndedTurns(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    ended: broadcast::Sender<ThreadId>,
    is_running: AtomicBool,
    /// Locked for writing while a task checks whether it should end, so that every receiver has a running task.
    gate: RwLock<()>,
}

impl Default for EndedTurns {
    fn default() -> Self {
        Self(Arc::new(Shared {
            ended: broadcast::Sender::new(BUFFERED_MAX),
            is_running: AtomicBool::new(false),
            gate: RwLock::default(),
        }))
    }
}

impl EndedTurns {
    pub(crate) fn listen(&self, link: &Arc<Link>, channel: &str) -> broadcast::Receiver<ThreadId> {
        let _gate = self.0.gate.read().unwrap_or_else(PoisonError::into_inner);
        let receiver = self.0.ended.subscribe();
        if !self.0.is_running.swap(true, Ordering::AcqRel) {
            let task = Arc::clone(&self.0).run(Arc::clone(link), channel.to_owned());
            tokio::spawn(task);
        }
        receiver
    }
}

impl Shared {
    async fn run(self: Arc<Self>, link: Arc<Link>, channel: String) {
        while !self.is_over() {
            match timeout(link.timeout(), subscribe(&link, &channel)).await {
                Ok(Ok(subscription)) => self.forward(subscription).await,
                Ok(Err(error)) => {
                    tracing::debug!(%error, "cannot listen to the ends of turns");
                    sleep(PAUSE).await;
                }
                Err(_) => sleep(PAUSE).await,
            }
        }
    }

    /// Returns whether there are no receivers, so that the task must end. The next receiver then starts another task.
    fn is_over(&self) -> bool {
        let _gate = self.gate.write().unwrap_or_else(PoisonError::into_inner);
        let is_over = self.ended.receiver_count() == 0;
        if is_over {
            self.is_running.store(false, Ordering::Release);
        }
        is_over
    }

    async fn forward(&self, mut subscription: PubSub) {
        let mut messages = subscription.on_message();
        while let Ok(Some(message)) = timeout(SILENCE_MAX, messages.next()).await {
            let id = message.get_payload_bytes();
            let id = std::str::from_utf8(id).ok().and_then(|id| id.parse().ok());
            if let Some(id) = id {
                self.ended.send(id).ok();
            }
        }
    }
}

async fn subscribe(link: &Link, channel: &str) -> Result<PubSub, RedisError> {
    let address = link.locate().await?;
    let mut subscription = redis::Client::open(address)?.get_async_pubsub().await?;
    subscription.subscribe(channel).await?;
    Ok(subscription)
}
