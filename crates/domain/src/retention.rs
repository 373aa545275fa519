use std::time::Duration;

/// An event that a durable consumer has not handled stays in the log for up to this many times [`Retention::log`].
pub const LOG_HARD_FACTOR: u32 = 7;

/// The retention of ended threads and events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// How long the data of an expired thread waits for the reaper. Stored per thread: a changed setting revives no thread.
    pub grace: Duration,
    /// How long the archive keeps a final state. With zero, the state stays only as long as its event is in the log.
    pub archive: Duration,
    /// How long an event stays in the log, unless a durable consumer has not handled it.
    pub log: Duration,
}

impl Retention {
    /// The documented defaults.
    pub const DEFAULT: Self = Self {
        grace: Duration::from_secs(86_400),
        archive: Duration::from_secs(7 * 86_400),
        log: Duration::from_secs(86_400),
    };

    #[doc(hidden)]
    #[must_use]
    pub fn log_at_most(&self) -> Duration {
        self.log.saturating_mul(LOG_HARD_FACTOR)
    }
}
