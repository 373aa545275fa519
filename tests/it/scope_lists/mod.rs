//! Random operation lists for one scope, a player that runs them, and a reference model.
//!
//! Lists refer to stamps (a version and an incarnation of a scope) by index, because stamps differ between stores.

mod player;
mod reference;
mod strategy;

use std::time::Duration;

use threadkeep_domain::scope::ScopePolicy;

pub(crate) use player::Player;
pub(crate) use strategy::list;

#[derive(Debug, Clone)]
pub(crate) struct List {
    pub(crate) kind: Kind,
    pub(crate) policy: ScopePolicy,
    pub(crate) thread_ttl: Duration,
    pub(crate) tombstone: Duration,
    /// True if the player reads the whole scope after each step. These reads extend lifetimes.
    pub(crate) reads_everything: bool,
    pub(crate) steps: Vec<Step>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Thread,
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
    End(Option<PreconditionStep>),
    /// Repeats an earlier step. Its index is this number modulo the number of earlier steps.
    Again(usize),
    Advance(Duration),
    Thread(ThreadStep),
}

/// A change of the thread that the scope belongs to. Lists for scopes without a thread ignore the step.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ThreadStep {
    Write,
    Destroy,
    Restore,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct WriteStep {
    pub(crate) makes: bool,
    pub(crate) operations: Vec<Op>,
    pub(crate) tasks: Option<(usize, Option<PreconditionStep>)>,
    pub(crate) record: Option<(&'static str, Option<Expects>)>,
    pub(crate) removes: Option<Removes>,
    pub(crate) items: Vec<(&'static str, String)>,
    pub(crate) seals: bool,
    pub(crate) ttl: Option<Duration>,
    pub(crate) precondition: Option<PreconditionStep>,
    /// Number of the idempotency key that this step sends.
    pub(crate) idempotency: Option<u8>,
}

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
    Many(usize),
    Fill(usize),
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum PreconditionStep {
    Exists,
    Version(u64),
    /// A recorded stamp. The index counts back from the newest recorded stamp, and wraps around after the oldest.
    Seen(usize),
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Expects {
    LastSeen,
    Text(&'static str),
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Bound {
    After(u64),
    Before(u64),
}
