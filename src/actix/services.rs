use std::sync::Arc;

use super::{Forks, Turns};
use threadkeep_domain::Owner;
use threadkeep_service::{CheckpointService, OwnerService, ScopeService, ThreadService};
use threadkeep_store::Backend;

#[derive(Debug, Clone)]
pub(super) struct Services {
    pub(super) threads: ThreadService,
    pub(super) scopes: Option<ScopeService>,
    /// Uses the app's store connection, even in a worker.
    pub(super) turns: Option<Turns>,
    pub(super) checkpoints: Option<CheckpointService>,
    pub(super) forks: Option<Forks>,
    /// Creates a store connection for each worker. If `None`, the workers share the app's connection.
    pub(super) backend: Option<Arc<dyn Backend>>,
}

impl Services {
    /// Returns a copy that acts on behalf of `owner`. `None` means that the caller does not have an owner.
    pub(super) fn on_behalf_of(&self, owner: Option<Owner>) -> Self {
        let threads = self.threads.on_behalf_of(owner.clone());
        Self {
            scopes: self
                .scopes
                .as_ref()
                .map(|scopes| scopes.with_threads(threads.clone())),
            turns: self.turns.as_ref().map(|turns| turns.on_behalf_of(owner)),
            checkpoints: self
                .checkpoints
                .as_ref()
                .map(|checkpoints| checkpoints.with_threads(threads.clone())),
            forks: self.forks.clone(),
            backend: self.backend.clone(),
            threads,
        }
    }

    pub(super) fn owners(&self) -> Option<OwnerService> {
        let backend = self.backend.as_ref()?;
        Some(OwnerService::new(
            Arc::clone(backend) as _,
            Arc::clone(backend) as _,
        ))
    }

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
        let checkpoints = self.checkpoints.as_ref().map(|checkpoints| {
            let checkpoints = checkpoints.over(Arc::clone(&worker) as _);
            checkpoints.with_threads(threads.clone())
        });
        Self {
            scopes: self.scopes.as_ref().map(over_worker),
            checkpoints,
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
