use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::{Answered, StoreError, WriteError};
pub use threadkeep_domain::response::held::{OPEN_RESPONSE_MAX, response_ttl};
pub use threadkeep_domain::response::steps::{
    BeginResponse, Begun, EndResponse, Floor, Journal, JournalEntry, ResponseEvents, ResponseView,
};
use threadkeep_domain::scope::{ScopeId, ScopeWrite, ScopeWritten};
use threadkeep_domain::{ResponseId, ThreadId, TurnToken, Write};

/// The outcome of an attempt to write a journal entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Journaled {
    /// The entry was stored, and so was the write to the scope, if any.
    New(Option<ScopeWritten>),
    /// An earlier attempt has already stored this entry and its write.
    Known(Bytes),
}

/// A write in the step that ends a response.
#[derive(Debug, Clone, Copy)]
pub enum EndWrite<'a> {
    /// A write to the scope.
    Scope(&'a ScopeWrite<'a>),
    /// A write to the state of the thread, with items for its history.
    Thread(&'a Write<'a>),
}

impl EndWrite<'_> {
    /// Returns whether the write only frees memory.
    pub fn only_deletes(&self) -> bool {
        match self {
            Self::Scope(write) => write.only_deletes(),
            Self::Thread(write) => write.only_deletes(),
        }
    }
}

/// Stores responses. A response is a model's work on a request. It survives the process that drives it.
///
/// One driver at a time owns a response. Every write carries the token of its driver. A write is refused with
/// [`TurnLost`](threadkeep_domain::Refusal::TurnLost) if a different driver has taken over, or if the response has
/// ended or expired. The check and the write are atomic, and a refused write changes nothing.
///
/// A response in the scope of a thread belongs to one life of the thread. If the thread does not exist or is in a
/// different life, the response cannot store further entries or end with a write: both are refused with
/// [`Destroyed`](threadkeep_domain::Refusal::Destroyed). If the turn (the lease on the thread) was granted to a
/// different caller, entries and ends are refused with `TurnLost`, except an end without a token. A thread that moves
/// to a new id keeps its turn. Its responses can be ended in the scope of the new id, but no longer driven. Ended
/// responses outlive the thread unless its owner is erased.
///
/// Writes that are steps of a response need no idempotency key. If one is given, it is ignored.
#[async_trait]
pub trait Responses: fmt::Debug + Send + Sync {
    /// Returns the bucket of a scope. The ids of all responses in the scope contain the bucket.
    fn bucket_of_scope(&self, scope: &ScopeId) -> u8;

    /// Begins a response, or resumes a response whose driver has stopped or has the same token. The same step reserves
    /// the floor (the scope's lock) if [`BeginResponse::floor`] requests it.
    ///
    /// Refused with:
    /// - [`NoThread`](threadkeep_domain::Refusal::NoThread) if the thread must be created first
    /// - [`ScopeNotFound`](threadkeep_domain::Refusal::ScopeNotFound) if the scope of the floor does not exist
    /// - `TurnLost` if the caller has lost the turn that it lends to the response
    /// - [`IdempotencyKeyReused`](threadkeep_domain::Refusal::IdempotencyKeyReused) if the response belongs to a
    ///   different request
    async fn begin_response(
        &self,
        id: &ResponseId,
        begin: &BeginResponse<'_>,
    ) -> Result<Begun, WriteError>;

    /// Extends the lease of the driver, the turn, and the lifetime of the thread. If `lease` is zero, ends the lease
    /// and the turn immediately. A driver can do this even after it has lost the floor (the scope's lock).
    async fn keep_response(
        &self,
        id: &ResponseId,
        scope: &ScopeId,
        token: TurnToken,
        lease: Duration,
    ) -> Result<(), WriteError>;

    /// Appends a journal entry with its events, and applies `write` to the scope in the same step. Refused with
    /// [`Changed`](threadkeep_domain::Refusal::Changed) if an earlier entry or event is missing.
    async fn journal(
        &self,
        id: &ResponseId,
        scope: &ScopeId,
        entry: &JournalEntry<'_>,
        write: Option<&ScopeWrite<'_>>,
    ) -> Result<Journaled, WriteError>;

    /// Appends events. `first` is the zero-based index of the first event. Skips events that are already stored.
    /// Refused with [`Changed`](threadkeep_domain::Refusal::Changed) if an earlier event is missing.
    async fn append_events(
        &self,
        id: &ResponseId,
        token: TurnToken,
        first: u64,
        events: &[Bytes],
    ) -> Result<(), WriteError>;

    /// Returns up to `limit` events, starting at the index `from`, or `None` if the response does not exist or its
    /// events have expired.
    async fn read_events(
        &self,
        id: &ResponseId,
        from: u64,
        limit: usize,
    ) -> Result<Option<ResponseEvents>, StoreError>;

    /// Ends a response, applies `write` and releases the turn of the thread, atomically. If the response has already
    /// ended, replays the earlier answer. Refused with [`Changed`](threadkeep_domain::Refusal::Changed) if the entries
    /// or events of the response differ from those that `end` expects. A thread write in a scope without a thread is
    /// refused with [`ThreadNotFound`](threadkeep_domain::Refusal::ThreadNotFound).
    async fn end_response(
        &self,
        id: &ResponseId,
        scope: &ScopeId,
        end: &EndResponse<'_>,
        write: Option<EndWrite<'_>>,
    ) -> Result<Answered<Bytes>, WriteError>;

    /// Returns a response.
    async fn get_response(&self, id: &ResponseId) -> Result<Option<ResponseView>, StoreError>;

    /// Returns the most recent response that ran while holding the turn (the lease on the thread).
    async fn last_response(&self, thread: &ThreadId) -> Result<Option<ResponseId>, StoreError>;

    /// Records that the caller has received the answer.
    async fn note_delivered(&self, id: &ResponseId) -> Result<(), StoreError>;

    /// Returns up to `limit` responses per bucket that are [due](BeginResponse::due).
    async fn due_responses(
        &self,
        buckets: &[u16],
        limit: usize,
    ) -> Result<Vec<ResponseId>, StoreError>;

    /// Deletes an ended response. Returns whether it existed.
    async fn delete_response(&self, id: &ResponseId) -> Result<bool, StoreError>;
}
