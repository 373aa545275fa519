//! Work in the background that fails now and then: said once, tried again with growing pauses.

use std::error::Error;
use std::time::Duration;

const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Whether a kind of work fails at the moment.
#[derive(Debug)]
pub(crate) struct Outage {
    what: &'static str,
    failures: u32,
}

impl Outage {
    /// None yet. `what` says in the log what is the matter when it fails.
    pub(crate) fn new(what: &'static str) -> Self {
        Self { what, failures: 0 }
    }

    /// It has failed; how long to wait before the next attempt.
    pub(crate) fn goes_on(&mut self, error: &(dyn Error + 'static)) -> Duration {
        if self.failures == 0 {
            let source = error.source().map(tracing::field::display);
            tracing::warn!(%error, source, "{}; it is tried again and again", self.what);
        }
        let pause = FIRST_PAUSE * 2_u32.saturating_pow(self.failures.min(16));
        self.failures = self.failures.saturating_add(1);
        pause.min(LONGEST_PAUSE)
    }

    /// It works.
    pub(crate) fn is_over(&mut self) {
        if self.failures > 0 {
            tracing::info!("no more: {}", self.what);
        }
        self.failures = 0;
    }
}
