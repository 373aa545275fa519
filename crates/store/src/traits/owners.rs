//! Lists of threads, those of an owner and all.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;

use crate::StoreError;
use threadkeep_domain::{OwnerTag, Thread, ThreadId};

/// By which time an owner's threads are listed, the newest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadOrder {
    /// The last write.
    Updated,
    /// The first write.
    Created,
}

/// A place in the list of an owner's threads: the time of one, and its id.
pub type OwnedPlace = (u64, ThreadId);

/// Some threads of a list, and where it goes on; none at its end. Threads that have just ended are missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadPage<P> {
    /// Thread objects with their places.
    pub threads: Vec<(P, Thread)>,
    /// After which place the list goes on.
    pub next: Option<P>,
}

/// The threads of an owner as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OwnerUsage {
    /// Living threads.
    pub threads: u64,
    /// The bytes of their states.
    pub size_bytes: u64,
}

/// A history as a list of threads shows it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HistoryGlance {
    /// Items that it has.
    pub items: u64,
    /// When the newest one was added.
    pub newest_ms: Option<u64>,
    /// The values of its oldest items, as many as were asked for; of a longer one, the first
    /// [`GLANCE_MAX_BYTES`] or a few less, to the end of a character. There may be fewer if values are very long.
    pub opening: Vec<Box<str>>,
}

/// The bytes of an item's value that a glance shows at most.
pub const GLANCE_MAX_BYTES: usize = 4_096;

/// A history that grows moves its thread to the top of its owner's list, unless the thread was written to, or moved, less
/// than this before.
pub const MOVES_AFTER_MS: u64 = 1_000;

/// Names a place that is reserved for a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PlaceToken(pub [u8; 16]);

/// The threads of a store as lists. No list moves the end of a thread.
///
/// A thread that exists during the whole listing, and is not written meanwhile, is on exactly one page. An item that is
/// appended to its history counts as a write: see [`MOVES_AFTER_MS`].
#[async_trait]
pub trait Owners: fmt::Debug + Send + Sync {
    /// The threads of an owner, the newest first. A page may be short, or empty, before the end.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn list_owned(
        &self,
        owner: OwnerTag,
        order: ThreadOrder,
        after: Option<&OwnedPlace>,
        limit: usize,
    ) -> Result<ThreadPage<OwnedPlace>, StoreError>;

    /// All threads, in the order of their ids. A page may be short, or empty, before the end.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn list_threads(
        &self,
        after: Option<&ThreadId>,
        limit: usize,
    ) -> Result<ThreadPage<ThreadId>, StoreError>;

    /// A thread as lists show it. This is no use of the thread.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn peek_thread(&self, id: &ThreadId) -> Result<Option<Thread>, StoreError>;

    /// How many threads there are. It may count threads that have just ended.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn count_threads(&self) -> Result<u64, StoreError>;

    /// The owner of a thread or, if there is no thread, of its last life. This is no use of the thread.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn owner_of(&self, id: &ThreadId) -> Result<Option<OwnerTag>, StoreError>;

    /// Looks at the histories of threads as a list shows them, with the values of up to `opening` of their oldest items.
    /// None for a thread that does not exist. This is no use of the threads.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn glance_histories(
        &self,
        ids: &[ThreadId],
        opening: usize,
    ) -> Result<Vec<Option<HistoryGlance>>, StoreError>;

    /// The number and size of an owner's threads. It takes time in proportion to their number, but holds nothing up.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn measure_owned(&self, owner: OwnerTag) -> Result<OwnerUsage, StoreError>;

    /// How many threads an owner's list has. It may count threads that have just ended.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn count_owned(&self, owner: OwnerTag) -> Result<u64, StoreError>;

    /// Reserves a place for one more thread of an owner, for that long unless it is released. Returns how many places
    /// were reserved before and are still; whichever of their threads exist by now are listed.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn reserve_place(
        &self,
        owner: OwnerTag,
        place: PlaceToken,
        lasts: Duration,
    ) -> Result<u64, StoreError>;

    /// Releases a place, because its thread is listed or was not made.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn release_place(&self, owner: OwnerTag, place: PlaceToken) -> Result<(), StoreError>;
}
