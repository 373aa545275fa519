mod finding;
mod pushes;
mod tally;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) use finding::{Finding, Kind};
pub(crate) use pushes::{Comparison, Pushes};
pub(crate) use tally::Tally;

/// Maximum number of findings that are listed individually. All findings are counted.
const TOLD: usize = 50;

#[derive(Debug, Default)]
pub(crate) struct Account {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    tally: Tally,
    findings: Vec<Finding>,
}

impl Account {
    pub(crate) fn count(&self, change: impl FnOnce(&mut Tally)) {
        change(&mut lock(&self.kept).tally);
    }

    pub(crate) fn note(&self, finding: Finding) {
        let mut kept = lock(&self.kept);
        *kept.tally.findings.entry(finding.kind).or_default() += 1;
        if kept.findings.len() < TOLD {
            kept.findings.push(finding);
        }
    }

    pub(crate) fn tally(&self) -> Tally {
        lock(&self.kept).tally.clone()
    }

    pub(crate) fn findings(&self) -> Vec<Finding> {
        lock(&self.kept).findings.clone()
    }

    /// Counts the results of comparing one list with its pushes, and notes each fault as a finding.
    pub(crate) fn settle(&self, scenario: &'static str, thread: &str, comparison: &Comparison) {
        self.count(|tally| tally.pushes.add(comparison));
        let note = |kind, detail: String| {
            self.note(Finding {
                kind,
                scenario,
                request: None,
                thread: Some(thread.to_owned()),
                detail,
            });
        };
        for (mark, version) in &comparison.missing {
            let version = version.map_or_else(String::new, |at| format!(" at version {at}"));
            note(
                Kind::MissingPush,
                format!("{mark} was acknowledged{version} and is not there"),
            );
        }
        for mark in &comparison.double {
            note(
                Kind::DoublePush,
                format!("{mark} is there more often than once"),
            );
        }
        for value in &comparison.strange {
            note(Kind::StrangeValue, value.clone());
        }
        for mark in &comparison.disordered {
            note(
                Kind::Disorder,
                format!("{mark} is before one that was acknowledged earlier"),
            );
        }
    }
}

/// Locks `mutex`, even if another user panicked while holding the lock.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) type Counts<K> = BTreeMap<K, u64>;
