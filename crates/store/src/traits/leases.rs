use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::StoreError;

/// The announcements of a pool's holders.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Heard {
    /// The announcements of all living holders, including the caller; `None` for a holder that has announced nothing.
    pub said: Vec<Option<Bytes>>,
    /// The previous note. It is kept for one year after the last holder has left.
    pub note: Option<Bytes>,
}

/// Leases of common work, each held by one replica at a time. A pool is a kind of work, divided into slots numbered from 0.
/// Its name has 1 to 64 characters of `[A-Za-z0-9._-]`.
#[async_trait]
pub trait Leases: fmt::Debug + Send + Sync {
    /// Announces that `holder` is alive, renews its leases, takes free slots up to its fair share (slots by living holders,
    /// rounded up) and gives back the excess, atomically. Returns the slots that it holds for `lasts`.
    async fn hold(
        &self,
        pool: &str,
        slots: u16,
        holder: &str,
        lasts: Duration,
    ) -> Result<Vec<u16>, StoreError>;

    /// Publishes an announcement of `holder`, valid for `lasts`, and a note for later holders. Both replace earlier ones.
    /// Returns the announcements and the previous note in the same step.
    async fn introduce(
        &self,
        pool: &str,
        holder: &str,
        words: &[u8],
        note: Option<&[u8]>,
        lasts: Duration,
    ) -> Result<Heard, StoreError>;

    /// Gives back all slots, leaves the pool, and removes the announcement.
    async fn release(&self, pool: &str, holder: &str) -> Result<(), StoreError>;
}
