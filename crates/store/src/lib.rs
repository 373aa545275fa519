//! Where threads are kept. A store's methods are atomic promises; the conformance suite in
//! `tests/` holds every store to them.

mod alarm;
mod cache_use;
mod call_rejected;
mod clock;
mod error;
pub mod held_scope;
mod memory_use;
pub mod merged;
pub mod parts;
mod passing_scope;
mod reader;
mod traits;

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use threadkeep_domain::{Conditions, Json, Key, Slice, Stamp, Thread, ThreadId, Write, Written};

pub use threadkeep_domain::millis;

pub use alarm::Alarm;
pub use cache_use::CacheUse;
pub use call_rejected::CallRejected;
pub use clock::Clock;
pub use error::{StoreError, WriteError};
pub use memory_use::MemoryUse;
pub use passing_scope::PassingScope;
pub use reader::Reader;
pub use traits::answered::Answered;
pub use traits::archives::{Archive, ArchiveHead, ArchivePage, ArchivePlace, Archives};
pub use traits::backend::Backend;
pub use traits::checkpoints::{
    Checkpoint, CheckpointDeleted, CheckpointHead, CheckpointSaved, Checkpoints,
};
pub use traits::erasure::{Erased, ErasedLife, Erasure};
pub use traits::images::{Images, Imported};
pub use traits::kv::{
    Entry, EntryHead, EntryPage, EntryRange, EntryTerms, IdleEnd, KeyOrder, NOTED, NamespaceChange,
    NamespacePage, NamespacePlace, NamespaceRecord, Namespaces, NewEntry, Put, Reading, Usage,
};
pub use traits::leases::{Heard, Leases};
pub use traits::ledgers::{
    Holding, Ledger, LedgerChange, LedgerSignals, Ledgers, MOST_PARKED, PendingEvents,
    note_given_up,
};
pub use traits::links::Links;
pub use traits::listings::{Listing, Listings};
pub use traits::log::{EventLog, Heads, Watched};
pub use traits::owners::{
    GLANCE_MAX_BYTES, HistoryGlance, MOVES_AFTER_MS, OwnedPlace, OwnerUsage, Owners, PlaceToken,
    ThreadOrder, ThreadPage,
};
pub use traits::rates::{Counted, Rates};
pub use traits::registry::Registry;
pub use traits::responses::{
    BeginResponse, Begun, EndResponse, EndWrite, Floor, Journal, JournalEntry, Journaled,
    OPEN_RESPONSE_MAX, ResponseView, Responses, Told, response_ttl,
};
pub use traits::scopes::{
    HistoryFrom, HistoryPage, ItemPlace, Originals, ScopeEnd, ScopeParts, ScopeView, Scopes,
};
pub use traits::turns::Turns;
pub use traits::upkeep::{Due, Reaped, Upkeep};

/// The result of a read, with its version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found<T> {
    /// Version and life when it was read.
    pub stamp: Stamp,
    /// The requested content.
    pub content: T,
}

impl<T> Found<T> {
    /// The same with a content that is made of this one.
    pub fn map<U>(self, made: impl FnOnce(T) -> U) -> Found<U> {
        Found {
            stamp: self.stamp,
            content: made(self.content),
        }
    }
}

/// A whole state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StateBody {
    /// Compact JSON text.
    Text(Bytes),
    /// The same, of which the store would keep the compressed form too: see [`Store::keep_compressed`].
    Compressible(Bytes),
    /// The text compressed by gzip ([RFC 1952](https://www.rfc-editor.org/rfc/rfc1952)).
    Gzip(Bytes),
}

/// A value, or the part of an array that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Compact JSON text.
    pub json: Bytes,
    /// Elements of the whole array, when a part was asked for and the value is an array.
    pub total: Option<u64>,
}

/// State and metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Whole {
    /// As compact JSON, its keys sorted by their bytes.
    pub state: Bytes,
    /// A JSON object; none was ever set: `{}`.
    pub metadata: Json,
}

/// The end of a thread, and on what conditions.
#[derive(Debug, Clone, Copy)]
pub struct Destroy {
    /// The conditions.
    pub conditions: Conditions,
    /// How long the id refuses writes afterwards.
    pub tombstone: Duration,
}

/// The answer of destroying a thread, or of its first run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Destroyed {
    /// Whether there was a thread.
    pub existed: bool,
    /// Whether this is the answer to an earlier call with the same idempotency key.
    pub replayed: bool,
}

/// The move of a thread to another id, and on what conditions.
#[derive(Debug, Clone, Copy)]
pub struct Rotate {
    /// The conditions.
    pub conditions: Conditions,
    /// How long the old id refuses writes afterwards.
    pub tombstone: Duration,
}

/// The answer of moving a thread, or of its first run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rotated {
    /// The new id.
    pub id: ThreadId,
    /// The thread, whose version, life and times stay; none if there is no thread: then there is a new id, and nothing
    /// else.
    pub thread: Option<Thread>,
    /// Whether this is the answer to an earlier call with the same idempotency key.
    pub replayed: bool,
}

