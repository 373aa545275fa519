//! The middleware as an app makes it.

use std::sync::Arc;
use std::time::Duration;

use super::completion::RequestCompleted;
use super::{
    Background, CallbackCounts, Callbacks, Endings, FIRST_PAUSE, Forks, OwnedThreads, ScopeHandle,
    ScopeTarget, Services, ThreadsBuilder, Turns,
};
use threadkeep_domain as domain;
use threadkeep_domain::scope::ScopeId;
use threadkeep_domain::{KeyRing, Owner, ThreadId};
use threadkeep_events::Events;
use threadkeep_identity::Identity;
use threadkeep_service::{
    CheckpointService, ImageService, ScopeService, ThreadService, TurnService,
};
use threadkeep_store::{Backend, millis};
use threadkeep_store_memory::MemorySettings;

/// The middleware that finds the caller's thread and keeps its promises at the end.
///
/// Made once and cloned into each worker. It
/// is wrapped around an app or a scope, once for each route.
///
/// Every response gets `x-session-id`; `x-thread-id` and `Set-Cookie` with the signed id, except
/// a 401 or 403 and a refusal that would make a new id known before anything is stored under it;
/// and `Cache-Control: private, no-cache` if the handler sets none. Routes that a shared cache may
/// keep belong outside: it would hand one caller's thread to another.
#[derive(Debug, Clone)]
pub struct Threads {
    pub(super) services: Services,
    pub(super) identity: Identity,
    pub(super) background: Background,
    pub(super) callbacks: Callbacks,
    pub(super) events: Option<Events>,
    pub(super) endings: Option<Endings>,
}

impl Threads {
    /// Begins to put threads together: where they are kept, what signs their ids, how long they live.
    pub fn builder() -> ThreadsBuilder {
        ThreadsBuilder::new()
    }

    /// Threads in the memory of this process, with a random signing key and all else at its default: for
    /// tests and first tries. They end with the process.
    ///
    /// # Panics
    /// Outside of a Tokio runtime.
    #[must_use]
    pub fn in_memory() -> Self {
        ThreadsBuilder::new().in_memory(KeyRing::random(), MemorySettings::default())
    }

    /// Threads of that service, for callers of that identity.
    ///
    /// # Panics
    /// Outside of a Tokio runtime: work after the response runs on the one that this is called
    /// from, which has to outlive the server.
    #[doc(hidden)]
    #[must_use]
    pub fn new(service: ThreadService, identity: Identity) -> Self {
        let background = Background::here();
        Self {
            services: Services {
                threads: service,
                scopes: None,
                turns: None,
                checkpoints: None,
                forks: None,
                backend: None,
            },
            identity,
            callbacks: Callbacks::new(background.clone(), FIRST_PAUSE),
            background,
            events: None,
            endings: None,
        }
    }

    /// The same with a connection to the store for each worker, which saves a wake-up of another thread for
    /// each request. It has to be the back end of the service that this was made with.
    #[doc(hidden)]
    #[must_use]
    pub fn with_backend(mut self, backend: Arc<dyn Backend>) -> Self {
        self.services.backend = Some(backend);
        self
    }

    /// The same with the events of the store, which [`Thread::on_destroyed`] needs. If their
    /// settings say so, the end of each request is one too.
    ///
    /// [`Thread::on_destroyed`]: super::Thread::on_destroyed
    #[doc(hidden)]
    #[must_use]
    pub fn with_events(self, events: Events) -> Self {
        Self {
            endings: Some(Endings::new(events.clone(), self.callbacks.clone())),
            events: Some(events),
            ..self
        }
    }

    /// The same with turns, which [`Thread::turn`] needs. They have to be over the store of the threads.
    ///
    /// [`Thread::turn`]: super::Thread::turn
    #[doc(hidden)]
    #[must_use]
    pub fn with_turns(mut self, service: TurnService) -> Self {
        let background = self.background.clone();
        self.services.turns = Some(Turns {
            service,
            background,
        });
        self
    }

    /// The same with checkpoints, which [`Thread::checkpoint`] needs. They have to be over the store of the threads.
    ///
    /// [`Thread::checkpoint`]: super::Thread::checkpoint
    #[doc(hidden)]
    #[must_use]
    pub fn with_checkpoints(mut self, checkpoints: CheckpointService) -> Self {
        self.services.checkpoints = Some(checkpoints);
        self
    }

    /// The same with copies of threads, which [`Thread::fork`] makes. They have to be over the store of the threads.
    ///
    /// [`Thread::fork`]: super::Thread::fork
    #[doc(hidden)]
    #[must_use]
    pub fn with_forks(mut self, service: ImageService) -> Self {
        let identity = self.identity.clone();
        self.services.forks = Some(Forks { service, identity });
        self
    }

    /// The same with scopes, which [`Thread::keys`] and its like need. They have to be over the store
    /// of the threads.
    ///
    /// [`Thread::keys`]: super::Thread::keys
    #[doc(hidden)]
    #[must_use]
    pub fn with_scopes(mut self, scopes: ScopeService) -> Self {
        self.services.scopes = Some(scopes);
        self
    }

    /// A scope of that name, over the app's own connection to the store. In a handler there is
    /// [`Session::scope`](super::Session::scope).
    #[must_use]
    pub fn scope(&self, scope: ScopeId) -> ScopeHandle {
        ScopeHandle::of(ScopeTarget::Outside(self.services.scopes.clone(), scope))
    }

    /// The threads of an owner, in their order, over the app's own connection to the store.
    #[must_use]
    pub fn owned_by(&self, owner: &Owner) -> OwnedThreads {
        OwnedThreads::new(self.services.owners(), owner.clone())
    }

    /// How long after its first failure a callback is called again. To be said before
    /// [`Self::with_events`].
    #[doc(hidden)]
    #[must_use]
    pub fn with_first_pause(self, first_pause: Duration) -> Self {
        Self {
            callbacks: Callbacks::new(self.background.clone(), first_pause),
            ..self
        }
    }

    /// The events of the store, if there are any: subscribe to them, and stop them with the app.
    #[must_use]
    pub fn events(&self) -> Option<&Events> {
        self.events.as_ref()
    }

    /// Counts of the callbacks of all requests so far, by outcome.
    #[must_use]
    pub fn callbacks(&self) -> CallbackCounts {
        self.callbacks.counts()
    }

    /// Has the end of a request logged as an event, if the settings of the events say so.
    pub(super) fn log(&self, thread: &ThreadId, completed: RequestCompleted) {
        if let Some(events) = &self.events {
            events.session_completed(thread, || domain::Completed {
                session: completed.session.as_str().into(),
                status: completed.status.as_u16(),
                duration_ms: millis(completed.duration),
            });
        }
    }

    /// Waits for the work after responses and for callbacks, at most that long, and says how much is left
    /// unfinished. To be called once the server has stopped.
    pub async fn shutdown(&self, limit: Duration) -> usize {
        let left = self.background.shutdown(limit).await;
        if left > 0 {
            tracing::error!(left, "work after the response did not finish in time");
        }
        left
    }
}
