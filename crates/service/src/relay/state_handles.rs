//! State handles: scopes to be named by their ids.

use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use super::catalog::{Catalog, Kind, New};
use super::making::Record;
use crate::attempts::in_time;
use crate::{Listed, Making, ScopeService, ServiceError};
use threadkeep_domain::scope::{ScopeId, ScopeWrite};
use threadkeep_store::{Clock, Listings, ScopeView};

/// A state handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateHandle {
    /// Its id.
    pub id: Uuid,
    /// When it was made, in milliseconds of the Unix epoch.
    pub created_ms: u64,
    /// The time of its end; none until it is deleted.
    pub expires_ms: Option<u64>,
}

/// Makes, lists and ends state handles.
#[derive(Debug, Clone)]
pub struct StateHandleService(Catalog);

const KIND: Kind = Kind {
    list: "state-handles",
    scope: ScopeId::State,
    owner: |_| None,
};

impl StateHandleService {
    /// Handles as scopes, listed by the time of that clock.
    #[must_use]
    pub fn new(scopes: ScopeService, listings: Arc<dyn Listings>, clock: Clock) -> Self {
        Self(Catalog::new(scopes, listings, clock, KIND))
    }

    /// Makes a handle, which ends after `ttl`. A repeat answers the one that was made.
    ///
    /// # Errors
    /// [`ServiceError::Refused`] with [`Refusal::IdempotencyKeyReused`], or
    /// [`ServiceError::Store`].
    ///
    /// [`Refusal::IdempotencyKeyReused`]: threadkeep_domain::Refusal::IdempotencyKeyReused
    pub async fn create(
        &self,
        making: &Making,
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

    /// A handle.
    ///
    /// # Errors
    /// [`ServiceError::Refused`] with [`Refusal::ScopeNotFound`], or [`ServiceError::Store`].
    ///
    /// [`Refusal::ScopeNotFound`]: threadkeep_domain::Refusal::ScopeNotFound
    pub async fn get(&self, id: Uuid) -> Result<StateHandle, ServiceError> {
        Ok(handle(id, &self.0.get(id).await?))
    }

    /// Up to `limit` handles from an offset on, newest first.
    ///
    /// # Errors
    /// [`ServiceError::Store`].
    pub async fn list(
        &self,
        offset: u64,
        limit: usize,
    ) -> Result<Listed<StateHandle>, ServiceError> {
        let page = self.0.page(None, offset, limit).await?;
        Ok(page.map(|(id, view)| handle(id, &view)))
    }

    /// Has a handle end after `ttl` from now on, whenever it was to end.
    ///
    /// # Errors
    /// As [`Self::get`].
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

    /// Ends a handle with all that it holds. Whether there was one.
    ///
    /// # Errors
    /// [`ServiceError::Store`].
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