/// A store of threads.
///
/// Reading or writing a living thread moves its end to now + TTL in the same step, unless the [`Reader`] does not touch
/// it. A thread whose end has passed reads as never written, at the very millisecond. Expiry follows the store's own clock.
#[async_trait]
pub trait Store: fmt::Debug + Send + Sync {
    /// The whole state as compact JSON, with keys in the order of their bytes; none if the thread does not exist.
    ///
    /// # Errors
    /// [`StoreError`]; a state that cannot be loaded is never reported as empty.
    async fn get_state(
        &self,
        id: &ThreadId,
        reader: Reader,
    ) -> Result<Option<Found<Bytes>>, WriteError>;

    /// The whole state as [`Store::get_state`] has it, or compressed if the store has it so.
    ///
    /// # Errors
    /// As [`Store::get_state`].
    async fn get_state_body(
        &self,
        id: &ThreadId,
        reader: Reader,
    ) -> Result<Option<Found<StateBody>>, WriteError> {
        let found = self.get_state(id, reader).await?;
        Ok(found.map(|found| found.map(StateBody::Text)))
    }

    /// Keeps the compressed form of a text that was [`Compressible`](StateBody::Compressible), as long as the text itself.
    fn keep_compressed(&self, _id: &ThreadId, _text: &Bytes, _gzip: Bytes) {}

    /// State and metadata at one version. None: no such thread.
    ///
    /// # Errors
    /// As [`Store::get_state`].
    async fn get_whole(
        &self,
        id: &ThreadId,
        reader: Reader,
    ) -> Result<Option<Found<Whole>>, WriteError>;

    /// The values of some keys at one version, each as compact JSON.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn get_values(
        &self,
        id: &ThreadId,
        reader: Reader,
        keys: &[Key],
    ) -> Result<Option<Found<Vec<Option<Bytes>>>>, WriteError>;

    /// One value, or a part of it if it is an array.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn get_value(
        &self,
        id: &ThreadId,
        reader: Reader,
        key: &Key,
        slice: Option<Slice>,
    ) -> Result<Option<Found<Option<Part>>>, WriteError>;

    /// Version and life alone, for callers that may have the content.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn get_stamp(&self, id: &ThreadId, reader: Reader) -> Result<Option<Stamp>, WriteError>;

    /// Whether there is a value under a key, for callers that may have it.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn find_key(
        &self,
        id: &ThreadId,
        reader: Reader,
        key: &Key,
    ) -> Result<Option<Found<bool>>, WriteError>;

    /// The keys, sorted by their bytes.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn get_keys(
        &self,
        id: &ThreadId,
        reader: Reader,
    ) -> Result<Option<Found<Vec<Key>>>, WriteError>;

    /// All but the state.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn get_thread(&self, id: &ThreadId, reader: Reader)
    -> Result<Option<Thread>, WriteError>;

    /// Does a write whole or not at all, and makes the thread if it does not exist. An accepted
    /// write is in the store when this returns.
    ///
    /// # Errors
    /// [`WriteError::Refused`]: nothing has changed. [`WriteError::Store`]: see
    /// [`StoreError::is_ambiguous`].
    async fn write(&self, id: &ThreadId, write: &Write<'_>) -> Result<Written, WriteError>;

    /// Ends a thread and leaves a tombstone, in one step. A thread that does not exist stays so.
    ///
    /// # Errors
    /// As [`Store::write`].
    async fn destroy(&self, id: &ThreadId, destroy: &Destroy) -> Result<Destroyed, WriteError>;

    /// Moves a thread to a new random id, in one step, with all that is kept with it: state, scope, history,
    /// checkpoints, owner, turn and remembered answers. The archives of earlier lives stay with the old id, which
    /// becomes a tombstone: it refuses writes of every kind. Logged as rotated.
    ///
    /// A repeat with the same idempotency key gets the first answer, whichever of the two ids it names.
    ///
    /// # Errors
    /// As [`Store::write`].
    async fn rotate(&self, id: &ThreadId, rotate: &Rotate) -> Result<Rotated, WriteError>;

    /// Whether the store takes writes at this moment. A store that cannot tell without one does a
    /// small one of its own; a store of several servers does when any of them takes it.
    ///
    /// # Errors
    /// [`StoreError`] when it does not answer, or a write would fail: it is full, it is a replica, or
    /// its user may only read.
    async fn ping(&self) -> Result<(), StoreError>;

    /// How its connections are doing, if it has any.
    fn links(&self) -> Option<Links> {
        None
    }

    /// How many stored records were skipped, as they cannot be read.
    fn unreadable(&self) -> u64 {
        0
    }

    /// How its cache of reads is used, if it has one.
    fn cache_use(&self) -> Option<CacheUse> {
        None
    }

    /// How much memory it takes, if that is of this process.
    fn memory_use(&self) -> Option<MemoryUse> {
        None
    }
}
