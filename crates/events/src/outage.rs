use std::error::Error;
use std::time::Duration;

const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Tracks consecutive failures of one kind of work. Logs only the first failure, and computes the growing pauses
/// between attempts.
#[derive(Debug)]
pub struct Outage {
    work: &'static str,
    failures: u32,
}

impl Outage {
    /// Creates an outage without failures. `work` describes the work in log messages, such as "reading the log of
    /// events".
    pub fn new(work: &'static str) -> Self {
        Self { work, failures: 0 }
    }

    /// Records a failure. Returns the pause before the next attempt.
    pub fn record_failure(&mut self, error: &(dyn Error + 'static)) -> Duration {
        if self.failures == 0 {
            let source = error.source().map(tracing::field::display);
            tracing::warn!(%error, source, "{} failed; retrying", self.work);
        }
        let pause = FIRST_PAUSE * 2_u32.saturating_pow(self.failures.min(16));
        self.failures = self.failures.saturating_add(1);
        pause.min(LONGEST_PAUSE)
    }

    /// Records a success.
    pub fn record_success(&mut self) {
        if self.failures > 0 {
            tracing::info!("recovered: {}", self.work);
        }
        self.failures = 0;
    }
}
