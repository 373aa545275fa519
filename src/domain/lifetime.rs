//! How long entries live.

use std::time::Duration;

/// How long an entry lives after it was put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifetime {
    /// Until it is deleted.
    Forever,
    /// So long.
    For(Duration),
}

/// What an entry may have, and how long it lives when nobody says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryPolicy {
    /// Bytes of a body.
    pub max_bytes: u64,
    /// The lifetime of entries put without one into a namespace that has none of its own.
    pub lifetime: Lifetime,
}

impl Lifetime {
    /// The longest that is not for ever: a year.
    pub const LONGEST: Duration = Duration::from_secs(31_536_000);

    /// So many seconds, of which 0 are for ever.
    #[must_use]
    pub fn from_seconds(seconds: u64) -> Self {
        match seconds {
            0 => Self::Forever,
            seconds => Self::For(Duration::from_secs(seconds)),
        }
    }

    /// The same, seconds again.
    #[must_use]
    pub fn as_seconds(self) -> u64 {
        match self {
            Self::Forever => 0,
            Self::For(time) => time.as_secs(),
        }
    }
}

impl EntryPolicy {
    /// The documented defaults: 1 MiB, and for ever.
    pub const DEFAULT: Self = Self {
        max_bytes: 1_048_576,
        lifetime: Lifetime::Forever,
    };
}
