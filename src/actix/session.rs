use std::fmt;
use std::sync::{Arc, MutexGuard, PoisonError};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::completion::{Callback, RequestCompleted};
use super::{RequestContext, ScopeHandle, ScopeTarget, repeatable};
use threadkeep_domain::scope::ScopeId;
use threadkeep_web::SessionId;

/// An extractor, provided by [`Threads`](super::Threads), for the session of a request. Cheap to clone.
#[derive(Clone)]
pub struct Session(pub(super) Arc<RequestContext>);

/// Named JSON values that exist during one request and are never stored.
#[derive(Clone)]
pub struct SessionState(Arc<RequestContext>);

impl Session {
    /// Returns the session id. Each request gets a new session id, which is sent in the response header `x-session-id`.
    #[must_use]
    pub fn id(&self) -> SessionId {
        self.0.session
    }

    /// Returns the session's values.
    #[must_use]
    pub fn state(&self) -> SessionState {
        SessionState(Arc::clone(&self.0))
    }

    /// Opens a scope that callers can share, such as the data of a user's session or of a tool. The app decides which
    /// callers may open the scope.
    #[must_use]
    pub fn scope(&self, scope: ScopeId) -> ScopeHandle {
        ScopeHandle::of(ScopeTarget::Shared(Arc::clone(&self.0.thread), scope))
    }

    /// Runs `callback` when the response is ready, before the response is sent. If the request has already ended, runs
    /// `callback` immediately.
    ///
    /// If the request ends without a response, because the client disconnected or the handler panicked, `callback`
    /// never runs.
    ///
    /// The callback runs on the worker that serves the request, so it must not block. A panic is caught and counted in
    /// [`Threads::callbacks`](super::Threads::callbacks).
    pub fn on_completed(&self, callback: impl FnOnce(RequestCompleted) + Send + 'static) {
        let callback = Callback::Once(Box::new(callback));
        self.0.completion.on_completed(callback);
    }

    /// Like [`Self::on_completed`], but `callback` can fail, and runs on the app's own runtime. A failed callback is
    /// retried after 1, 2, 4 and 8 seconds.
    ///
    /// Failures are counted in [`Threads::callbacks`](super::Threads::callbacks), and do not affect the request.
    pub fn try_on_completed<F, R, E>(&self, callback: F)
    where
        F: Fn(RequestCompleted) -> R + Send + Sync + 'static,
        R: Future<Output = Result<(), E>> + Send + 'static,
        E: fmt::Display,
    {
        let callback = Callback::Repeatable(repeatable(callback));
        self.0.completion.on_completed(callback);
    }

    /// Runs `work` once the response is ready, even if the request fails. `work` may use the thread, but must
    /// [`flush`](super::Thread::flush) its own writes.
    ///
    /// [`Threads::shutdown`](super::Threads::shutdown) waits for `work`.
    pub fn wait_until(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.0.completion.wait_until(Box::pin(work));
    }
}

impl SessionState {
    /// Returns a value. Fails if it is not a `T`.
    pub fn get<T: DeserializeOwned>(&self, name: &str) -> serde_json::Result<Option<T>> {
        let value = self.values().get(name).cloned();
        value.map(serde_json::from_value).transpose()
    }

    /// Sets a value.
    pub fn set(&self, name: impl Into<String>, value: impl Serialize) -> serde_json::Result<()> {
        let value = serde_json::to_value(value)?;
        self.values().insert(name.into(), value);
        Ok(())
    }

    /// Returns whether the value exists.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.values().contains_key(name)
    }

    /// Deletes a value. Returns whether it existed.
    pub fn delete(&self, name: &str) -> bool {
        self.values().remove(name).is_some()
    }

    /// Deletes all values.
    pub fn clear(&self) {
        self.values().clear();
    }

    /// Returns all values.
    #[must_use]
    pub fn to_map(&self) -> Map<String, Value> {
        self.values().clone()
    }

    fn values(&self) -> MutexGuard<'_, Map<String, Value>> {
        let values = self.0.session_state.lock();
        values.unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Session").field(&self.id()).finish()
    }
}

impl fmt::Debug for SessionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SessionState")
            .field(&self.0.session)
            .finish()
    }
}
