//! A write as a whole: its changes and conditions.

use std::time::Duration;

use super::key::Key;
use super::operation::{Answer, Operation};
use super::owner::{Access, OwnerChange};
use super::thread::{Life, Stamp, Thread};
use super::turn::TurnToken;
use crate::json::text::Json;
use crate::scope::{HistoryLimit, ScopePolicies};
use crate::{IdempotencyKey, Refusal, ThreadPolicy};

/// One atomic change of a thread, which is done whole or not at all.
///
/// It is checked in this order: owner, idempotency key, tombstone, turn, precondition, guards, metadata, operations,
/// limits of the state, history.
#[derive(Debug, Clone, Copy)]
pub struct Write<'a> {
    /// Steps on the state, in order, and items to append to the history.
    pub operations: &'a [Operation],
    /// The values that the operations are based on.
    pub guards: &'a [Guard],
    /// New metadata.
    pub metadata: Option<&'a MetadataChange>,
    /// A new idle TTL.
    pub ttl: Option<Duration>,
    /// A new owner.
    pub owner: OwnerChange<'a>,
    /// Whether the owner has a place for one more thread. Without it, a write that needs one is refused with
    /// [`NoPlace`](crate::Refusal::NoPlace).
    pub has_place: bool,
    /// The conditions.
    pub conditions: Conditions,
    /// Whether it is a late one after the thread was destroyed.
    pub tombstone: Tombstone,
    /// Whether the answer has the whole thread object.
    pub describe: bool,
    /// Limits and lifetimes.
    pub policy: &'a ThreadPolicy,
    /// The limits of the history.
    pub history: HistoryLimit,
}

impl<'a> Write<'a> {
    /// A write without conditions that changes nothing but the version.
    #[must_use]
    pub fn new(policy: &'a ThreadPolicy) -> Self {
        Self {
            operations: &[],
            guards: &[],
            metadata: None,
            ttl: None,
            owner: OwnerChange::None,
            has_place: true,
            conditions: Conditions::default(),
            tombstone: Tombstone::Heeded,
            describe: false,
            policy,
            history: ScopePolicies::DEFAULT.history,
        }
    }

    /// The same without the identity of a repeat.
    pub fn without_idempotency(&self) -> Self {
        Self {
            conditions: self.conditions.without_idempotency(),
            ..*self
        }
    }

    /// Whether it does nothing but delete keys, so that it makes room in a store that is full.
    #[must_use]
    pub fn only_deletes(&self) -> bool {
        let is_deletion = |operation: &Operation| {
            matches!(operation, Operation::Delete { .. } | Operation::Clear)
        };
        self.metadata.is_none()
            && self.conditions.idempotency.is_none()
            && !self.operations.is_empty()
            && self.operations.iter().all(is_deletion)
    }
}

/// The conditions of a change. They are checked in this order: owner, idempotency key, tombstone, turn, precondition.
#[derive(Debug, Clone, Copy, Default)]
pub struct Conditions {
    /// The condition on the thread.
    pub precondition: Option<Precondition>,
    /// The threads that the caller may use.
    pub access: Access,
    /// The turn that it belongs to.
    pub turn: Option<TurnToken>,
    /// The identity of a repeat.
    pub idempotency: Option<IdempotencyKey>,
}

impl Conditions {
    /// The same without the identity of a repeat.
    #[must_use]
    pub fn without_idempotency(self) -> Self {
        Self {
            idempotency: None,
            ..self
        }
    }
}

/// A condition on a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precondition {
    /// It exists.
    Exists,
    /// It has this version, in whatever life; 0: it does not exist.
    Version(u64),
    /// It has this version in this life.
    Stamp(Stamp),
    /// It is in this life, at whatever version.
    Life(Life),
    /// Its version and life match one of these tags.
    OneOf(Tags),
}

/// A version, in a certain life or in any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tag {
    /// The version; 0: it does not exist.
    pub version: u64,
    /// The life; none for any.
    pub life: Option<Life>,
}

/// Up to [`Tags::MAX`] tags. No thread meets an empty list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tags([Option<Tag>; Self::MAX]);

