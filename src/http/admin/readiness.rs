//! Whether requests are still wanted here.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::store::millis;

/// How long an answer of the store that it takes writes is believed. Several balancers ask every few
/// seconds, and strangers as often as they like: they cost one write a second at most.
const FRESH: Duration = Duration::from_secs(1);

/// Whether a load balancer may send requests. Clones share it.
#[derive(Debug, Clone)]
pub struct Readiness {
    is_leaving: Arc<AtomicBool>,
    start: Instant,
    /// Until when the store is taken to take writes, in milliseconds from the start.
    fresh_until_ms: Arc<AtomicU64>,
}

impl Default for Readiness {
    fn default() -> Self {
        Self {
            is_leaving: Arc::default(),
            start: Instant::now(),
            fresh_until_ms: Arc::default(),
        }
    }
}

impl Readiness {
    /// From now on `/readyz` says that requests are to go elsewhere; those that come are served.
    pub fn leave(&self) {
        self.is_leaving.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_leaving(&self) -> bool {
        self.is_leaving.load(Ordering::Relaxed)
    }

    /// Whether the store has just taken a write.
    pub(super) fn is_fresh(&self) -> bool {
        millis(self.start.elapsed()) < self.fresh_until_ms.load(Ordering::Relaxed)
    }

    /// The store has taken one.
    pub(super) fn confirm(&self) {
        let until = millis(self.start.elapsed() + FRESH);
        self.fresh_until_ms.store(until, Ordering::Relaxed);
    }
}
