//! Random operation lists for one thread, and a player that runs them.
//!
//! Lists refer to stamps (a version and an incarnation of a thread) by index, because stamps differ between stores.

mod history;
mod player;
mod strategy;

use std::time::Duration;

use threadkeep_domain::{Mismatch, Owner, Slice, ThreadPolicy};

pub(crate) use player::{Outcome, Player};
pub(crate) use strategy::list;

#[derive(Debug, Clone)]
pub(crate) struct List {
    pub(crate) policy: ThreadPolicy,
    pub(crate) steps: Vec<Step>,
}

#[derive(Debug, Clone)]
pub(crate) enum Step {
    Write(WriteStep),
    Destroy {
        precondition: Option<PreconditionStep>,
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
        action: CheckpointStep,
        precondition: Option<PreconditionStep>,
        idempotency: Option<u8>,
    },
    Rotate,
    Copy(CopyStep, Caller),
    /// Repeats an earlier step. Its index is this number modulo the number of earlier steps.
    Again(usize),
    Read(ReadStep, Caller),
    Advance(Duration),
    Watch,
    Reap,
    /// Restores the last ended life if `None`, or else the life in the stamp that [`PreconditionStep::Seen`] selects.
    Restore(Option<usize>),
}

/// A version, and the index of its life (incarnation of the thread). The player numbers lives as they first appear.
type LocalStamp = (u64, usize);

#[derive(Debug, Clone)]
pub(crate) struct WriteStep {
    pub(crate) operations: Vec<Op>,
    pub(crate) guards: Vec<(&'static str, Expects)>,
    pub(crate) metadata: Option<(String, Option<Expects>)>,
    pub(crate) ttl: Option<Duration>,
    pub(crate) precondition: Option<PreconditionStep>,
    pub(crate) tombstone: TombstoneCheck,
    /// Number of the idempotency key that this step sends.
    pub(crate) idempotency: Option<u8>,
    pub(crate) describe: bool,
    pub(crate) caller: Caller,
    pub(crate) owner: Option<OwnerStep>,
    /// Number of a turn, which may not have been granted.
    pub(crate) turn: Option<u8>,
}

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
    pub(crate) fn of(operations: Vec<Op>) -> Self {
        Self {
            operations,
            guards: Vec::new(),
            metadata: None,
            ttl: None,
            precondition: None,
            tombstone: TombstoneCheck::Always,
            idempotency: None,
            describe: false,
            caller: Caller::BackEnd,
            owner: None,
            turn: None,
        }
    }
}

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
    Fork {
        checkpoint: Option<u32>,
        parts: [bool; 3],
        metadata: Option<&'static str>,
        precondition: Option<PreconditionStep>,
        turn: Option<u8>,
        /// True if the copy is in the same bucket (the keys of one hash tag) as the source.
        is_near: bool,
    },
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
    Append(&'static str, String),
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Expects {
    Current,
    Object(&'static str),
    NotAnObject,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum TombstoneCheck {
    Always,
    Never,
    /// Respects the tombstone (the mark of an ended thread) only if it is newer than the life in the stamp that
    /// [`PreconditionStep::Seen`] selects with this index.
    After(usize),
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum PreconditionStep {
    Exists,
    Version(u64),
    CurrentVersion,
    /// A recorded stamp. The index counts back from the newest recorded stamp, and wraps around after the oldest.
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
