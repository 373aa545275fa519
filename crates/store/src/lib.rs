//! Traits that every store of threads implements. Each method documents its atomicity. The conformance suite in
//! `tests/` checks all stores against this documentation.

#![warn(missing_docs)]

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
pub use traits::archives::{Archive, ArchiveHead, ArchivePage, ArchivePosition, Archives};
pub use traits::backend::Backend;
pub use traits::checkpoints::{
    Checkpoint, CheckpointDeleted, CheckpointHead, CheckpointSaved, Checkpoints,
};
pub use traits::effects::EffectLedger;
pub use traits::erasure::{Erased, ErasedLife, Erasure};
pub use traits::images::{Images, Imported};
pub use traits::kv::{
    Entry, EntryHead, EntryPage, EntryRange, EntryTerms, IdleEnd, KeyOrder, NamespaceChange,
    NamespacePage, NamespacePosition, NamespaceRecord, Namespaces, NewEntry, Put, Reading,
    USE_RECORDED_EVERY, Usage,
};
pub use traits::leases::{Announcements, Leases};
pub use traits::ledgers::{
    Holding, Ledger, LedgerChange, LedgerSignals, Ledgers, PARKED_MAX, PendingEvents,
    log_dropped_events,
};
pub use traits::links::Links;
pub use traits::listings::{Listing, Listings};
pub use traits::log::{EventLog, Heads, Watched};
pub use traits::owners::{
    HistoryPreview, MOVES_AFTER_MS, OwnedPosition, OwnerUsage, Owners, PREVIEW_BYTES_MAX,
    ReservationToken, ThreadOrder, ThreadPage,
};
pub use traits::rates::{Counted, Rates};
pub use traits::registry::Registry;
pub use traits::responses::{
    BeginResponse, Begun, EndResponse, EndWrite, Floor, Journal, JournalEntry, Journaled,
    OPEN_RESPONSE_MAX, ResponseEvents, ResponseView, Responses, response_ttl,
};
pub use traits::scopes::{
    HistoryFrom, HistoryPage, ItemPosition, Originals, ScopeEnd, ScopeParts, ScopeView, Scopes,
};
pub use traits::turns::Turns;
pub use traits::upkeep::{Due, Reaped, Upkeep};

/// The result of a read, with its version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found<T> {
    /// The version and life that were read.
    pub stamp: Stamp,
    /// The requested content.
    pub content: T,
}

impl<T> Found<T> {
    /// Replaces the content with `convert(content)`.
    pub fn map<U>(self, convert: impl FnOnce(T) -> U) -> Found<U> {
        Found {
            stamp: self.stamp,
            content: convert(self.content),
        }
    }
}

/// A whole state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StateBody {
    /// Compact JSON text.
    Text(Bytes),
    /// Compact JSON text. The caller may pass its compressed form to [`Store::keep_compressed`].
    Compressible(Bytes),
    /// The compact JSON text, compressed by gzip ([RFC 1952](https://www.rfc-editor.org/rfc/rfc1952)).
    Gzip(Bytes),
}

/// A value, or a slice of an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Compact JSON text.
    pub json: Bytes,
    /// Length of the whole array, if a slice of an array was requested.
    pub total: Option<u64>,
}

/// State and metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Whole {
    /// Compact JSON with its keys in bytewise order.
    pub state: Bytes,
    /// A JSON object; `{}` if never set.
    pub metadata: Json,
}

/// Parameters for ending a thread.
#[derive(Debug, Clone, Copy)]
pub struct Destroy {
    /// The conditions.
    pub conditions: Conditions,
    /// Time for which the id rejects writes after the thread has ended.
    pub tombstone: Duration,
}

/// The result of ending a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Destroyed {
    /// True if the thread existed.
    pub existed: bool,
    /// True if an earlier answer with the same idempotency key was replayed.
    pub replayed: bool,
}

/// Parameters for moving a thread to a new id.
#[derive(Debug, Clone, Copy)]
pub struct Rotate {
    /// The conditions.
    pub conditions: Conditions,
    /// Time for which the old id rejects writes after the move.
    pub tombstone: Duration,
}

/// The result of moving a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rotated {
    /// The new id.
    pub id: ThreadId,
    /// The moved thread, with its version, life and times unchanged. `None` if the thread did not exist; in that case,
    /// only a new id was generated.
    pub thread: Option<Thread>,
    /// True if an earlier answer with the same idempotency key was replayed.
    pub replayed: bool,
}

