use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use threadkeep_domain::millis;

/// A wall clock that never jumps. Starts at the system time, and then follows the monotonic clock. Tests can add an
/// offset, which all clones share.
#[derive(Debug, Clone)]
pub struct Clock {
    start: Instant,
    start_ms: u64,
    ahead_ms: Arc<AtomicU64>,
}

impl Clock {
    /// Creates a clock that starts at the system time.
    #[must_use]
    pub fn system() -> Self {
        Self {
            start: Instant::now(),
            start_ms: since_epoch_ms(),
            ahead_ms: Arc::default(),
        }
    }

    /// Returns the current time in Unix milliseconds.
    #[must_use]
    pub fn now_ms(&self) -> u64 {
        self.start_ms + millis(self.start.elapsed()) + self.ahead_ms()
    }

    /// Returns the system time plus the offset. Use it to compare clocks, but not to measure durations, because the
    /// system time jumps when the system clock is set, and advances while the machine sleeps.
    pub fn system_ms(&self) -> u64 {
        since_epoch_ms() + self.ahead_ms()
    }

    /// Returns the offset from the system time in milliseconds.
    #[must_use]
    pub fn ahead_ms(&self) -> u64 {
        self.ahead_ms.load(Ordering::Relaxed)
    }

    /// Moves the clock ahead.
    pub fn advance(&self, by: Duration) {
        self.ahead_ms.fetch_add(millis(by), Ordering::Relaxed);
    }

    /// Moves the clock back, but never behind the system time.
    pub fn set_back(&self, by: Duration) {
        let subtract = |ahead_ms: u64| Some(ahead_ms.saturating_sub(millis(by)));
        let _ = self
            .ahead_ms
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, subtract);
    }
}

fn since_epoch_ms() -> u64 {
    millis(SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stopped_clock_still_reports_the_system_time() {
        let stopped = Clock {
            start_ms: 0,
            ..Clock::system()
        };
        stopped.advance(Duration::from_secs(100));

        let ahead_ms = stopped.system_ms() - since_epoch_ms();
        assert!((90_000..110_000).contains(&ahead_ms), "{ahead_ms}");
    }
}
