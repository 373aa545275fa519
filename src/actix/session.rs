//! One request as a session.

use std::fmt;
use std::sync::{Arc, MutexGuard, PoisonError};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::completion::{Callback, RequestCompleted};
use super::{RequestContext, ScopeHandle, ScopeTarget, repeatable};
use threadkeep_domain::scope::ScopeId;
use threadkeep_web::SessionId;

/// The session of a request: an extractor of [`Threads`](super::Threads). Cheap to clone.
#[derive(Clone)]
pub struct Session(pub(super) Arc<RequestContext>);

/// JSON values that last as long as the request, by name. No store keeps them.
#[derive(Clone)]
pub struct SessionState(Arc<RequestContext>);

impl Session {
    /// Its id: new for each request, and in the response as `x-session-id`.
    #[must_use]
    pub fn id(&self) -> SessionId {
        self.0.session
    }

    /// Its values.
    #[must_use]
    pub fn state(&self) -> SessionState {
        SessionState(Arc::clone(&self.0))
    }

    /// A scope of that name, shared with others: a session of the app's users, or the private data of a tool. The app
    /// decides which caller may open it.
    #[must_use]
    pub fn scope(&self, scope: ScopeId) -> ScopeHandle {
        ScopeHandle::of(ScopeTarget::Shared(Arc::clone(&self.0.thread), scope))
    }

    /// Calls back once the response is ready, before it is sent; at once if it was sent already. Never calls back if
    /// there is no response, because the client went away or the handler panicked.
    ///
    /// It runs on the worker that serves the request, so it must not block. Its panic is counted in
    /// [`Threads::callbacks`](super::Threads::callbacks) and goes no further.
    pub fn on_completed(&self, callback: impl FnOnce(RequestCompleted) + Send + 'static) {
        let callback = Callback::Once(Box::new(callback));
        self.0.completion.on_completed(callback);
    }

    /// The same for a callback that may fail. It begins when the response is ready, and runs on the
    /// app's own runtime; one that fails is called again after 1, 2, 4 and 8 seconds, and counted
    /// in [`Threads::callbacks`](super::Threads::callbacks). It fails no request.
    pub fn try_on_completed<F, R, E>(&self, callback: F)
    where
        F: Fn(RequestCompleted) -> R + Send + Sync + 'static,
        R: Future<Output = Result<(), E>> + Send + 'static,
        E: fmt::Display,
    {
        let callback = Callback::Repeatable(repeatable(callback));
        self.0.completion.on_completed(callback);
    }

    /// Runs work after the response, however the request ends. It begins when the response is
    /// ready; [`Threads::shutdown`](super::Threads::shutdown) waits for it.
    ///
    /// It may use the thread; its writes want a [`flush`](super::Thread::flush).
    pub fn wait_until(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.0.completion.wait_until(Box::pin(work));
    }
}

impl SessionState {
    /// The value of that name.
    ///
    /// # Errors
    /// When it is no `T`.
    pub fn get<T: DeserializeOwned>(&self, name: &str) -> serde_json::Result<Option<T>> {
        let value = self.values().get(name).cloned();
        value.map(serde_json::from_value).transpose()
    }

    /// Sets a value.
    ///
    /// # Errors
    /// When it cannot be JSON.
    pub fn set(&self, name: impl Into<String>, value: impl Serialize) -> serde_json::Result<()> {
        let value = serde_json::to_value(value)?;
        self.values().insert(name.into(), value);
        Ok(())
    }

    /// Whether there is a value of that name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.values().contains_key(name)
    }

    /// Deletes a value, and says whether there was one.
    pub fn delete(&self, name: &str) -> bool {
        self.values().remove(name).is_some()
    }

    /// Deletes all values.
    pub fn clear(&self) {
        self.values().clear();
    }

    /// All values as they are.
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
