//! Stores state handles: scopes that clients refer to by id.

use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use super::catalog::{Catalog, Kind, New};
use super::making::Record;
use crate::attempts::in_time;
use crate::{Creation, Listed, ScopeService, ServiceError};
use threadkeep_domain::scope::{ScopeId, ScopeWrite};
use threadkeep_store::{Clock, Listings, ScopeView};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateHandle {
    pub id: Uuid,
    /// Milliseconds since the Unix epoch.
    pub created_ms: u64,
    /// `None` if the handle does not expire.
    pub expires_ms: Option<u64>,
}

#[derive(Debug, Clone)]
pub struct StateHandleService(Catalog);

const KIND: Kind = Kind {
    list: "state-handles",
    scope: ScopeId::State,
    owner: |_| None,
};

impl StateHandleService {
    #[must_use]
    pub fn new(scopes: ScopeService, listings: Arc<dyn Listings>, clock: Clock) -> Self {
        Self(Catalog::new(scopes, listings, clock, KIND))
    }

    /// Creates a handle that expires after `ttl`, or returns the handle that an earlier attempt at the same request
    /// created.
    pub async fn create(
        &self,
        making: &Creation,
        ttl: Option<Duration>,
    ) -> Result<StateHandle, ServiceError> {
        let new = New {
            owner: None,
            record: Record::new(making, ()).to_bytes(),
            ttl,
        };
        let view = self.0.make(making, &new).await?;
        Ok(handle(making.id, &view))
    }

    pub async fn get(&self, id: Uuid) -> Result<StateHandle, ServiceError> {
        Ok(handle(id, &self.0.get(id).await?))
    }

    pub async fn list(
        &self,
        offset: u64,
        limit: usize,
    ) -> Result<Listed<StateHandle>, ServiceError> {
        let page = self.0.page(None, offset, limit).await?;
        Ok(page.map(|(id, view)| handle(id, &view)))
    }

    /// Sets the expiry time of a handle to `ttl` from now, even if that is earlier than the previous expiry time.
    pub async fn extend(&self, id: Uuid, ttl: Duration) -> Result<StateHandle, ServiceError> {
        let scope = self.0.scope(id);
        let policy = self.0.scopes.policy(&scope);
        let write = ScopeWrite {
            ttl: Some(ttl),
            ..ScopeWrite::new(&policy)
        };
        let extended = async {
            self.0.scopes.commit(&scope, &write).await?;
            self.get(id).await
        };
        in_time(self.0.scopes.timeout, extended).await
    }

    /// Deletes a handle and its contents. Returns whether it existed.
    pub async fn delete(&self, id: Uuid) -> Result<bool, ServiceError> {
        self.0.end(id).await
    }
}

fn handle(id: Uuid, view: &ScopeView) -> StateHandle {
    StateHandle {
        id,
        created_ms: view.created_ms,
        expires_ms: view.expires_ms,
    }
}
