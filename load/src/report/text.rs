use std::fmt::{Display, Formatter, Result};

use super::Report;
use crate::verdict::Verdict;

/// Maximum number of findings in the text report. The JSON file lists more findings.
const FINDINGS_MAX: usize = 10;

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        writeln!(f)?;
        writeln!(
            f,
            "{:<26} {:>9} {:>8} {:>9} {:>9} {:>9} {:>9}",
            "request", "count", "failed", "per s", "p50 ms", "p99 ms", "max ms"
        )?;
        for row in &self.requests {
            writeln!(
                f,
                "{:<26} {:>9} {:>8} {:>9.1} {:>9.2} {:>9.2} {:>9.2}",
                row.name,
                row.requests,
                row.failures,
                row.per_second,
                row.p50_ms,
                row.p99_ms,
                row.max_ms
            )?;
        }
        writeln!(f)?;
        self.write_summary(f)
    }
}

impl Report {
    pub(super) fn write_summary(&self, f: &mut impl std::fmt::Write) -> Result {
        match self.verdict {
            Verdict::Good => writeln!(f, "GOOD")?,
            Verdict::Bad => writeln!(f, "BAD: {}", self.reasons.join("; "))?,
        }
        let (account, pushes) = (&self.account, &self.account.pushes);
        writeln!(
            f,
            "{} requests in {:.1} s, {:.0}/s; {} unanswered, {} conflicts, {} sent again after no \
             answer, {} on purpose",
            account.requests,
            self.seconds,
            self.requests_per_second,
            account.all_unanswered(),
            account.conflicts,
            account.retries,
            account.repeats
        )?;
        writeln!(
            f,
            "{} pushes acknowledged: {} verified, {} missing, {} double, {} unread; {} \
             unacknowledged, of which {} are there",
            pushes.acknowledged,
            pushes.verified,
            pushes.missing,
            pushes.double,
            pushes.unread,
            pushes.unacknowledged,
            pushes.unacknowledged_found
        )?;
        writeln!(
            f,
            "{} of {} threads verified",
            account.threads_verified, account.threads
        )?;
        for finding in self.findings.iter().take(FINDINGS_MAX) {
            let thread = finding.thread.as_deref().unwrap_or("no thread");
            let request = finding.request.unwrap_or("account");
            writeln!(
                f,
                "  {}, {thread}, {request}: {}",
                finding.scenario, finding.detail
            )?;
        }
        let more = account.all_findings() - self.findings.len().min(FINDINGS_MAX) as u64;
        if more > 0 {
            writeln!(f, "  and {more} more")?;
        }
        Ok(())
    }
}