impl Precondition {
    /// Whether a thread of that stamp meets it; one that does not exist has the default stamp.
    #[must_use]
    pub fn is_met_by(self, stamp: Stamp) -> bool {
        match self {
            Self::Exists => stamp.version > 0,
            Self::Version(version) => stamp.version == version,
            Self::Stamp(wanted) => stamp == wanted,
            Self::Life(life) => stamp.version > 0 && stamp.life == life,
            Self::OneOf(tags) => tags.iter().any(|tag| tag.names(stamp)),
        }
    }

    /// Checks a precondition, if there is one, against what is there.
    ///
    /// # Errors
    /// [`Refusal::VersionMismatch`].
    #[doc(hidden)]
    pub fn check(wanted: Option<Self>, current: Stamp) -> Result<(), Refusal> {
        match wanted {
            Some(wanted) if !wanted.is_met_by(current) => Err(Refusal::VersionMismatch { current }),
            _ => Ok(()),
        }
    }

    /// Returns a precondition that also requires `life`.
    #[must_use]
    pub fn within(self, life: Life) -> Self {
        match self {
            Self::Exists => Self::Life(life),
            Self::Version(version) => Self::Stamp(Stamp { version, life }),
            Self::Stamp(Stamp { life: other, .. }) | Self::Life(other) if other == life => self,
            Self::Stamp(_) | Self::Life(_) => Self::OneOf(Tags::default()),
            Self::OneOf(tags) => Self::OneOf(tags.within(life)),
        }
    }
}

impl Tag {
    fn names(self, stamp: Stamp) -> bool {
        self.version == stamp.version && self.life.is_none_or(|life| life == stamp.life)
    }
}

impl From<Tag> for Precondition {
    fn from(Tag { version, life }: Tag) -> Self {
        match life {
            Some(life) => Self::Stamp(Stamp { version, life }),
            None => Self::Version(version),
        }
    }
}

impl Tags {
    /// Maximum number of tags in one condition.
    pub const MAX: usize = 8;

    /// Adds a tag; none if there is no room.
    #[must_use]
    pub fn with(mut self, tag: Tag) -> Option<Self> {
        *self.0.iter_mut().find(|place| place.is_none())? = Some(tag);
        Some(self)
    }

    fn within(self, life: Life) -> Self {
        Self(self.0.map(|tag| {
            let tag = tag.filter(|tag| tag.life.is_none_or(|other| other == life))?;
            let life = Some(life);
            Some(Tag { life, ..tag })
        }))
    }

    /// The tags.
    pub fn iter(&self) -> impl Iterator<Item = Tag> {
        self.0.iter().copied().flatten()
    }
}

/// The effect of a destroyed thread's tombstone on a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tombstone {
    /// It is refused, unless a new life has begun.
    Heeded,
    /// It begins a new life.
    Ignored,
    /// It is rejected, even if a new life has begun, unless the thread is still in this life: it comes from a client
    /// that has seen that one and nothing later.
    HeededAfter(Life),
}

/// A value that must be unchanged for a write that is based on it.
#[derive(Debug, Clone)]
pub struct Guard {
    /// Which.
    pub key: Key,
    /// The expected value.
    pub expected: GuardedValue,
}

/// The part of a value that a merge patch has read.
#[derive(Debug, Clone)]
pub enum GuardedValue {
    /// This object, to the byte.
    Object(Json),
    /// Absent, or anything that is not an object.
    NotAnObject,
}

/// New metadata, and what it was worked out from.
#[derive(Debug, Clone)]
pub struct MetadataChange {
    /// The new object.
    pub new: Json,
    /// The object that it is based on; none accepts any.
    pub old: Option<Json>,
}

/// The answer of an accepted write, or of its first run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// Version and life afterwards.
    pub stamp: Stamp,
    /// Bytes of the state afterwards.
    pub size_bytes: u64,
    /// One for each operation.
    pub answers: Vec<Answer>,
    /// The whole thread, where the write asked for it.
    pub thread: Option<Thread>,
    /// Whether this is the answer to an earlier write with the same idempotency key.
    pub replayed: bool,
}
