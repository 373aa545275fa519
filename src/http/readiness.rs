//! Whether requests are still wanted here.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether a load balancer may send requests. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Readiness {
    is_leaving: Arc<AtomicBool>,
}

impl Readiness {
    /// From now on `/readyz` says that requests are to go elsewhere; those that come are served.
    pub fn leave(&self) {
        self.is_leaving.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_leaving(&self) -> bool {
        self.is_leaving.load(Ordering::Relaxed)
    }
}
