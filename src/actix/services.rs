//! The services that a request works with.

use std::sync::Arc;

use super::fork::Forks;
use super::turn::Turns;
use crate::service::{ScopeService, ThreadService};
use crate::store::Backend;

/// Threads, and scopes if the app has them.
#[derive(Debug, Clone)]
pub(super) struct Services {
    pub(super) threads: ThreadService,
    pub(super) scopes: Option<ScopeService>,
    /// Turns, over the app's connection.
    pub(super) turns: Option<Turns>,
    /// Copies of threads, if the app has them.
    pub(super) forks: Option<Forks>,
    /// The back end that gives each worker a connection. Without it, workers share the app's.
    pub(super) backend: Option<Arc<dyn Backend>>,
}

impl Services {
    /// The same with the worker's own connection to the store.
    pub(super) fn for_worker(&self) -> Self {
        let Some(backend) = &self.backend else {
            return self.clone();
        };
        let worker = backend.for_worker();
        let threads = self.threads.over(Arc::clone(&worker) as _);
        let over_worker = |scopes: &ScopeService| {
            let scopes = scopes.over(Arc::clone(&worker) as _);
            scopes.with_threads(threads.clone())
        };
        Self {
            scopes: self.scopes.as_ref().map(over_worker),
            turns: self.turns.clone(),
            forks: self.forks.as_ref().map(|forks| Forks {
                service: forks.service.over(Arc::clone(&worker) as _, worker as _),
                identity: forks.identity.clone(),
            }),
            threads,
            backend: None,
        }
    }
}
