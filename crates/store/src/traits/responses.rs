//! Responses: the work of models on requests, which survives the process that drives it.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::{Answered, StoreError, WriteError};
pub use threadkeep_domain::response::held::{OPEN_RESPONSE_MAX, response_ttl};
pub use threadkeep_domain::response::steps::{
    BeginResponse, Begun, EndResponse, Floor, Journal, JournalEntry, ResponseView, Told,
};
use threadkeep_domain::scope::{ScopeId, ScopeWrite, ScopeWritten};
use threadkeep_domain::{ResponseId, ThreadId, TurnToken, Write};

/// The outcome of an attempt to write an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Journaled {
    /// It is written, and so is the write to the scope, if there was one.
    New(Option<ScopeWritten>),
    /// An earlier attempt has written that entry, with its write.
    Known(Bytes),
}

/// A write in the step that ends a response.
#[derive(Debug, Clone, Copy)]
pub enum EndWrite<'a> {
    /// Changes of its scope.
    Scope(&'a ScopeWrite<'a>),
    /// Changes of the state of its thread, and items for the history of that.
    Thread(&'a Write<'a>),
}

impl EndWrite<'_> {
    /// Whether it only makes room.
    pub fn only_deletes(&self) -> bool {
        match self {
            Self::Scope(write) => write.only_deletes(),
            Self::Thread(write) => write.only_deletes(),
        }
    }
}

/// Responses.
///
/// One driver at a time has a response. Its token is part of each write, and a write is refused with
/// [`TurnLost`](threadkeep_domain::Refusal::TurnLost) in its own atomic step once another driver has taken over, the response has ended or is no longer kept. A
/// write that is refused changes nothing.
///
/// A response in the scope of a thread belongs to the life of that thread: with another life, or none, its entries and its
/// end with a write are refused with [`Destroyed`](threadkeep_domain::Refusal::Destroyed). They are refused with
/// [`TurnLost`](threadkeep_domain::Refusal::TurnLost) too once the turn that it works under was granted to another caller; only
/// an end without a token asks for no turn. A thread that is rotated takes its turn along: its responses can be ended in the
/// scope of the new id, and are not driven further. Responses that have ended outlive the thread, unless an erasure of its
/// owner deletes them.
///
/// Writes that are steps of a response need no idempotency key; theirs is ignored.
#[async_trait]
pub trait Responses: fmt::Debug + Send + Sync {
    /// The bucket of a scope, which is part of the ids of its responses.
    fn bucket_of_scope(&self, scope: &ScopeId) -> u8;

    /// Begins a response, or goes on with one whose driver is gone. A repeat with the same token goes on. In the same step it takes the floor of its scope, if it
    /// is to have that.
    ///
    /// # Errors
    /// [`WriteError::Refused`]: [`NoThread`](threadkeep_domain::Refusal::NoThread) for a thread that must be created first, [`ScopeNotFound`](threadkeep_domain::Refusal::ScopeNotFound) if the floor is that of a scope that does not exist, [`Destroyed`](threadkeep_domain::Refusal::Destroyed), [`TurnLost`](threadkeep_domain::Refusal::TurnLost) if the lent turn is
    /// lost, [`IdempotencyKeyReused`](threadkeep_domain::Refusal::IdempotencyKeyReused) for another request, or the owner refuses the caller. [`WriteError::Store`].
    async fn begin_response(
        &self,
        id: &ResponseId,
        begin: &BeginResponse<'_>,
    ) -> Result<Begun, WriteError>;

    /// Gives a sign of life: driver, turn and thread last longer. No time lets the turn go at once, which a driver may do
    /// that has lost the floor alone.
    ///
    /// # Errors
    /// [`WriteError::Refused`], or [`WriteError::Store`].
    async fn keep_response(
        &self,
        id: &ResponseId,
        scope: &ScopeId,
        token: TurnToken,
        lease: Duration,
    ) -> Result<(), WriteError>;

    /// Writes an entry with its events, and does a write to the scope in the same step.
    ///
    /// # Errors
    /// [`WriteError::Refused`]: as the write; [`Changed`](threadkeep_domain::Refusal::Changed) if an entry or event before is missing. [`WriteError::Store`].
    async fn journal(
        &self,
        id: &ResponseId,
        scope: &ScopeId,
        entry: &JournalEntry<'_>,
        write: Option<&ScopeWrite<'_>>,
    ) -> Result<Journaled, WriteError>;

    /// Adds events, of which the first has that number, from 0 on. Those that are there already are skipped.
    ///
    /// # Errors
    /// [`WriteError::Refused`]: [`Changed`](threadkeep_domain::Refusal::Changed) if an event before is missing. [`WriteError::Store`].
    async fn tell(
        &self,
        id: &ResponseId,
        token: TurnToken,
        first: u64,
        events: &[Bytes],
    ) -> Result<(), WriteError>;

    /// Up to `limit` events from a number on. None: there is no such response, or its events are no longer kept.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn told(
        &self,
        id: &ResponseId,
        from: u64,
        limit: usize,
    ) -> Result<Option<Told>, StoreError>;

    /// Ends a response, does a write, and gives the turn of its thread back, in one step. A response that has ended already
    /// stays as it is: then the answer is the earlier one, as a replay.
    ///
    /// # Errors
    /// [`WriteError::Refused`]: as the write; [`Changed`](threadkeep_domain::Refusal::Changed) if there are other entries or events; [`ThreadNotFound`](threadkeep_domain::Refusal::ThreadNotFound) for a write to the thread of a scope that has none. [`WriteError::Store`].
    async fn end_response(
        &self,
        id: &ResponseId,
        scope: &ScopeId,
        end: &EndResponse<'_>,
        write: Option<EndWrite<'_>>,
    ) -> Result<Answered<Bytes>, WriteError>;

    /// Reads a response.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn get_response(&self, id: &ResponseId) -> Result<Option<ResponseView>, StoreError>;

    /// The response that worked under the turn of a thread last.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn last_response(&self, thread: &ThreadId) -> Result<Option<ResponseId>, StoreError>;

    /// Notes that the answer of a response has reached its caller.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn note_delivered(&self, id: &ResponseId) -> Result<(), StoreError>;

    /// Up to `limit` responses of each bucket that are due.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn due_responses(
        &self,
        buckets: &[u16],
        limit: usize,
    ) -> Result<Vec<ResponseId>, StoreError>;

    /// Deletes a response that has ended. Returns whether there was one.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn delete_response(&self, id: &ResponseId) -> Result<bool, StoreError>;
}
