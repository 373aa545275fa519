//! Subscribers: handlers in an app that receive events from all replicas.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::future::BoxFuture;

use super::{Events, Failure, Handler, Notice, Purpose};
use threadkeep_domain::{Event, EventTypes};
use threadkeep_store::{Backend, StoreError};

const PREFIX: &str = "app.";
/// Maximum length of a group's name, in bytes.
const GROUP_BYTES_MAX: usize = 60;

/// Why a subscription failed.
#[derive(Debug, thiserror::Error)]
pub enum SubscribeError {
    /// The group name is invalid.
    #[error("the name of a group is 1 to 60 of A-Z, a-z, 0-9, `.`, `_` and `-`")]
    Group,
    /// The group already has a subscriber in this process.
    #[error("the group has a subscriber in this process already")]
    Taken,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Events {
    /// Subscribes to events of `types` from all threads and all replicas, until `self` stops.
    ///
    /// Replicas that subscribe with the same group share the work: each event is handled by one of them. A new group
    /// receives only new events. An existing group resumes where it stopped, even if all its replicas were down. A
    /// group that has had no members for a day is deleted.
    ///
    /// Each event is delivered at least once. Events of the same thread are delivered in order, and events of different
    /// threads are delivered concurrently. If the handler fails, the event is retried after 1, 2, 4 ... seconds, up to
    /// an hour, while later events of its thread wait. After a day, the event is parked, and [`Self::parked`] lists it
    /// under the name `app.<group>`.
    ///
    /// `thread.updated` events are logged only while a consumer subscribes to that type. Logging starts within a few
    /// seconds of the first subscription.
    pub async fn subscribe<F, R, E>(
        &self,
        group: &str,
        types: EventTypes,
        handler: F,
    ) -> Result<(), SubscribeError>
    where
        F: Fn(Notice) -> R + Send + Sync + 'static,
        R: Future<Output = Result<(), E>> + Send + 'static,
        E: fmt::Display,
    {
        let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if !(1..=GROUP_BYTES_MAX).contains(&group.len()) || !group.bytes().all(is_legal) {
            return Err(SubscribeError::Group);
        }
        let name = format!("{PREFIX}{group}");
        self.open_consumer(&name).await?;
        let handler = Arc::new(Subscriber {
            types,
            backend: Arc::clone(self.backend()),
            call: Box::new(move |notice| {
                let handled = handler(notice);
                Box::pin(async move { handled.await.map_err(Failure::new) })
            }),
        });
        self.start_consumer(&name, Purpose::Subscriber, handler)
            .map_err(|_| SubscribeError::Taken)
    }
}

struct Subscriber {
    types: EventTypes,
    backend: Arc<dyn Backend>,
    call: Box<dyn Fn(Notice) -> BoxFuture<'static, Result<(), Failure>> + Send + Sync>,
}

#[async_trait]
impl Handler for Subscriber {
    fn types(&self) -> EventTypes {
        self.types
    }

    async fn deliver(&self, event: &Event) -> Result<(), Failure> {
        let notice = Notice::of(&*self.backend, event).await;
        let notice = notice.map_err(|_| Failure::new("the store is not available"))?;
        (self.call)(notice).await
    }
}

impl fmt::Debug for Subscriber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscriber")
            .field("types", &self.types)
            .finish_non_exhaustive()
    }
}
