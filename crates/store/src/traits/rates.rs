use std::fmt;

use async_trait::async_trait;

use crate::StoreError;
use threadkeep_domain::scope::ScopeId;
use threadkeep_domain::{Fingerprint, Rate, RateLimited, RateName};

/// The client, thread or scope whose requests are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Counted<'a> {
    /// A client, identified only by a digest of its address.
    Address(&'a Fingerprint),
    /// A thread, or a scope without a thread.
    Scope(&'a ScopeId),
}

/// Rate limiters that use the store's clock. All counters of one subject change atomically. An unused counter takes no
/// memory.
#[async_trait]
pub trait Rates: fmt::Debug + Send + Sync {
    /// Takes one unit from each rate, unless any rate is exhausted. In that case, takes nothing, and returns the
    /// exhausted rate with the longest wait. If the connection breaks, a unit may be taken twice.
    async fn take_rates(
        &self,
        subject: Counted<'_>,
        rates: &[(RateName, Rate)],
    ) -> Result<Option<RateLimited>, StoreError>;

    /// Returns one unit to each rate.
    async fn give_back_rates(
        &self,
        subject: Counted<'_>,
        rates: &[(RateName, Rate)],
    ) -> Result<(), StoreError>;
}
