//! The state of the agreement on a signing key, for metrics.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::agreement::Verdict;

/// The agreement of the replicas on the signing key; complete by default.
#[derive(Debug, Default)]
pub struct SigningStatus(Mutex<Verdict>);

impl SigningStatus {
    /// Live replicas that lack the chosen key, or do not report their keys.
    #[must_use]
    pub fn replicas_without(&self) -> usize {
        let verdict = self.lock();
        verdict.without + verdict.silent
    }

    /// Keys that other replicas sign with and this one does not have.
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
