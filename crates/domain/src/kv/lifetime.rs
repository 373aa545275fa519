//! How long entries live.

use std::time::Duration;

/// The lifetime of an entry after it was put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifetime {
    /// Until it is deleted.
    Forever,
    /// So long.
    For(Duration),
}

/// The default and the bounds of an entry's lifetime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryPolicy {
    /// Bytes of a body.
    pub max_bytes: u64,
    /// The lifetime of entries put without one into a namespace that has none of its own.
    pub lifetime: Lifetime,
}

impl Lifetime {
    /// The longest limited lifetime: a year.
    pub const LONGEST: Duration = Duration::from_secs(31_536_000);

    /// A lifetime in seconds; 0 means forever.
    #[must_use]
    pub fn from_seconds(seconds: u64) -> Self {
        match seconds {
            0 => Self::Forever,
            seconds => Self::For(Duration::from_secs(seconds)),
        }
    }

    /// A lifetime in seconds, rounded into the bounds: 0 means forever, less than a minute becomes a minute,
    /// more than [`Self::LONGEST`] becomes that. `None` if the number is not finite.
    #[must_use]
    pub fn clamped(seconds: f64) -> Option<Self> {
        let longest = Self::LONGEST.as_secs_f64();
        match seconds {
            0.0 => Some(Self::Forever),
            _ if !seconds.is_finite() => None,
            _ => Some(Self::For(Duration::from_secs_f64(
                seconds.clamp(60.0, longest),
            ))),
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
    /// The documented defaults: 1 MiB, and forever.
    pub const DEFAULT: Self = Self {
        max_bytes: 1_048_576,
        lifetime: Lifetime::Forever,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_brought_within_bounds() {
        let lives = |seconds| Lifetime::clamped(seconds);
        let millis = |ms| Some(Lifetime::For(Duration::from_millis(ms)));
        for (seconds, ms) in [
            (60.0, 60_000),
            (90.5, 90_500),
            (1.0, 60_000),
            (1e-300, 60_000),
            (-5.0, 60_000),
            (31_536_000.0, 31_536_000_000),
            (31_536_000.5, 31_536_000_000),
            (1e300, 31_536_000_000),
        ] {
            assert_eq!(lives(seconds), millis(ms), "{seconds}");
        }
        assert_eq!(lives(0.0), Some(Lifetime::Forever));
        assert_eq!(lives(-0.0), Some(Lifetime::Forever));
        for no_number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(lives(no_number), None);
        }
    }
}
