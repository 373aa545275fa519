//! Owners of threads, and which threads a caller may use.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::{Fingerprint, Heap, Refusal, heap};

/// Bytes of the longest owner.
const MAX_BYTES: usize = 256;

/// The owner of a thread: 1 to 256 bytes of UTF-8 without control characters, opaque to the service.
///
/// Cloning it copies a pointer. Logs show only its tag.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Owner {
    text: Arc<str>,
    tag: OwnerTag,
}

/// A digest of an owner, by which stores compare and name owners.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OwnerTag(pub [u8; 16]);

/// A text that can be no owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an owner has 1 to 256 bytes of UTF-8 and no control characters")]
pub struct OwnerError;

/// Which threads a caller may use, by their owners.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Access {
    /// All: a back end, or a caller where owners are not asked for.
    #[default]
    All,
    /// Those without an owner.
    Unowned,
    /// Those of this owner, and those without one.
    Of(OwnerTag),
}

/// The effect of a write on the owner of its thread.
#[derive(Debug, Clone, Copy, Default)]
pub enum OwnerChange<'a> {
    /// It stays.
    #[default]
    None,
    /// A thread without an owner gets this one.
    Bind(&'a Owner),
    /// The thread gets this one.
    Set(&'a Owner),
    /// The thread has none any more.
    Clear,
}

impl Owner {
    /// An owner of that name.
    ///
    /// # Errors
    /// [`OwnerError`].
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

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the process holds another copy of it, for tests of erasure.
    #[doc(hidden)]
    #[must_use]
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.text) > 1
    }

    /// The digest.
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

/// In hex, which is how Redis has it.
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
    /// Whether the caller may use a thread of that owner.
    ///
    /// # Errors
    /// [`Refusal::NotTheOwner`] or [`Refusal::OwnerRequired`].
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
    /// The owner that a thread may get.
    pub fn wanted(self) -> Option<&'a Owner> {
        match self {
            Self::None | Self::Clear => None,
            Self::Bind(owner) | Self::Set(owner) => Some(owner),
        }
    }

    /// The owner afterwards, of a thread with that owner.
    pub fn apply(self, before: Option<&'a Owner>) -> Option<&'a Owner> {
        match self {
            Self::None => before,
            Self::Bind(owner) => before.or(Some(owner)),
            Self::Set(owner) => Some(owner),
            Self::Clear => None,
        }
    }
}
