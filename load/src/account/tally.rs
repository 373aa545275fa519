//! The counts of a run.

use serde::Serialize;

use super::Counts;
use super::finding::Kind;
use super::pushes::Comparison;

/// The counts.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Tally {
    /// Requests that were sent.
    pub(crate) requests: u64,
    /// Those without an answer of the service, by the reason.
    pub(crate) unanswered: Counts<&'static str>,
    /// Requests that were sent again, after no answer, with the same idempotency key.
    pub(crate) retries: u64,
    /// Acknowledged writes that were sent again on purpose.
    pub(crate) repeats: u64,
    /// Conditional writes that were rejected because another agent was first, as they must be.
    pub(crate) conflicts: u64,
    /// The pushes.
    pub(crate) pushes: PushTally,
    /// Threads and scopes that were written to.
    pub(crate) threads: u64,
    /// The threads whose content was compared with the writes, and deleted.
    pub(crate) threads_verified: u64,
    /// The findings.
    pub(crate) findings: Counts<Kind>,
}

/// Each acknowledged push is, at the end, in just one of verified, missing and unread.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(crate) struct PushTally {
    /// Those that were answered with 200.
    pub(crate) acknowledged: u64,
    /// Those without an answer, which may be there once or not at all.
    pub(crate) unacknowledged: u64,
    /// Acknowledged ones that were read back.
    pub(crate) verified: u64,
    /// Acknowledged ones that are not there.
    pub(crate) missing: u64,
    /// Pushes that are there more often than once.
    pub(crate) double: u64,
    /// Values that nobody has pushed.
    pub(crate) strange: u64,
    /// Acknowledged ones that could not be read back before newer ones took their place, or at all.
    pub(crate) unread: u64,
    /// Unacknowledged ones that are there.
    pub(crate) unacknowledged_found: u64,
}

impl Tally {
    /// Requests without an answer.
    pub(crate) fn all_unanswered(&self) -> u64 {
        self.unanswered.values().sum()
    }

    /// The number of findings of all kinds.
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
