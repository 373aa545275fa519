//! Which replica does what.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::StoreError;

/// The words of the holders of a pool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Heard {
    /// The announcements of all living holders, including the caller; none for one that takes part and has announced
    /// nothing.
    pub said: Vec<Option<Bytes>>,
    /// The note that was there before, which stays for a year after all holders have gone.
    pub note: Option<Bytes>,
}

/// Shares of common work, each held by one replica at a time.
///
/// A pool is a kind of work, cut into slots that are numbered from 0. Its name has 1 to 64
/// characters of `[A-Za-z0-9._-]`.
#[async_trait]
pub trait Leases: fmt::Debug + Send + Sync {
    /// Announces that `holder` is alive in a pool of `slots` slots, renews its leases, takes free ones up to its fair
    /// share (slots by living holders, rounded up) and gives back the excess, all in one step. Returns the slots that
    /// it now holds for `lasts`.
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

    /// Announces something about `holder` to the other holders of a pool, valid for `lasts`, replacing its earlier
    /// announcement, and leaves a note for later ones, replacing the earlier note. Returns the announcements of the
    /// others in the same step.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn introduce(
        &self,
        pool: &str,
        holder: &str,
        words: &[u8],
        note: Option<&[u8]>,
        lasts: Duration,
    ) -> Result<Heard, StoreError>;

    /// Gives back all slots, leaves the pool, and removes the announcement.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn release(&self, pool: &str, holder: &str) -> Result<(), StoreError>;
}
