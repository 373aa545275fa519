//! The middleware as an app makes it.

use std::time::Duration;

use super::background::Background;
use crate::identity::Identity;
use crate::service::ThreadService;

/// The middleware that finds the caller's thread and keeps its promises at the end.
///
/// Made once and cloned into each worker, where it takes a connection to the store of its own. It
/// is wrapped around an app or a scope, once for each route.
///
/// Every response gets `x-session-id`; `x-thread-id` and `Set-Cookie` with the signed id, except
/// a 401 or 403 and a refusal that would make a new id known before anything is stored under it;
/// and `Cache-Control: private, no-cache` if the handler sets none. Routes that a shared cache may
/// keep belong outside: it would hand one caller's thread to another.
#[derive(Debug, Clone)]
pub struct Threads {
    pub(super) service: ThreadService,
    pub(super) identity: Identity,
    pub(super) background: Background,
}

impl Threads {
    /// Threads of that service, for callers of that identity.
    ///
    /// # Panics
    /// Outside of a Tokio runtime: work after the response runs on the one that this is called
    /// from, which has to outlive the server.
    #[must_use]
    pub fn new(service: ThreadService, identity: Identity) -> Self {
        Self {
            service,
            identity,
            background: Background::here(),
        }
    }

    /// Waits for the work after responses, at most that long, and says how much is left
    /// unfinished. To be called once the server has stopped.
    pub async fn shutdown(&self, limit: Duration) -> usize {
        let left = self.background.shutdown(limit).await;
        if left > 0 {
            tracing::error!(left, "work after the response did not end in time");
        }
        left
    }
}
