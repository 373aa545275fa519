use std::fmt;

use async_trait::async_trait;

use crate::StoreError;
use threadkeep_domain::scope::ScopeId;
use threadkeep_domain::{Fingerprint, Rate, RateLimited, RateName};

/// The subject of counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Counted<'a> {
    /// A client's address, known to the store only by its digest.
    Address(&'a Fingerprint),
    /// A thread, or a scope without a thread.
    Scope(&'a ScopeId),
}

/// Rate limiters, by the store's clock. The counters of one subject change atomically. An unused counter takes no memory.
#[async_trait]
pub trait Rates: fmt::Debug + Send + Sync {
    /// Takes one unit from each rate, or none if any is exhausted. Returns the exhausted rate with the longest wait. After a
    /// broken connection, a unit may be taken twice.
    async fn take_rates(
        &self,
        whose: Counted<'_>,
        rates: &[(RateName, Rate)],
    ) -> Result<Option<RateLimited>, StoreError>;

    /// Returns one unit to each rate.
    async fn give_back_rates(
        &self,
        whose: Counted<'_>,
        rates: &[(RateName, Rate)],
    ) -> Result<(), StoreError>;
}
