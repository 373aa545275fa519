//! Random lists of all that can be done to a thread, and a player that does them.
//!
//! A list says nothing of lives and times, which differ from store to store: it names stamps by
//! their place, and the player tells them so.

mod history;
mod player;
mod strategy;

use std::time::Duration;

use threadkeep_domain::{Mismatch, Owner, Slice, ThreadPolicy};

pub(crate) use player::{Outcome, Player};
pub(crate) use strategy::list;

/// The steps of one thread, in order.
#[derive(Debug, Clone)]
pub(crate) struct List {
    pub(crate) policy: ThreadPolicy,
    pub(crate) steps: Vec<Step>,
}

#[derive(Debug, Clone)]
pub(crate) enum Step {
    Write(WriteStep),
    Destroy {
        precondition: Option<Wanted>,
        idempotency: Option<u8>,
        caller: Caller,
        turn: Option<u8>,
    },
    TakeTurn {
        turn: u8,
        exclusive: bool,
        ttl: Duration,
        idempotency: Option<u8>,
        caller: Caller,
    },
    RenewTurn {
        turn: u8,
        ttl: Duration,
        caller: Caller,
    },
    EndTurn {
        turn: u8,
        caller: Caller,
    },
    Checkpoint {
        what: CheckpointStep,
        precondition: Option<Wanted>,
        idempotency: Option<u8>,
    },
    /// Moves the thread to another id, if it exists.
    Rotate,
    /// Makes a copy of the thread under another id, looks at it, and leaves it.
    Copy(CopyStep, Caller),
    /// Does an earlier step again, counted from the start modulo what there is.
    Again(usize),
    Read(ReadStep, Caller),
    Advance(Duration),
    /// Has changes logged for a while.
    Watch,
    /// Ends what is due, as a reaper does.
    Reap,
    /// Brings back the last life that ended, or one that was seen.
    Restore(Option<usize>),
}

/// A version, and a life by the place at which it was first seen.
type Mark = (u64, usize);

#[derive(Debug, Clone)]
pub(crate) struct WriteStep {
    pub(crate) operations: Vec<Op>,
    pub(crate) guards: Vec<(&'static str, Expects)>,
    pub(crate) metadata: Option<(String, Option<Expects>)>,
    pub(crate) ttl: Option<Duration>,
    pub(crate) precondition: Option<Wanted>,
    pub(crate) tombstone: Heed,
    /// A key by number; the step itself is the request.
    pub(crate) idempotency: Option<u8>,
    pub(crate) describe: bool,
    pub(crate) caller: Caller,
    pub(crate) owner: Option<OwnerStep>,
    /// The turn of that number, whether or not it was granted.
    pub(crate) turn: Option<u8>,
}

/// The threads that a caller may use.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Caller {
    BackEnd,
    Unnamed,
    Owner(&'static str),
}

#[derive(Debug, Clone)]
pub(crate) enum OwnerStep {
    Bind(Owner),
    Set(Owner),
    Clear,
}

impl WriteStep {
    /// Operations without conditions.
    pub(crate) fn of(operations: Vec<Op>) -> Self {
        Self {
            operations,
            guards: Vec::new(),
            metadata: None,
            ttl: None,
            precondition: None,
            tombstone: Heed::Always,
            idempotency: None,
            describe: false,
            caller: Caller::BackEnd,
            owner: None,
            turn: None,
        }
    }
}

/// Checkpoints by their numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) enum CheckpointStep {
    Save,
    List,
    Get(u32),
    Restore(u32),
    Delete(u32),
}

#[derive(Debug, Clone)]
pub(crate) enum CopyStep {
    /// A fork: of the state, of keys and tasks, and of the history, as they are wanted.
    Fork {
        checkpoint: Option<u32>,
        parts: [bool; 3],
        metadata: Option<&'static str>,
        precondition: Option<Wanted>,
        turn: Option<u8>,
        /// Whether both have the same bucket.
        is_near: bool,
    },
    /// The import of an export.
    Import,
}

#[derive(Debug, Clone)]
pub(crate) enum Op {
    Set(&'static str, String),
    Delete(&'static str),
    Clear,
    Push(&'static str, String, Option<u64>, Mismatch),
    Pop(&'static str, u64),
    Increment(&'static str, i64),
    /// The id and the value of an item for the history.
    Append(&'static str, String),
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Expects {
    /// The state at the time of the step.
    AsItIs,
    /// This object.
    Object(&'static str),
    NotAnObject,
}

/// When a tombstone is heeded.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Heed {
    Always,
    Never,
    /// After the life of a stamp that was seen, counted as in [`Wanted::Seen`].
    After(usize),
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Wanted {
    Exists,
    Version(u64),
    /// The version that the last step left.
    VersionAsItIs,
    /// A stamp that was seen, counted from the newest modulo what there is.
    Seen(usize),
}

#[derive(Debug, Clone)]
pub(crate) enum ReadStep {
    Values(Vec<&'static str>),
    Value(&'static str, Option<Slice>),
    Keys,
    Thread,
    History,
}
