//! Responses: what a model does for a request, which survives the process that drives them.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::{Answered, StoreError, WriteError};
use threadkeep_domain::scope::{ScopeId, ScopeWrite, ScopeWritten};
use threadkeep_domain::{Access, Fingerprint, ResponseId, ThreadId, TurnToken, Write};

/// The beginning of a response, or its continuation by another driver.
#[derive(Debug, Clone, Copy)]
pub struct BeginResponse<'a> {
    /// The scope that it works in.
    pub scope: &'a ScopeId,
    /// The threads that the caller may use.
    pub access: Access,
    /// The token of the driver.
    pub token: TurnToken,
    /// How long the driver has the response without a sign of life.
    pub lease: Duration,
    /// How long the response is kept after its last write, until it has ended: at most a day. Events behind the first ones do not
    /// count as writes.
    pub kept: Duration,
    /// How long after its last write it is due, unless it has ended: then others look after it.
    pub due: Duration,
    /// Whether it has the floor of its scope.
    pub floor: Floor,
    /// The data that another driver needs to go on, at most 8 MiB. Without it, no response begins: see [`Begun::Free`].
    pub request: Option<&'a Bytes>,
    /// The digest of all that makes a repeat the same request.
    pub fingerprint: Fingerprint,
}

/// Whether a response has the floor of its scope: then no other one has it until this has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Floor {
    /// It works without it.
    None,
    /// It takes it: that of a thread is the thread's turn, which clients can hold too. A scope without a thread has to exist.
    Taken,
    /// Its caller holds the turn of the thread, with that token.
    Lent(TurnToken),
}

/// The outcome of an attempt to begin a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Begun {
    /// It has begun.
    New,
    /// It may begin; repeat the call with the request. A request can be large, so a driver that may have to wait asks without it.
    Free,
    /// It had begun before, and this driver goes on.
    Resumed(Journal),
    /// Another driver has it.
    Running {
        /// How long, unless it gives a sign of life.
        left: Duration,
    },
    /// It has ended, with that answer.
    Ended(Bytes),
    /// Another response or a client holds the turn of the thread, or another response has the floor of the scope.
    Locked {
        /// The response that works under it; none if a client holds it by itself.
        by: Option<ResponseId>,
        /// How long, unless it is renewed.
        left: Duration,
    },
    /// An earlier response with the floor has not ended, and its driver is gone. It has to be ended first.
    Behind(ResponseId),
}

/// The course of a response so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Journal {
    /// The request.
    pub request: Bytes,
    /// The entries, the first one first.
    pub entries: Vec<Bytes>,
    /// The number of the next event.
    pub next_event: u64,
}

/// The outcome of an attempt to write an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Journaled {
    /// It is written, and so is the write to the scope, if there was one.
    New(Option<ScopeWritten>),
    /// An earlier attempt has written that entry, with its write.
    Known(Bytes),
}

/// An entry of the journal.
#[derive(Debug, Clone, Copy)]
pub struct JournalEntry<'a> {
    /// The token of the driver.
    pub token: TurnToken,
    /// Its number, from 1 on.
    pub number: u64,
    /// Its text.
    pub entry: &'a Bytes,
    /// Events that come with it, of which the first has that number. Those that are there already are skipped.
    pub events: (u64, &'a [Bytes]),
}

/// The end of a response.
#[derive(Debug, Clone, Copy)]
pub struct EndResponse<'a> {
    /// The token of the driver. Without one, any driver loses the response.
    pub token: Option<TurnToken>,
    /// The number of entries that the end is based on.
    pub entries: u64,
    /// The last events, of which the first has that number, which must be the next.
    pub events: (u64, &'a [Bytes]),
    /// The answer to all later questions, at most 8 MiB.
    pub answer: &'a Bytes,
    /// How long the answer is kept; in the scope of a thread no longer than the archive of the thread, or two days if that is
    /// more: so an erasure of the owner finds it. A repeat of the end gets the answer for as long.
    pub kept: Duration,
    /// How long the events are kept, if the answer is.
    pub events_kept: Duration,
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

/// A response as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResponseView {
    /// The scope that it works in.
    pub scope: ScopeId,
    /// Its course so far.
    pub journal: Journal,
    /// How long its driver has it; none if the driver is gone or the response has ended.
    pub driven: Option<Duration>,
    /// The answer, once it has ended.
    pub answer: Option<Bytes>,
    /// The digest of all that makes a repeat the same request.
    pub fingerprint: Fingerprint,
    /// Whether its answer has reached its caller.
    pub is_delivered: bool,
}

/// Events of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// Some events, without a gap.
    pub events: Vec<Bytes>,
    /// Whether the response has ended. If so and no event is left, there will be none.
    pub has_ended: bool,
}

/// How long a response is kept for that was to be kept for a time.
pub fn response_ttl(scope: &ScopeId, wanted: Duration, archive: Duration) -> Duration {
    match scope.thread() {
        Some(_) => wanted.min(archive.max(2 * DAY)),
        None => wanted,
    }
}

/// How long a response is kept at most between two writes.
pub const OPEN_RESPONSE_MAX: Duration = DAY;
const DAY: Duration = Duration::from_secs(86_400);

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