/// A store of threads.
///
/// A read or write of a living thread atomically sets its expiry to now + TTL, unless [`Reader::touch`] is false. Once
/// a thread has expired by the store's clock, it appears as if it had never been written.
#[async_trait]
pub trait Store: fmt::Debug + Send + Sync {
    /// Returns the whole state as compact JSON with its keys in bytewise order, or `None` if the thread does not exist.
    /// Returns an error if the state cannot be loaded, never an empty state.
    async fn get_state(
        &self,
        id: &ThreadId,
        reader: Reader,
    ) -> Result<Option<Found<Bytes>>, WriteError>;

    /// Like [`Store::get_state`], but may return the state compressed.
    async fn get_state_body(
        &self,
        id: &ThreadId,
        reader: Reader,
    ) -> Result<Option<Found<StateBody>>, WriteError> {
        let found = self.get_state(id, reader).await?;
        Ok(found.map(|found| found.map(StateBody::Text)))
    }

    /// Caches the gzip form of a [`Compressible`](StateBody::Compressible) text for as long as the text is cached.
    fn keep_compressed(&self, _id: &ThreadId, _text: &Bytes, _gzip: Bytes) {}

    /// Returns state and metadata of the same version, or `None` if the thread does not exist.
    async fn get_content(
        &self,
        id: &ThreadId,
        reader: Reader,
    ) -> Result<Option<Found<Whole>>, WriteError>;

    /// Returns the values of `keys`, all from the same version, each as compact JSON.
    async fn get_values(
        &self,
        id: &ThreadId,
        reader: Reader,
        keys: &[Key],
    ) -> Result<Option<Found<Vec<Option<Bytes>>>>, WriteError>;

    /// Returns one value, or the requested slice if the value is an array.
    async fn get_value(
        &self,
        id: &ThreadId,
        reader: Reader,
        key: &Key,
        slice: Option<Slice>,
    ) -> Result<Option<Found<Option<Part>>>, WriteError>;

    /// Returns only the version and the life, for callers that may already have the content.
    async fn get_stamp(&self, id: &ThreadId, reader: Reader) -> Result<Option<Stamp>, WriteError>;

    /// Returns whether `key` has a value, for callers that may already have the value.
    async fn find_key(
        &self,
        id: &ThreadId,
        reader: Reader,
        key: &Key,
    ) -> Result<Option<Found<bool>>, WriteError>;

    /// Returns the keys in bytewise order.
    async fn get_keys(
        &self,
        id: &ThreadId,
        reader: Reader,
    ) -> Result<Option<Found<Vec<Key>>>, WriteError>;

    /// Returns everything except the state.
    async fn get_thread(&self, id: &ThreadId, reader: Reader)
    -> Result<Option<Thread>, WriteError>;

    /// Applies a write atomically, and creates the thread if it does not exist. If the write is accepted, returns only
    /// after it has been stored. A refused write changes nothing. After a store error, the write may have taken effect:
    /// see [`StoreError::is_ambiguous`].
    async fn write(&self, id: &ThreadId, write: &Write<'_>) -> Result<Written, WriteError>;

    /// Ends a thread and blocks its id with a tombstone, atomically. Has no effect if the thread does not exist.
    async fn destroy(&self, id: &ThreadId, destroy: &Destroy) -> Result<Destroyed, WriteError>;

    /// Moves a thread to a new random id, atomically, with its state, scope, history, checkpoints, owner, turn and
    /// remembered answers. The old id keeps the archives of earlier lives and becomes a tombstone that rejects every
    /// write. Logs a `thread.rotated` event.
    ///
    /// A repeated request with the same idempotency key gets the first answer, with either the old or the new id.
    async fn rotate(&self, id: &ThreadId, rotate: &Rotate) -> Result<Rotated, WriteError>;

    /// Checks that the store answers and accepts writes. Fails if the store is full, read-only or a replica. If there
    /// is no other way to find out, makes a small test write. A store with several servers is ready as soon as any
    /// server accepts the write.
    async fn ping(&self) -> Result<(), StoreError>;

    /// Returns the state of the store's connections, or `None` if the store has no connections.
    fn links(&self) -> Option<Links> {
        None
    }

    /// Returns the number of stored records that were skipped because they cannot be parsed.
    fn unreadable(&self) -> u64 {
        0
    }

    /// Returns statistics of the read cache, if the store has one.
    fn cache_use(&self) -> Option<CacheUse> {
        None
    }

    /// Returns the memory that the store occupies in this process, if any.
    fn memory_use(&self) -> Option<MemoryUse> {
        None
    }
}
