//! How often something was done.

use std::fmt;

use async_trait::async_trait;

use crate::StoreError;
use threadkeep_domain::scope::ScopeId;
use threadkeep_domain::{Fingerprint, Rate, RateLimited, RateName};

/// The subject of counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Counted<'a> {
    /// Those of a client's address, which the store only knows by a digest.
    Address(&'a Fingerprint),
    /// A thread, or a scope without a thread.
    Scope(&'a ScopeId),
}

/// Counters of actions, by the store's own clock. Those of one address, or of one scope, change together. An unused
/// counter takes no room.
#[async_trait]
pub trait Rates: fmt::Debug + Send + Sync {
    /// Takes one of each of these rates, or none of any when one has none left: which, and for how
    /// long. Of several that have none left it is the one with the longest wait.
    ///
    /// A connection that breaks may have one taken twice.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn take_rates(
        &self,
        whose: Counted<'_>,
        rates: &[(RateName, Rate)],
    ) -> Result<Option<RateLimited>, StoreError>;

    /// Gives one of each back that was taken.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn give_back_rates(
        &self,
        whose: Counted<'_>,
        rates: &[(RateName, Rate)],
    ) -> Result<(), StoreError>;
}
