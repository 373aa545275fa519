use std::time::Duration;

use tokio::time::Instant;

/// Minimum interval between the reports of one slot. Without a minimum, every read could report gaps if an endpoint is
/// failing and the log keeps few events.
const REPORT_EVERY: Duration = Duration::from_secs(60);

/// Gaps that one slot has found but not reported yet. A gap means that events were deleted before they were delivered.
#[derive(Debug, Default)]
pub(super) struct Gaps {
    found: usize,
    reported: Option<Instant>,
}

impl Gaps {
    pub(super) fn add(&mut self, gaps: usize, consumer: &str) {
        if let Some(gaps) = self.due(gaps) {
            tracing::error!(
                consumer,
                gaps,
                "events were dropped from the log before delivery"
            );
        }
    }

    fn due(&mut self, gaps: usize) -> Option<usize> {
        self.found += gaps;
        let is_early = self
            .reported
            .is_some_and(|reported| reported.elapsed() < REPORT_EVERY);
        if self.found == 0 || is_early {
            return None;
        }
        self.reported = Some(Instant::now());
        Some(std::mem::take(&mut self.found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_reported_at_once_and_then_together() {
        let mut gaps = Gaps::default();

        assert_eq!(gaps.due(0), None);
        assert_eq!(gaps.due(2), Some(2));
        assert_eq!(gaps.due(3), None);
        assert_eq!(gaps.due(4), None);

        gaps.reported = gaps.reported.and_then(|at| at.checked_sub(REPORT_EVERY));
        assert_eq!(gaps.due(0), Some(7));
        assert_eq!(gaps.due(0), None);
    }
}
