use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

const NONE_WAITING: u64 = u64::MAX;

/// The lag of all deliveries for one purpose.
#[derive(Debug, Default)]
pub struct Lag(Mutex<Vec<Weak<Oldest>>>);

/// The time at which the oldest waiting event of one slot was logged.
#[derive(Debug)]
pub(super) struct Oldest(AtomicU64);

impl Lag {
    pub(super) fn track(&self) -> Arc<Oldest> {
        let oldest = Arc::new(Oldest(AtomicU64::new(NONE_WAITING)));
        let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        slots.retain(|slot| slot.strong_count() > 0);
        slots.push(Arc::downgrade(&oldest));
        oldest
    }

    /// Returns how long the oldest event has been waiting, in milliseconds; 0 if no event is waiting.
    #[must_use]
    pub fn ms_at(&self, now_ms: u64) -> u64 {
        let slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let slots = slots.iter().filter_map(Weak::upgrade);
        let oldest = slots.map(|slot| slot.0.load(Ordering::Relaxed)).min();
        now_ms.saturating_sub(oldest.unwrap_or(NONE_WAITING))
    }
}

impl Oldest {
    pub(super) fn note(&self, logged_ms: Option<u64>) {
        self.0
            .store(logged_ms.unwrap_or(NONE_WAITING), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lag_is_the_longest_wait_of_all_open_slots() {
        let lag = Lag::default();
        assert_eq!(lag.ms_at(1_000), 0);

        let (one, other) = (lag.track(), lag.track());
        one.note(Some(400));
        other.note(Some(300));
        assert_eq!(lag.ms_at(1_000), 700);
        drop(other);
        assert_eq!(lag.ms_at(1_000), 600);
        one.note(None);

        assert_eq!(lag.ms_at(1_000), 0);
    }
}
