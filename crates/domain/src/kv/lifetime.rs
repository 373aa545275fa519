use std::time::Duration;

/// The lifetime of an entry after a put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifetime {
    /// The entry lives until a caller deletes it.
    Forever,
    /// The entry lives for this duration.
    For(Duration),
}

/// The limits and the default lifetime of entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryPolicy {
    /// Maximum bytes of a body.
    pub max_bytes: u64,
    /// The lifetime of entries if neither the put nor the namespace sets one.
    pub lifetime: Lifetime,
}

impl Lifetime {
    /// Maximum finite lifetime: one year.
    pub const LONGEST: Duration = Duration::from_secs(31_536_000);

    /// Converts seconds to a lifetime. 0 means forever.
    #[must_use]
    pub fn from_seconds(seconds: u64) -> Self {
        match seconds {
            0 => Self::Forever,
            seconds => Self::For(Duration::from_secs(seconds)),
        }
    }

    /// Converts seconds to a lifetime between one minute and [`Self::LONGEST`]. 0 means forever. Returns `None` if
    /// `seconds` is not finite.
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

    /// Converts the lifetime to seconds. 0 means forever.
    #[must_use]
    pub fn as_seconds(self) -> u64 {
        match self {
            Self::Forever => 0,
            Self::For(time) => time.as_secs(),
        }
    }
}

impl EntryPolicy {
    /// The documented defaults: up to 1 MiB per body, and no expiry.
    pub const DEFAULT: Self = Self {
        max_bytes: 1_048_576,
        lifetime: Lifetime::Forever,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requested_lifetimes_are_clamped() {
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
