//! Which replica does what.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;

use crate::store::StoreError;

/// Shares of common work, each held by one replica at a time.
///
/// A pool is a kind of work, cut into slots that are numbered from 0. Its name has 1 to 64
/// characters of `[A-Za-z0-9._-]`.
#[async_trait]
pub trait Leases: fmt::Debug + Send + Sync {
    /// Says that `holder` lives and takes part in a pool of so many slots, renews the leases that
    /// it has there, takes free ones up to its fair share (slots by living holders, rounded up)
    /// and gives back what is more. All in one step; answers the slots that it now holds for
    /// `lasts`.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn hold(
        &self,
        pool: &str,
        slots: u16,
        holder: &str,
        lasts: Duration,
    ) -> Result<Vec<u16>, StoreError>;

    /// Gives all back and takes part no more.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn release(&self, pool: &str, holder: &str) -> Result<(), StoreError>;
}
