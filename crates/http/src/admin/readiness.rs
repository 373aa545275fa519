//! Whether a load balancer may send requests to this replica.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use threadkeep_store::millis;

/// How long a successful write to the store counts as proof. So probes cost one write a second at
/// most, however many clients send them.
const FRESH: Duration = Duration::from_secs(1);

/// Whether a load balancer may send requests. Clones share it.
#[derive(Debug, Clone)]
pub struct Readiness {
    is_leaving: Arc<AtomicBool>,
    start: Instant,
    /// The time until which the last write counts, in milliseconds from the start.
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
    /// From now on, `/readyz` answers 503; the server still serves requests.
    pub fn leave(&self) {
        self.is_leaving.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_leaving(&self) -> bool {
        self.is_leaving.load(Ordering::Relaxed)
    }

    /// Whether the store has accepted a write just now.
    pub fn is_fresh(&self) -> bool {
        millis(self.start.elapsed()) < self.fresh_until_ms.load(Ordering::Relaxed)
    }

    /// Notes that the store has accepted a write.
    pub fn confirm(&self) {
        let until = millis(self.start.elapsed() + FRESH);
        self.fresh_until_ms.store(until, Ordering::Relaxed);
    }
}
