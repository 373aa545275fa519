use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use threadkeep_store::millis;

/// Time for which a successful write counts as proof that the store accepts writes. Probes therefore write at most once
/// per second, regardless of the number of clients.
const FRESH: Duration = Duration::from_secs(1);

/// Tracks whether this replica is ready for requests from a load balancer. Clones share the state.
#[derive(Debug, Clone)]
pub struct Readiness {
    is_leaving: Arc<AtomicBool>,
    start: Instant,
    /// Time at which the last successful write stops counting as proof, in milliseconds since `start`.
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
    /// Makes `/readyz` return 503 from now on. The server continues to serve requests.
    pub fn leave(&self) {
        self.is_leaving.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_leaving(&self) -> bool {
        self.is_leaving.load(Ordering::Relaxed)
    }

    pub fn is_fresh(&self) -> bool {
        millis(self.start.elapsed()) < self.fresh_until_ms.load(Ordering::Relaxed)
    }

    pub fn confirm(&self) {
        let until = millis(self.start.elapsed() + FRESH);
        self.fresh_until_ms.store(until, Ordering::Relaxed);
    }
}
