//! The steps of a response, and their outcomes.

use std::time::Duration;

use bytes::Bytes;

use super::ResponseId;
use crate::scope::ScopeId;
use crate::{Access, Fingerprint, TurnToken};

/// Begins a response, or lets another driver resume it.
#[derive(Debug, Clone, Copy)]
pub struct BeginResponse<'a> {
    /// The scope of the response.
    pub scope: &'a ScopeId,
    /// The caller's access to threads.
    pub access: Access,
    /// The token of the driver.
    pub token: TurnToken,
    /// The lease of the driver.
    pub lease: Duration,
    /// How long an open response is kept after its last write: at most a day. Of its events, only the first count as a
    /// write.
    pub kept: Duration,
    /// How long after the last write an open response is due: a sweep then takes it over or closes it.
    pub due: Duration,
    /// Whether the response reserves the floor of its scope.
    pub floor: Floor,
    /// The data that another driver needs to continue, up to 8 MiB. Without it, no response begins: see [`Begun::Free`].
    pub request: Option<&'a Bytes>,
    /// The digest that identifies repeats of the request.
    pub fingerprint: Fingerprint,
}

/// Whether a response has the floor of its scope. Only one open response at a time has the floor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Floor {
    /// The response works without the floor.
    None,
    /// The response takes the floor: in a thread, the turn, which clients take too. A scope without a thread must exist.
    Taken,
    /// The caller holds the turn of the thread with this token, and lends it.
    Lent(TurnToken),
}

/// The outcome of an attempt to begin a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Begun {
    /// The response has begun.
    New,
    /// The response may begin: repeat the call with the request, which drivers omit at first because it can be large.
    Free,
    /// The response had begun before, and this driver resumes it.
    Resumed(Journal),
    /// Another driver runs the response.
    Running {
        /// Time until the driver's lease ends, unless renewed.
        left: Duration,
    },
    /// The response has ended with this answer.
    Ended(Bytes),
    /// Another response or a client holds the turn of the thread, or another response has the floor of the scope.
    Locked {
        /// The response that holds the turn or the floor; `None` if a client holds the turn.
        by: Option<ResponseId>,
        /// Time until the turn ends, unless renewed.
        left: Duration,
    },
    /// An earlier response has the floor, and its driver has stopped. It must be ended first.
    Behind(ResponseId),
}

/// The recorded course of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Journal {
    /// The request.
    pub request: Bytes,
    /// The entries, oldest first.
    pub entries: Vec<Bytes>,
    /// The number of the next event.
    pub next_event: u64,
}

/// A journal entry to append.
#[derive(Debug, Clone, Copy)]
pub struct JournalEntry<'a> {
    /// The token of the driver.
    pub token: TurnToken,
    /// The number of the entry, from 1.
    pub number: u64,
    /// The text.
    pub entry: &'a Bytes,
    /// The number of the first event, and the events. The store skips events that it already has.
    pub events: (u64, &'a [Bytes]),
}

/// The end of a response.
#[derive(Debug, Clone, Copy)]
pub struct EndResponse<'a> {
    /// The token of the driver. `None` ends the response regardless of its driver.
    pub token: Option<TurnToken>,
    /// The number of entries that the end is based on.
    pub entries: u64,
    /// The number of the first event, which must be the next one, and the last events.
    pub events: (u64, &'a [Bytes]),
    /// The answer to all later requests, up to 8 MiB.
    pub answer: &'a Bytes,
    /// How long the answer is kept. In a thread's scope limited to the longer of two days and the archive, so that an
    /// erasure of the owner finds it.
    pub kept: Duration,
    /// How long the events are kept, at most as long as the answer.
    pub events_kept: Duration,
}

/// The state of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResponseView {
    /// The scope of the response.
    pub scope: ScopeId,
    /// The journal.
    pub journal: Journal,
    /// Time until the driver's lease ends; `None` if the driver has stopped or the response has ended.
    pub driven: Option<Duration>,
    /// The answer; `None` until the response has ended.
    pub answer: Option<Bytes>,
    /// The digest that identifies repeats of the request.
    pub fingerprint: Fingerprint,
    /// Whether the caller has received the answer.
    pub is_delivered: bool,
}

/// Events of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// Consecutive events.
    pub events: Vec<Bytes>,
    /// Whether the response has ended. If so, empty `events` means that there are no later ones.
    pub has_ended: bool,
}
