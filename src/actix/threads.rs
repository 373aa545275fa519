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
    CheckpointService, EffectService, ImageService, ScopeService, ThreadService, TurnService,
};
use threadkeep_store::{Backend, millis};
use threadkeep_store_memory::MemorySettings;

/// The middleware that finds the caller's thread, and flushes the queued writes before the response is sent.
///
/// Build the middleware once, clone it into each worker, and wrap it around an app or a scope. A route must not be
/// wrapped twice.
///
/// Every response has the header `x-session-id`. The headers `x-thread-id` and `Set-Cookie` contain the signed id. They
/// are omitted from 401 and 403 responses, and from error responses that would reveal a new id before the thread is
/// stored. `Cache-Control: private, no-cache` is added unless the handler sets this header. Do not wrap routes with
/// responses that a shared cache may store, because the cache would serve one caller's thread to other callers.
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
    /// Returns a builder.
    pub fn builder() -> ThreadsBuilder {
        ThreadsBuilder::new()
    }

    /// Stores threads in the memory of this process, with a random signing key and default settings, for tests and
    /// trials. The threads are lost when the process ends.
    ///
    /// # Panics
    /// Panics if called outside of a Tokio runtime.
    #[must_use]
    pub fn in_memory() -> Self {
        ThreadsBuilder::new().in_memory(KeyRing::random(), MemorySettings::default())
    }

    /// Creates a middleware that serves the threads of `service` to callers that `identity` identifies.
    ///
    /// # Panics
    /// Panics if called outside of a Tokio runtime. Work after responses runs on the current runtime, which must
    /// outlive the server.
    #[doc(hidden)]
    #[must_use]
    pub fn new(service: ThreadService, identity: Identity) -> Self {
        let background = Background::on_current_runtime();
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

    /// Gives each worker its own store connection, so that a request does not have to wake another operating-system
    /// thread. `backend` must be the back end that the service uses.
    #[doc(hidden)]
    #[must_use]
    pub fn with_backend(mut self, backend: Arc<dyn Backend>) -> Self {
        self.services.backend = Some(backend);
        self
    }

    /// Enables [`Thread::on_destroyed`](super::Thread::on_destroyed). Also emits an event at the end of each request if
    /// the settings of `events` enable such events.
    #[doc(hidden)]
    #[must_use]
    pub fn with_events(self, events: Events) -> Self {
        Self {
            endings: Some(Endings::new(events.clone(), self.callbacks.clone())),
            events: Some(events),
            ..self
        }
    }

    /// Enables [`Thread::turn`](super::Thread::turn). The services must use the same store as the threads.
    #[doc(hidden)]
    #[must_use]
    pub fn with_turns(mut self, service: TurnService, effects: EffectService) -> Self {
        let background = self.background.clone();
        self.services.turns = Some(Turns {
            service,
            effects,
            background,
        });
        self
    }

    /// Enables [`Thread::checkpoint`](super::Thread::checkpoint). `checkpoints` must use the same store as the threads.
    #[doc(hidden)]
    #[must_use]
    pub fn with_checkpoints(mut self, checkpoints: CheckpointService) -> Self {
        self.services.checkpoints = Some(checkpoints);
        self
    }

    /// Enables [`Thread::fork`](super::Thread::fork). `service` must use the same store as the threads.
    #[doc(hidden)]
    #[must_use]
    pub fn with_forks(mut self, service: ImageService) -> Self {
        let identity = self.identity.clone();
        self.services.forks = Some(Forks { service, identity });
        self
    }

    /// Enables the keys, tasks and history of threads and other scopes. `scopes` must use the same store as the
    /// threads.
    #[doc(hidden)]
    #[must_use]
    pub fn with_scopes(mut self, scopes: ScopeService) -> Self {
        self.services.scopes = Some(scopes);
        self
    }

    /// Opens a scope outside of a request. The scope uses the app's own store connection. In handlers, use
    /// [`Session::scope`](super::Session::scope) instead.
    #[must_use]
    pub fn scope(&self, scope: ScopeId) -> ScopeHandle {
        ScopeHandle::of(ScopeTarget::Outside(self.services.scopes.clone(), scope))
    }

    /// Returns a handle to the threads of an owner. The handle uses the app's own store connection.
    #[must_use]
    pub fn owned_by(&self, owner: &Owner) -> OwnedThreads {
        OwnedThreads::new(self.services.owners(), owner.clone())
    }

    /// Sets the delay before the first retry of a failed callback. Must be called before [`Self::with_events`].
    #[doc(hidden)]
    #[must_use]
    pub fn with_first_pause(self, first_pause: Duration) -> Self {
        Self {
            callbacks: Callbacks::new(self.background.clone(), first_pause),
            ..self
        }
    }

    /// Returns the handle of the event service, or `None` if the middleware was built without events. Use the handle to
    /// subscribe to events, and to stop the service when the app stops.
    #[must_use]
    pub fn events(&self) -> Option<&Events> {
        self.events.as_ref()
    }

    /// Counts the callbacks of all requests so far, by outcome.
    #[must_use]
    pub fn callbacks(&self) -> CallbackCounts {
        self.callbacks.counts()
    }

    pub(super) fn log(&self, thread: &ThreadId, completed: RequestCompleted) {
        if let Some(events) = &self.events {
            events.session_completed(thread, || domain::Completed {
                session: completed.session.as_str().into(),
                status: completed.status.as_u16(),
                duration_ms: millis(completed.duration),
            });
        }
    }

    /// Waits up to `limit` for callbacks and for work after responses. Returns the number of tasks that are still
    /// unfinished. Call this method after the server has stopped.
    pub async fn shutdown(&self, limit: Duration) -> usize {
        let left = self.background.shutdown(limit).await;
        if left > 0 {
            tracing::error!(left, "work after the response did not finish in time");
        }
        left
    }
}
