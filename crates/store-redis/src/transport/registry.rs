use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::limiter::{CallLimiter, CallLimits};
use threadkeep_store::{CallRejected, Links};

/// The call limiters, and the counts of refused calls. Calls in flight are counted only when metrics are read, so that
/// counting does not slow down calls.
#[derive(Debug, Default)]
pub(crate) struct ConnectionRegistry {
    limiters: Mutex<Vec<Weak<CallLimiter>>>,
    opened: AtomicU64,
    open: AtomicU64,
    full: AtomicU64,
    late: AtomicU64,
    epoch: AtomicU64,
}

impl ConnectionRegistry {
    pub(super) fn limiter(&self, bounds: CallLimits) -> Arc<CallLimiter> {
        let limiter = Arc::new(CallLimiter::new(bounds));
        let mut limiters = self.limiters.lock().unwrap_or_else(PoisonError::into_inner);
        limiters.retain(|limiter| limiter.strong_count() > 0);
        limiters.push(Arc::downgrade(&limiter));
        limiter
    }

    /// Begins a new epoch. Called after a server has restarted, changed its role, or been replaced.
    pub(super) fn begin_epoch(&self) {
        self.epoch.fetch_add(1, Ordering::AcqRel);
    }

    /// Returns the current epoch. Data that was read in an earlier epoch may be obsolete, because a server that may
    /// have lost data is reached over a new connection, which begins a new epoch.
    pub(super) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    pub(super) fn opened(&self) {
        self.opened.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn refused(&self, why: &CallRejected) {
        let count = match why {
            CallRejected::Unreachable(_) | CallRejected::Silent => &self.open,
            CallRejected::Full => &self.full,
            CallRejected::Late => &self.late,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count(&self) -> Links {
        let limiters = self.limiters.lock().unwrap_or_else(PoisonError::into_inner);
        let limiters: Vec<_> = limiters.iter().filter_map(Weak::upgrade).collect();
        let sum =
            |of: fn(&CallLimiter) -> usize| limiters.iter().map(|limiter| of(limiter) as u64).sum();
        Links {
            opened: self.opened.load(Ordering::Relaxed),
            refused_open: self.open.load(Ordering::Relaxed),
            refused_full: self.full.load(Ordering::Relaxed),
            refused_late: self.late.load(Ordering::Relaxed),
            in_flight: sum(CallLimiter::in_flight),
            waiting: sum(CallLimiter::waiting),
            ..Links::default()
        }
    }
}
