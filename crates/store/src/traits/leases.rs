use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::StoreError;

/// The announcements of a pool's holders.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Announcements {
    /// The announcements of all living holders, including the caller; `None` for holders without an announcement.
    pub announcements: Vec<Option<Bytes>>,
    /// The note that was stored before the call. A note expires one year after the last holder has left.
    pub note: Option<Bytes>,
}

/// Leases for work that replicas share.
///
/// A pool is one kind of work, divided into slots with zero-based numbers. Each slot is leased to one replica at a
/// time. The name of a pool consists of 1 to 64 characters from `[A-Za-z0-9._-]`.
#[async_trait]
pub trait Leases: fmt::Debug + Send + Sync {
    /// Renews the leases of `holder`, takes free slots, and gives back the slots that exceed the holder's fair share,
    /// atomically. The fair share is the number of slots divided by the number of living holders, rounded up. Also
    /// marks `holder` as alive. Returns the slots that `holder` has leased for `ttl`.
    async fn hold(
        &self,
        pool: &str,
        slots: u16,
        holder: &str,
        ttl: Duration,
    ) -> Result<Vec<u16>, StoreError>;

    /// Publishes `content` for `ttl` as the announcement of `holder`, and stores `note` for later holders. Replaces
    /// earlier values. Returns all announcements and the previous note, read in the same step.
    async fn announce(
        &self,
        pool: &str,
        holder: &str,
        content: &[u8],
        note: Option<&[u8]>,
        ttl: Duration,
    ) -> Result<Announcements, StoreError>;

    /// Gives back all slots of `holder`, and removes the holder and its announcement from the pool.
    async fn release(&self, pool: &str, holder: &str) -> Result<(), StoreError>;
}
