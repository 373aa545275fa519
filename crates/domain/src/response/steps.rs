//! Defines the steps of a response, and their outcomes.

use std::time::Duration;

use bytes::Bytes;

use super::ResponseId;
use crate::scope::ScopeId;
use crate::{Access, Fingerprint, TurnToken};

/// A request to begin a response, or to resume it with a different driver. A driver is the task that runs a response.
#[derive(Debug, Clone, Copy)]
pub struct BeginResponse<'a> {
    /// The scope of the response.
    pub scope: &'a ScopeId,
    /// The caller's access to threads.
    pub access: Access,
    /// The token of the driver.
    pub token: TurnToken,
    /// Duration of the driver's lease.
    pub lease: Duration,
    /// How long an open response is kept after its last write, at most a day. Of the appends of events, only the first
    /// counts as a write.
    pub kept: Duration,
    /// How long after the last write a sweep, a periodic task, takes over or closes an open response.
    pub due: Duration,
    /// How the response uses the floor, the lock of its scope.
    pub floor: Floor,
    /// The data that a different driver needs to continue, up to 8 MiB. If `None`, the response does not begin; see
    /// [`Begun::Free`].
    pub request: Option<&'a Bytes>,
    /// The digest that identifies repeats of the request.
    pub fingerprint: Fingerprint,
}

/// How a response uses the floor of its scope. The floor is a lock that at most one open response holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Floor {
    /// The response works without the floor.
    None,
    /// The response takes the floor itself. In a thread, the floor is the turn, which clients can also take. In another
    /// scope, the response can begin only if the scope exists.
    Taken,
    /// The caller holds the turn of the thread with this token, and lends the turn to the response.
    Lent(TurnToken),
}

/// The outcome of an attempt to begin a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Begun {
    /// The response has begun.
    New,
    /// The response may begin. The driver must repeat the call with `request`. Drivers omit the request at first,
    /// because it can be large.
    Free,
    /// The response had already begun, and this driver resumes it.
    Resumed(Journal),
    /// A different driver runs the response.
    Running {
        /// Time until the driver's lease ends, unless it is renewed.
        left: Duration,
    },
    /// The response has ended with this answer.
    Ended(Bytes),
    /// A client or a different response holds the turn of the thread, or a different response holds the floor of the
    /// scope.
    Locked {
        /// The response that holds the turn or the floor; `None` if a client holds the turn.
        by: Option<ResponseId>,
        /// Time until the turn or the lease of the response's driver ends, unless it is renewed.
        left: Duration,
    },
    /// An earlier response holds the floor, but its driver has stopped. The caller must end that response first.
    Behind(ResponseId),
}

/// The stored progress of a response.
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
    /// The number of the entry, starting at 1.
    pub number: u64,
    /// The content of the entry.
    pub entry: &'a Bytes,
    /// The events, preceded by the sequence number of the first event. The store skips events that are already stored.
    pub events: (u64, &'a [Bytes]),
}

/// A request to end a response.
#[derive(Debug, Clone, Copy)]
pub struct EndResponse<'a> {
    /// The token of the driver. `None` ends the response regardless of its driver.
    pub token: Option<TurnToken>,
    /// The number of journal entries that the caller knows. The response ends only if the journal has this many
    /// entries.
    pub entries: u64,
    /// The final events, preceded by the sequence number of the first one, which must follow the last stored event.
    pub events: (u64, &'a [Bytes]),
    /// The answer that all later requests for the response get, up to 8 MiB.
    pub answer: &'a Bytes,
    /// How long the answer is kept. In a thread's scope, at most two days or the archive's retention, whichever is
    /// longer, so that an erasure of the owner's data can find the answer.
    pub kept: Duration,
    /// How long the events are kept. Events are never kept for longer than the answer.
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
pub struct ResponseEvents {
    /// Consecutive events.
    pub events: Vec<Bytes>,
    /// Whether the response has ended. If so, an empty `events` list means that there are no later events.
    pub has_ended: bool,
}
