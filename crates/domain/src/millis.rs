//! Durations as stores count them.

use std::time::Duration;

/// A duration in whole milliseconds; one past 584 million years is that long.
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
