//! Lifetimes of ended threads and events.

use std::time::Duration;

/// The factor by which an event stays longer than [`Retention::log`] until all durable consumers
/// have handled it.
pub const LOG_HARD_FACTOR: u32 = 7;

/// The lifetimes of a deployment's ended threads and events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// How long the data of an expired thread waits for the reaper. It is kept with each thread, so
    /// that a change of the setting revives no thread.
    pub grace: Duration,
    /// How long the archive keeps a final state. With zero, a state stays only until its event has left the log.
    pub archive: Duration,
    /// How long an event stays in the log; seven times as long while a durable consumer has not
    /// handled it.
    pub log: Duration,
}

impl Retention {
    /// The documented defaults.
    pub const DEFAULT: Self = Self {
        grace: Duration::from_secs(86_400),
        archive: Duration::from_secs(7 * 86_400),
        log: Duration::from_secs(86_400),
    };

    /// The longest that an event stays in the log.
    #[doc(hidden)]
    #[must_use]
    pub fn log_at_most(&self) -> Duration {
        self.log.saturating_mul(LOG_HARD_FACTOR)
    }
}
