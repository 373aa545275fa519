use std::time::Duration;

/// Maximum time for which the log keeps an unhandled event for a durable consumer, in multiples of [`Retention::log`].
pub const LOG_HARD_FACTOR: u32 = 7;

/// The retention of ended threads and events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// How long the data of an expired thread is kept for the reaper, the task that archives it. Stored per thread,
    /// because a changed setting must not revive expired threads.
    pub grace: Duration,
    /// How long the archive keeps a final state. If zero, the state is kept only while its event is in the log.
    pub archive: Duration,
    /// How long an event stays in the log. An event that a durable consumer has not handled stays longer.
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
    pub fn log_max(&self) -> Duration {
        self.log.saturating_mul(LOG_HARD_FACTOR)
    }
}
