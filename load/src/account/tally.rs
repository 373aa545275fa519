use serde::Serialize;

use super::Counts;
use super::finding::Kind;
use super::pushes::Comparison;

#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Tally {
    pub(crate) requests: u64,
    /// Requests that the service did not answer, by reason.
    pub(crate) unanswered: Counts<&'static str>,
    /// Unanswered requests that were sent again with the same idempotency key.
    pub(crate) retries: u64,
    /// Acknowledged writes that were deliberately sent again.
    pub(crate) repeats: u64,
    /// Conditional writes that were correctly rejected because another agent wrote first.
    pub(crate) conflicts: u64,
    pub(crate) pushes: PushTally,
    pub(crate) threads: u64,
    /// Number of threads whose content was compared with the writes before the thread was deleted.
    pub(crate) threads_verified: u64,
    pub(crate) findings: Counts<Kind>,
}

/// Push counts. At the end of a run, each acknowledged push is counted exactly once, as verified, missing or unread.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(crate) struct PushTally {
    pub(crate) acknowledged: u64,
    /// Number of unanswered pushes. Each must be stored at most once.
    pub(crate) unacknowledged: u64,
    pub(crate) verified: u64,
    pub(crate) missing: u64,
    pub(crate) double: u64,
    pub(crate) strange: u64,
    /// Number of acknowledged pushes that were never read, or were displaced by newer pushes before they could be read.
    pub(crate) unread: u64,
    pub(crate) unacknowledged_found: u64,
}

impl Tally {
    pub(crate) fn all_unanswered(&self) -> u64 {
        self.unanswered.values().sum()
    }

    pub(crate) fn all_findings(&self) -> u64 {
        self.findings.values().sum()
    }
}

impl PushTally {
    pub(super) fn add(&mut self, comparison: &Comparison) {
        self.verified += comparison.verified;
        self.missing += comparison.missing.len() as u64;
        self.double += comparison.double.len() as u64;
        self.strange += comparison.strange.len() as u64;
        self.unread += comparison.unread;
        self.unacknowledged_found += comparison.unacknowledged_found;
    }
}
