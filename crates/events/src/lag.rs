use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

const NOTHING: u64 = u64::MAX;

/// The lag of all deliveries for one purpose.
#[derive(Debug, Default)]
pub struct Lag(Mutex<Vec<Weak<Oldest>>>);

/// The time at which the oldest waiting event of one share was logged.
#[derive(Debug)]
pub(super) struct Oldest(AtomicU64);

impl Lag {
    pub(super) fn share(&self) -> Arc<Oldest> {
        let share = Arc::new(Oldest(AtomicU64::new(NOTHING)));
        let mut shares = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        shares.retain(|share| share.strong_count() > 0);
        shares.push(Arc::downgrade(&share));
        share
    }

    /// Returns how long the oldest event has been waiting, in milliseconds; 0 if no event is waiting.
    #[must_use]
    pub fn ms_at(&self, now_ms: u64) -> u64 {
        let shares = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let shares = shares.iter().filter_map(Weak::upgrade);
        let oldest = shares.map(|share| share.0.load(Ordering::Relaxed)).min();
        now_ms.saturating_sub(oldest.unwrap_or(NOTHING))
    }
}

impl Oldest {
    pub(super) fn note(&self, logged_ms: Option<u64>) {
        self.0
            .store(logged_ms.unwrap_or(NOTHING), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_wait_of_those_that_are_held_counts() {
        let lag = Lag::default();
        assert_eq!(lag.ms_at(1_000), 0);

        let (one, other) = (lag.share(), lag.share());
        one.note(Some(400));
        other.note(Some(300));
        assert_eq!(lag.ms_at(1_000), 700);
        drop(other);
        assert_eq!(lag.ms_at(1_000), 600);
        one.note(None);

        assert_eq!(lag.ms_at(1_000), 0);
    }
}
