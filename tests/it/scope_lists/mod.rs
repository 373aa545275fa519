//! Random lists of all that can be done to one scope, a player that does them, and a reference that
//! answers as the domain says.
//!
//! A list says nothing of lives and times, which differ from store to store: it names stamps by
//! their place, and the player tells them so.

mod player;
mod reference;
mod strategy;

use std::time::Duration;

use threadkeep_domain::scope::ScopePolicy;

pub(crate) use player::Player;
pub(crate) use strategy::list;

/// The steps of one scope, in order.
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

/// The change of the scope's thread; other scopes ignore it.
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
    pub(crate) removes: Option<Removes>,
    /// Ids and values.
    pub(crate) items: Vec<(&'static str, String)>,
    pub(crate) seals: bool,
    pub(crate) ttl: Option<Duration>,
    pub(crate) precondition: Option<Wanted>,
    /// A key by number; the step itself is the request.
    pub(crate) idempotency: Option<u8>,
}

/// The items to remove from the history.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Removes {
    All,
    Item(&'static str),
    Newest(usize),
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
    /// Sets that many keys to nothing.
    Many(usize),
    /// Fills four keys up to that many bytes below the limit.
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
    /// The last seen version.
    AsItWas,
    Text(&'static str),
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Bound {
    After(u64),
    Before(u64),
}
