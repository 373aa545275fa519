use std::time::Duration;

use super::key::Key;
use super::operation::{Answer, Operation};
use super::owner::{Access, OwnerChange};
use super::thread::{Life, Stamp, Thread};
use super::turn::TurnToken;
use crate::json::text::Json;
use crate::scope::{HistoryLimit, ScopePolicies};
use crate::{IdempotencyKey, Refusal, ThreadPolicy};

/// An atomic change to a thread. Checks run in this order: owner, idempotency key, tombstone (mark of an ended thread),
/// turn (lease), precondition, guards, metadata, operations, state limits, history.
#[derive(Debug, Clone, Copy)]
pub struct Write<'a> {
    /// Operations in the order in which they run. Each one changes the state, or appends an item to the history.
    pub operations: &'a [Operation],
    /// The values that the operations are based on.
    pub guards: &'a [Guard],
    /// The new metadata.
    pub metadata: Option<&'a MetadataChange>,
    /// The new idle TTL.
    pub ttl: Option<Duration>,
    /// The change of the owner.
    pub owner: OwnerChange<'a>,
    /// Whether a reservation counts the thread against the owner's thread limit. If not, a write that adds the thread
    /// to an owner is [rejected](crate::Refusal::NoReservation).
    pub has_reservation: bool,
    /// The conditions.
    pub conditions: Conditions,
    /// The effect of a tombstone.
    pub tombstone: Tombstone,
    /// Whether the answer includes the whole thread object.
    pub describe: bool,
    /// Limits and lifetimes.
    pub policy: &'a ThreadPolicy,
    /// The limits of the history.
    pub history: HistoryLimit,
}

impl<'a> Write<'a> {
    /// Creates an unconditional write that changes only the version.
    #[must_use]
    pub fn new(policy: &'a ThreadPolicy) -> Self {
        Self {
            operations: &[],
            guards: &[],
            metadata: None,
            ttl: None,
            owner: OwnerChange::None,
            has_reservation: true,
            conditions: Conditions::default(),
            tombstone: Tombstone::Enforced,
            describe: false,
            policy,
            history: ScopePolicies::DEFAULT.history,
        }
    }

    /// Returns the write without its idempotency key.
    pub fn without_idempotency(&self) -> Self {
        Self {
            conditions: self.conditions.without_idempotency(),
            ..*self
        }
    }

    /// Returns whether the write only deletes keys. Even a full store accepts such a write.
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

/// Conditions, checked in this order: owner, idempotency key, tombstone (mark of an ended thread), turn, precondition.
#[derive(Debug, Clone, Copy, Default)]
pub struct Conditions {
    /// The precondition.
    pub precondition: Option<Precondition>,
    /// The caller's access to threads.
    pub access: Access,
    /// The turn under which the caller works.
    pub turn: Option<TurnToken>,
    /// The idempotency key.
    pub idempotency: Option<IdempotencyKey>,
}

impl Conditions {
    /// Returns the conditions without the idempotency key.
    #[must_use]
    pub fn without_idempotency(self) -> Self {
        Self {
            idempotency: None,
            ..self
        }
    }
}

/// A condition on the version and life of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precondition {
    /// The thread exists.
    Exists,
    /// The thread has this version, even if it was recreated. Version 0 requires that it does not exist.
    Version(u64),
    /// The thread has this version and life.
    Stamp(Stamp),
    /// The thread is in this life, at any version.
    Life(Life),
    /// The thread matches one of these tags.
    OneOf(Tags),
}

/// A version of a thread, in one life (the time from the thread's creation to its end) or in any life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tag {
    /// The version; 0 if the thread does not exist.
    pub version: u64,
    /// The life; `None` matches any life.
    pub life: Option<Life>,
}

/// Up to [`Tags::MAX`] tags. An empty list matches no thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tags([Option<Tag>; Self::MAX]);

impl Precondition {
    /// Returns whether `stamp` meets the precondition. A thread that does not exist has the default stamp.
    #[must_use]
    pub fn is_met_by(self, stamp: Stamp) -> bool {
        match self {
            Self::Exists => stamp.version > 0,
            Self::Version(version) => stamp.version == version,
            Self::Stamp(required) => stamp == required,
            Self::Life(life) => stamp.version > 0 && stamp.life == life,
            Self::OneOf(tags) => tags.iter().any(|tag| tag.names(stamp)),
        }
    }

    #[doc(hidden)]
    pub fn check(required: Option<Self>, current: Stamp) -> Result<(), Refusal> {
        match required {
            Some(required) if !required.is_met_by(current) => {
                Err(Refusal::VersionMismatch { current })
            }
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

    /// Adds a tag. Returns `None` if the list is full.
    #[must_use]
    pub fn with(mut self, tag: Tag) -> Option<Self> {
        *self.0.iter_mut().find(|slot| slot.is_none())? = Some(tag);
        Some(self)
    }

    fn within(self, life: Life) -> Self {
        Self(self.0.map(|tag| {
            let tag = tag.filter(|tag| tag.life.is_none_or(|other| other == life))?;
            let life = Some(life);
            Some(Tag { life, ..tag })
        }))
    }

    /// Returns the tags.
    pub fn iter(&self) -> impl Iterator<Item = Tag> {
        self.0.iter().copied().flatten()
    }
}

/// The effect of a tombstone on a write. A tombstone marks the id of a thread that ended recently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tombstone {
    /// Rejects the write, unless a new life has begun.
    Enforced,
    /// Ignores the tombstone, and starts a new life.
    Ignored,
    /// Rejects the write if this life of the thread has ended, even if the thread was recreated, because the client has
    /// not seen the new thread.
    EnforcedAfter(Life),
}

/// A value that the write is based on. If the value has changed, the write is rejected.
#[derive(Debug, Clone)]
pub struct Guard {
    /// The key.
    pub key: Key,
    /// The expected value.
    pub expected: GuardedValue,
}

/// The value that a merge patch was computed from.
#[derive(Debug, Clone)]
pub enum GuardedValue {
    /// The same object, byte for byte.
    Object(Json),
    /// An absent value, or any value except an object.
    NotAnObject,
}

/// New metadata, and optionally the metadata that it replaces.
#[derive(Debug, Clone)]
pub struct MetadataChange {
    /// The new object.
    pub new: Json,
    /// The object that the change is based on; `None` accepts any object.
    pub old: Option<Json>,
}

/// The answer to an accepted write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// Version and life after the write.
    pub stamp: Stamp,
    /// Size of the state in bytes, after the write.
    pub size_bytes: u64,
    /// One answer per operation.
    pub answers: Vec<Answer>,
    /// The whole thread, if requested.
    pub thread: Option<Thread>,
    /// Whether the answer was replayed for the idempotency key.
    pub replayed: bool,
}
