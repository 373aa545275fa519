//! The time that expiry goes by.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// Wall time that never jumps: read once from the system, then carried on by the monotonic clock.
///
/// It can be put ahead, so that tests of expiry need not wait. Clones share that.
#[derive(Debug, Clone)]
pub struct Clock {
    start: Instant,
    start_ms: u64,
    ahead_ms: Arc<AtomicU64>,
}

impl Clock {
    /// The system's time.
    #[must_use]
    pub fn system() -> Self {
        let since_epoch = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        Self {
            start: Instant::now(),
            start_ms: millis(since_epoch),
            ahead_ms: Arc::default(),
        }
    }

    /// Milliseconds of the Unix epoch.
    #[must_use]
    pub fn now_ms(&self) -> u64 {
        self.start_ms + millis(self.start.elapsed()) + self.ahead_ms()
    }

    /// How far it was put ahead.
    #[must_use]
    pub fn ahead_ms(&self) -> u64 {
        self.ahead_ms.load(Ordering::Relaxed)
    }

    /// Puts it ahead.
    pub fn advance(&self, by: Duration) {
        self.ahead_ms.fetch_add(millis(by), Ordering::Relaxed);
    }
}

/// A duration in whole milliseconds; one past 584 million years is that long.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
