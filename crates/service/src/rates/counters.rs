//! Counters of the limits.

use std::sync::atomic::{AtomicU64, Ordering};

use threadkeep_domain::RateName;

/// How many requests each limit has refused, since this process was started.
#[derive(Debug, Default)]
pub struct RateCounters([AtomicU64; RateName::ALL.len()]);

impl RateCounters {
    /// How many that limit has refused.
    #[must_use]
    pub fn refused(&self, limit: RateName) -> u64 {
        self.0[limit as usize].load(Ordering::Relaxed)
    }

    pub(super) fn count(&self, limit: RateName) {
        self.0[limit as usize].fetch_add(1, Ordering::Relaxed);
    }
}
