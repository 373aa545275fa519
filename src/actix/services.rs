//! The services that a request works with.

use crate::service::{ScopeService, ThreadService};

/// Threads, and scopes if the app has them.
#[derive(Debug, Clone)]
pub(super) struct Services {
    pub(super) threads: ThreadService,
    pub(super) scopes: Option<ScopeService>,
}

impl Services {
    /// The same with the worker's own connection to the store.
    pub(super) fn for_worker(&self) -> Self {
        let threads = self.threads.for_worker();
        let scopes = self.scopes.as_ref();
        Self {
            scopes: scopes.map(|scopes| scopes.for_worker(&threads)),
            threads,
        }
    }
}
