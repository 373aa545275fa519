use std::sync::{Mutex, MutexGuard, PoisonError};

use super::agreement::Verdict;

/// Records for the metrics whether the replicas agree on the signing key. The default is full agreement.
#[derive(Debug, Default)]
pub struct SigningStatus(Mutex<Verdict>);

impl SigningStatus {
    /// Returns the number of live replicas that lack the chosen key or do not report their keys.
    #[must_use]
    pub fn replicas_without(&self) -> usize {
        let verdict = self.lock();
        verdict.without + verdict.silent
    }

    /// Returns the number of keys that other replicas sign with but this replica lacks.
    #[must_use]
    pub fn foreign_keys(&self) -> usize {
        self.lock().foreign.len()
    }

    pub(super) fn verdict(&self) -> Verdict {
        self.lock().clone()
    }

    pub(super) fn set(&self, verdict: Verdict) {
        *self.lock() = verdict;
    }

    fn lock(&self) -> MutexGuard<'_, Verdict> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
