//! The clock of expiry.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use threadkeep_domain::millis;

/// Wall time that never jumps: read once from the system, then carried on by the monotonic clock.
///
/// It can be put ahead, so that tests of expiry need not wait, and back from there. Clones share that.
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
        Self {
            start: Instant::now(),
            start_ms: since_epoch_ms(),
            ahead_ms: Arc::default(),
        }
    }

    /// Milliseconds of the Unix epoch.
    #[must_use]
    pub fn now_ms(&self) -> u64 {
        self.start_ms + millis(self.start.elapsed()) + self.ahead_ms()
    }

    /// The system's time as it is by now, put ahead as far: it jumps when it is set, and does not
    /// stand still while the machine sleeps. For comparing clocks, not for measuring times.
    pub fn system_ms(&self) -> u64 {
        since_epoch_ms() + self.ahead_ms()
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

    /// Puts it back, but not behind the system's time.
    pub fn set_back(&self, by: Duration) {
        let less = |ahead_ms: u64| Some(ahead_ms.saturating_sub(millis(by)));
        let _ = self
            .ahead_ms
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }
}

fn since_epoch_ms() -> u64 {
    millis(SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_stood_still_knows_the_systems_time() {
        let stood_still = Clock {
            start_ms: 0,
            ..Clock::system()
        };
        stood_still.advance(Duration::from_secs(100));

        let ahead_ms = stood_still.system_ms() - since_epoch_ms();
        assert!((90_000..110_000).contains(&ahead_ms), "{ahead_ms}");
    }
}
