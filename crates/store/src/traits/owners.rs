use std::fmt;
use std::time::Duration;

use async_trait::async_trait;

use crate::StoreError;
use threadkeep_domain::{OwnerTag, Thread, ThreadId};

/// The time by which an owner's threads are sorted, newest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadOrder {
    /// The last write.
    Updated,
    /// The first write.
    Created,
}

/// A position in the list of an owner's threads: the time and id of a thread.
pub type OwnedPosition = (u64, ThreadId);

/// One page of threads. Threads that have just ended are omitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadPage<P> {
    /// Thread objects with their positions.
    pub threads: Vec<(P, Thread)>,
    /// The cursor of the next page; `None` on the last page.
    pub next: Option<P>,
}

/// Totals for an owner's threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OwnerUsage {
    /// Number of living threads.
    pub threads: u64,
    /// Total size of the states in bytes.
    pub size_bytes: u64,
}

/// A history summary for a list of threads.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HistoryPreview {
    /// Number of items.
    pub items: u64,
    /// When the newest item was added, in Unix milliseconds.
    pub newest_ms: Option<u64>,
    /// The values of the oldest items, each cut to [`PREVIEW_BYTES_MAX`] at a character boundary. Contains fewer items
    /// if the values are very long.
    pub opening: Vec<Box<str>>,
}

/// Maximum size of an item's value in a [`HistoryPreview`], in bytes.
pub const PREVIEW_BYTES_MAX: usize = 4_096;

/// Minimum time since the last write or move of a thread, in milliseconds, before an appended history item moves the
/// thread to the top of its owner's list.
pub const MOVES_AFTER_MS: u64 = 1_000;

/// Identifies a reservation for a new thread of an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReservationToken(pub [u8; 16]);

/// Lists threads. Listing does not extend the lifetime of a thread.
///
/// A thread that exists during the whole listing, and is not written during that time, appears on exactly one page.
/// Appending to the history of a thread counts as a write: see [`MOVES_AFTER_MS`].
#[async_trait]
pub trait Owners: fmt::Debug + Send + Sync {
    /// Returns an owner's threads, newest first. Even a page that is not the last may be short or empty.
    async fn list_owned(
        &self,
        owner: OwnerTag,
        order: ThreadOrder,
        after: Option<&OwnedPosition>,
        limit: usize,
    ) -> Result<ThreadPage<OwnedPosition>, StoreError>;

    /// Returns all threads in the order of their ids. Even a page that is not the last may be short or empty.
    async fn list_threads(
        &self,
        after: Option<&ThreadId>,
        limit: usize,
    ) -> Result<ThreadPage<ThreadId>, StoreError>;

    /// Returns a thread as it appears in lists, without extending its lifetime.
    async fn peek_thread(&self, id: &ThreadId) -> Result<Option<Thread>, StoreError>;

    /// Returns the number of threads, possibly including threads that have just ended.
    async fn count_threads(&self) -> Result<u64, StoreError>;

    /// Returns the owner of a thread, or the last owner if the thread has ended. Does not extend the lifetime.
    async fn owner_of(&self, id: &ThreadId) -> Result<Option<OwnerTag>, StoreError>;

    /// Summarizes the histories of threads, each with up to `opening` of its oldest items. Returns `None` for each
    /// thread that does not exist. Does not extend lifetimes.
    async fn preview_histories(
        &self,
        ids: &[ThreadId],
        opening: usize,
    ) -> Result<Vec<Option<HistoryPreview>>, StoreError>;

    /// Returns the number and total size of an owner's threads. The call takes time in proportion to the number of
    /// threads, but does not block other calls.
    async fn measure_owned(&self, owner: OwnerTag) -> Result<OwnerUsage, StoreError>;

    /// Returns the length of an owner's list, possibly including threads that have just ended.
    async fn count_owned(&self, owner: OwnerTag) -> Result<u64, StoreError>;

    /// Reserves room for one thread within an owner's limit, for `ttl` or until released. Returns how many other
    /// unexpired reservations the owner has, including those for threads that are already listed.
    async fn reserve_thread(
        &self,
        owner: OwnerTag,
        reservation: ReservationToken,
        ttl: Duration,
    ) -> Result<u64, StoreError>;

    /// Releases a reservation. Call this method once the thread is listed, or if the thread was not created.
    async fn release_reservation(
        &self,
        owner: OwnerTag,
        reservation: ReservationToken,
    ) -> Result<(), StoreError>;
}
