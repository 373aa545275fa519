use std::sync::atomic::{AtomicU64, Ordering};

use threadkeep_domain::RateName;

/// Number of rejected requests per limit since the process started.
#[derive(Debug, Default)]
pub struct RateCounters([AtomicU64; RateName::ALL.len()]);

impl RateCounters {
    #[must_use]
    pub fn refused(&self, limit: RateName) -> u64 {
        self.0[limit as usize].load(Ordering::Relaxed)
    }

    pub(super) fn count(&self, limit: RateName) {
        self.0[limit as usize].fetch_add(1, Ordering::Relaxed);
    }
}
