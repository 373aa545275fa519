mod finding;
mod pushes;
mod tally;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) use finding::{Finding, Kind};
pub(crate) use pushes::{Comparison, Pushes};
pub(crate) use tally::Tally;

/// Maximum number of findings that are listed individually. All findings are counted.
const FINDINGS_MAX: usize = 50;

#[derive(Debug, Default)]
pub(crate) struct Account {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    tally: Tally,
    findings: Vec<Finding>,
}

impl Account {
    pub(crate) fn count(&self, change: impl FnOnce(&mut Tally)) {
        change(&mut lock(&self.inner).tally);
    }

    pub(crate) fn note(&self, finding: Finding) {
        let mut inner = lock(&self.inner);
        *inner.tally.findings.entry(finding.kind).or_default() += 1;
        if inner.findings.len() < FINDINGS_MAX {
            inner.findings.push(finding);
        }
    }

    pub(crate) fn tally(&self) -> Tally {
        lock(&self.inner).tally.clone()
    }

    pub(crate) fn findings(&self) -> Vec<Finding> {
        lock(&self.inner).findings.clone()
    }

    /// Counts the results of comparing a list with the pushes to it, and notes each fault as a finding.
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
        for (push_id, version) in &comparison.missing {
            let version = version.map_or_else(String::new, |at| format!(" at version {at}"));
            note(
                Kind::MissingPush,
                format!("{push_id} was acknowledged{version} and is not there"),
            );
        }
        for push_id in &comparison.double {
            note(
                Kind::DoublePush,
                format!("{push_id} is there more often than once"),
            );
        }
        for value in &comparison.strange {
            note(Kind::StrangeValue, value.clone());
        }
        for push_id in &comparison.disordered {
            note(
                Kind::Disorder,
                format!("{push_id} is before one that was acknowledged earlier"),
            );
        }
    }
}

/// Locks `mutex`, even if another user panicked while holding the lock.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) type Counts<K> = BTreeMap<K, u64>;
