//! The steps of a response, and their outcomes.

use std::time::Duration;

use bytes::Bytes;

use super::ResponseId;
use crate::scope::ScopeId;
use crate::{Access, Fingerprint, TurnToken};

/// The beginning of a response, or its continuation by another driver.
#[derive(Debug, Clone, Copy)]
pub struct BeginResponse<'a> {
    /// The scope that it works in.
    pub scope: &'a ScopeId,
    /// The threads that the caller may use.
    pub access: Access,
    /// The token of the driver.
    pub token: TurnToken,
    /// The lease of the driver.
    pub lease: Duration,
    /// How long the response is kept after its last write while it has not ended: at most a day. Later events than the
    /// first ones do not count as writes.
    pub kept: Duration,
    /// How long after its last write it is due, unless it has ended: a sweep then takes it over or closes it.
    pub due: Duration,
    /// The response's claim to the floor of its scope.
    pub floor: Floor,
    /// The data that another driver needs to continue, at most 8 MiB. Without it, no response begins: see
    /// [`Begun::Free`].
    pub request: Option<&'a Bytes>,
    /// The digest of all that makes a repeat the same request.
    pub fingerprint: Fingerprint,
}

/// Whether a response has the floor of its scope. No other response gets the floor until that one has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Floor {
    /// The response works without the floor.
    None,
    /// The response takes the floor. That of a thread is its turn, which clients take too. A scope without a thread
    /// has to exist.
    Taken,
    /// The caller holds the turn of the thread, with that token.
    Lent(TurnToken),
}

/// The outcome of an attempt to begin a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Begun {
    /// The response has begun.
    New,
    /// The response may begin: repeat the call with the request. A request can be large, so a driver that may have to
    /// wait asks without it.
    Free,
    /// The response had begun before, and this driver continues it.
    Resumed(Journal),
    /// Another driver has it.
    Running {
        /// The time until its lease ends, unless it is renewed.
        left: Duration,
    },
    /// The response has ended, with that answer.
    Ended(Bytes),
    /// Another response or a client holds the turn of the thread, or another response has the floor of the scope.
    Locked {
        /// The response that works under the turn or has the floor; none if a client alone holds the turn.
        by: Option<ResponseId>,
        /// The time until the turn ends, unless it is renewed.
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

/// An entry of the journal.
#[derive(Debug, Clone, Copy)]
pub struct JournalEntry<'a> {
    /// The token of the driver.
    pub token: TurnToken,
    /// The number of the entry, from 1 on.
    pub number: u64,
    /// The text.
    pub entry: &'a Bytes,
    /// Events that come with it, of which the first has that number. Events that the store has already are skipped.
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
    /// How long the answer is kept; in the scope of a thread no longer than the archive of the thread or two days,
    /// whichever is longer, so that an erasure of the owner finds it. A repeat of the end gets the answer for the same
    /// time.
    pub kept: Duration,
    /// How long the events are kept, if the answer is.
    pub events_kept: Duration,
}

/// A response as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResponseView {
    /// The scope that it works in.
    pub scope: ScopeId,
    /// Its course so far.
    pub journal: Journal,
    /// The time until its driver's lease ends; none if the driver is gone or the response has ended.
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
    /// Whether the response has ended. If it has and `events` is empty, there are no further events.
    pub has_ended: bool,
}
