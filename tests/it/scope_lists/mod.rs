//! Random lists of all that can be done to one scope, a player that does them, and a reference that
//! answers as the domain says.
//!
//! A list says nothing of lives and times, which differ from store to store: it names stamps by
//! their place, and the player tells them so.

mod player;
mod reference;
mod strategy;

use std::time::Duration;

use threadkeep::domain::scope::ScopePolicy;

pub(crate) use player::Player;
pub(crate) use strategy::list;

/// What is done to one scope, in order.
#[derive(Debug, Clone)]
pub(crate) struct List {
    pub(crate) kind: Kind,
    pub(crate) policy: ScopePolicy,
    /// How long a thread lives after its last use, and how long it refuses to come back.
    pub(crate) thread_ttl: Duration,
    pub(crate) tombstone: Duration,
    /// Whether all is read after each step, which is a use.
    pub(crate) looks: bool,
    pub(crate) steps: Vec<Step>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Thread,
    /// Of that policy's lifetime.
    Other,
}

#[derive(Debug, Clone)]
pub(crate) enum Step {
    Write(WriteStep),
    Read {
        values: Vec<&'static str>,
        all: bool,
    },
    Page(Bound, usize),
    End(Option<Wanted>),
    /// Does an earlier step again, counted from the start modulo what there is.
    Again(usize),
    Advance(Duration),
    Thread(ThreadStep),
}

/// What is done to the thread of the scope; to other scopes it is nothing.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ThreadStep {
    Write,
    Destroy,
    /// Brings back the last life that ended.
    Restore,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct WriteStep {
    pub(crate) makes: bool,
    pub(crate) operations: Vec<Op>,
    pub(crate) tasks: Option<(usize, Option<Wanted>)>,
    pub(crate) record: Option<(&'static str, Option<Expects>)>,
    pub(crate) clears_history: bool,
    /// Ids and values.
    pub(crate) items: Vec<(&'static str, String)>,
    pub(crate) seals: bool,
    pub(crate) ttl: Option<Duration>,
    pub(crate) precondition: Option<Wanted>,
    /// A key by number; the request is told by the step itself.
    pub(crate) idempotency: Option<u8>,
}

#[derive(Debug, Clone)]
pub(crate) enum Op {
    Set {
        key: &'static str,
        value: String,
        ttl: Option<Duration>,
        if_absent: bool,
    },
    Delete(&'static str),
    Increment(&'static str, i64),
    Clear,
    /// Sets so many keys to nothing.
    Many(usize),
    /// Sets four keys to all the bytes that there may be, but so many.
    Fill(usize),
}

/// A stamp, of the scope or of its tasks.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wanted {
    Exists,
    Version(u64),
    /// One that was seen, counted from the newest modulo what there is.
    Seen(usize),
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Expects {
    /// What was last seen.
    AsItWas,
    Text(&'static str),
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Bound {
    After(u64),
    Before(u64),
}
