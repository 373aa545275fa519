//! Subscribers: code of an app that receives every event of all replicas.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::future::BoxFuture;

use super::{Events, Failure, Handler, Notice, Purpose};
use threadkeep_domain::{Event, EventTypes};
use threadkeep_store::{Backend, StoreError};

const PREFIX: &str = "app.";
/// With the prefix, the longest name of a consumer.
const GROUP_BYTES: usize = 60;

/// Why nobody was subscribed.
#[derive(Debug, thiserror::Error)]
pub enum SubscribeError {
    /// An invalid name of a group.
    #[error("the name of a group is 1 to 60 of A-Z, a-z, 0-9, `.`, `_` and `-`")]
    Group,
    /// The group has a subscriber in this process.
    #[error("the group has a subscriber in this process already")]
    Taken,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Events {
    /// Subscribes to events of these types, of all threads and all replicas, until this stops.
    ///
    /// The replicas that subscribe as the same group share the work: each event is handled by one of them. A new group
    /// gets events from now on; an existing one continues where it stopped, also after all its replicas were away. A
    /// group without members for a day is deleted.
    ///
    /// Each event arrives at least once: those of one thread in order, those of different threads concurrently. If the
    /// handler fails, the event is retried after 1, 2, 4 .. seconds, up to an hour, while later ones of its thread
    /// wait; after a day it is parked, and [`Self::parked`] lists it under the name `app.<group>`. `thread.updated` is
    /// logged only while a consumer wants it, so it begins a few seconds late.
    ///
    /// # Errors
    /// [`SubscribeError`].
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
        if !(1..=GROUP_BYTES).contains(&group.len()) || !group.bytes().all(is_legal) {
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
