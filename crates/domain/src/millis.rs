//! Durations as stores count them.

use std::time::Duration;

/// A duration in whole milliseconds, at most 584 million years.
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
