use serde::Serialize;

use crate::account::{Kind, Tally};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    Good,
    Bad,
}

pub(crate) fn judge(tally: &Tally, tolerates_outages: bool) -> (Verdict, Vec<String>) {
    let mut reasons: Vec<_> = tally
        .findings
        .iter()
        .map(|(kind, count)| format!("{count} {}", kind.description()))
        .collect();
    let unanswered = tally.all_unanswered();
    if unanswered > 0 && !tolerates_outages {
        reasons.push(format!("{unanswered} requests were not answered"));
    }
    if tally.requests <= unanswered {
        reasons.push("nothing was answered".to_owned());
    }
    // threads that were not checked at the end, except unreadable threads, which are already findings
    let unverified = tally.findings.get(&Kind::Unverified).copied();
    let unfinished = tally.threads - tally.threads_verified - unverified.unwrap_or_default();
    if unfinished > 0 {
        reasons.push(format!(
            "{unfinished} threads were not looked at in the end"
        ));
    }
    let pushes = &tally.pushes;
    let unread = pushes.acknowledged - pushes.verified - pushes.missing;
    if unread > 0 {
        reasons.push(format!("{unread} acknowledged pushes were not read back"));
    }
    let verdict = if reasons.is_empty() {
        Verdict::Good
    } else {
        Verdict::Bad
    };
    (verdict, reasons)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn healthy() -> Tally {
        let mut tally = Tally {
            requests: 100,
            threads: 3,
            threads_verified: 3,
            ..Tally::default()
        };
        tally.pushes.acknowledged = 40;
        tally.pushes.verified = 40;
        tally
    }

    #[test]
    fn a_run_without_a_fault_is_good() {
        assert_eq!(judge(&healthy(), false), (Verdict::Good, Vec::new()));
    }

    #[test]
    fn every_finding_is_a_reason() {
        let mut tally = healthy();
        tally.pushes.verified = 39;
        tally.pushes.missing = 1;
        tally.findings.insert(Kind::MissingPush, 1);

        let (verdict, reasons) = judge(&tally, true);

        assert_eq!(verdict, Verdict::Bad);
        assert_eq!(reasons, ["1 acknowledged pushes are missing"]);
    }

    #[test]
    fn unverified_threads_and_pushes_are_reasons() {
        let mut tally = healthy();
        tally.threads_verified = 2;
        tally.pushes.verified = 30;

        let (verdict, reasons) = judge(&tally, false);

        assert_eq!(verdict, Verdict::Bad);
        assert_eq!(reasons.len(), 2);
    }

    #[test]
    fn an_outage_is_a_fault_unless_it_is_tolerated() {
        let mut tally = healthy();
        tally.unanswered.insert("503", 5);

        assert_eq!(judge(&tally, false).0, Verdict::Bad);
        assert_eq!(judge(&tally, true).0, Verdict::Good);
        tally.requests = 5;
        assert_eq!(judge(&tally, true).0, Verdict::Bad);
    }
}
