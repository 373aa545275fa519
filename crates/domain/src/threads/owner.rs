use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::{Fingerprint, Heap, Refusal, heap};

const MAX_BYTES: usize = 256;

/// The owner of a thread: 1 to 256 bytes of UTF-8 without control characters. The service does not interpret the text.
/// Clones share the text.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Owner {
    text: Arc<str>,
    tag: OwnerTag,
}

/// A digest of an owner. Stores identify owners by this digest.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OwnerTag(pub [u8; 16]);

/// An invalid owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an owner has 1 to 256 bytes of UTF-8 and no control characters")]
pub struct OwnerError;

/// The threads that a caller may use, selected by owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Access {
    /// All threads. Back ends have this access, and so do all callers if owners are not required.
    #[default]
    All,
    /// Threads without an owner.
    Unowned,
    /// Threads of this owner, and threads without an owner.
    Of(OwnerTag),
}

/// The effect of a write on the owner of its thread.
#[derive(Debug, Clone, Copy, Default)]
pub enum OwnerChange<'a> {
    /// Keeps the owner.
    #[default]
    None,
    /// Sets the owner of a thread without one.
    Bind(&'a Owner),
    /// Replaces the owner.
    Set(&'a Owner),
    /// Removes the owner.
    Clear,
}

impl Owner {
    /// Parses an owner.
    pub fn new(text: &str) -> Result<Self, OwnerError> {
        let fits = (1..=MAX_BYTES).contains(&text.len());
        if !fits || text.chars().any(char::is_control) {
            return Err(OwnerError);
        }
        let Fingerprint(tag) = Fingerprint::of(&[b"owner", text.as_bytes()]);
        Ok(Self {
            text: text.into(),
            tag: OwnerTag(tag),
        })
    }

    /// Returns the owner as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns whether the process holds another clone of the owner. Used by the erasure tests.
    #[doc(hidden)]
    #[must_use]
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.text) > 1
    }

    /// Returns the digest.
    #[must_use]
    pub fn tag(&self) -> OwnerTag {
        self.tag
    }
}

impl FromStr for Owner {
    type Err = OwnerError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::new(text)
    }
}

impl Heap for Owner {
    fn heap_bytes(&self) -> u64 {
        heap::block(self.text.len() + 2 * size_of::<usize>())
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.tag.fmt(f)
    }
}

/// Formats the tag in hex, as Redis stores it.
impl fmt::Display for OwnerTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for OwnerTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OwnerTag({})", hex::encode(&self.0[..4]))
    }
}

impl Access {
    /// Checks that the caller may use a thread that belongs to `owner`.
    pub fn check(self, owner: Option<OwnerTag>) -> Result<(), Refusal> {
        match (self, owner) {
            (Self::All, _) | (_, None) => Ok(()),
            (Self::Of(own), Some(owner)) if own == owner => Ok(()),
            (Self::Of(_), Some(_)) => Err(Refusal::NotTheOwner),
            (Self::Unowned, Some(_)) => Err(Refusal::OwnerRequired),
        }
    }
}

impl<'a> OwnerChange<'a> {
    /// Returns the owner to set.
    pub fn wanted(self) -> Option<&'a Owner> {
        match self {
            Self::None | Self::Clear => None,
            Self::Bind(owner) | Self::Set(owner) => Some(owner),
        }
    }

    /// Returns the owner after the change.
    pub fn apply(self, before: Option<&'a Owner>) -> Option<&'a Owner> {
        match self {
            Self::None => before,
            Self::Bind(owner) => before.or(Some(owner)),
            Self::Set(owner) => Some(owner),
            Self::Clear => None,
        }
    }
}
