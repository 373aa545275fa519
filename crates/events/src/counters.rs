//! Counters of events.

use std::sync::atomic::{AtomicU64, Ordering};

use super::lag::Lag;

/// A counter or gauge that tasks share.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

/// Counters of this replica's events, since its start.
#[derive(Debug, Default)]
pub struct EventCounters {
    /// Events read from the log, once for each that reads it.
    pub events_read: Counter,
    /// Threads that the reaper has ended with their state.
    pub threads_ended: Counter,
    /// Threads that the reaper has found without it.
    pub threads_lost: Counter,
    /// Threads that were used since they were due.
    pub threads_moved: Counter,
    /// Age in milliseconds of the oldest due thread that has not been ended; 0 without one.
    pub reaper_lag_ms: Counter,
    /// Whether the reaper has stopped, as its clock and the store's differ by too much: 0 or 1.
    pub reaper_stopped: Counter,
    /// Streams of threads that are open.
    pub thread_streams: Counter,
    /// Streams of all threads that are open.
    pub global_streams: Counter,
    /// Streams whose reader was too slow.
    pub streams_cut_off: Counter,
    /// Resets sent to readers that missed events.
    pub resets: Counter,
    /// Ends of requests that were not logged, as there were too many or the store failed.
    pub sessions_dropped: Counter,
    /// Records of events and endpoints that were skipped, as they cannot be read.
    pub unreadable: Counter,
    /// Deliveries to webhook endpoints.
    pub webhooks: DeliveryCounters,
    /// Deliveries to subscribers in this process.
    pub subscribers: DeliveryCounters,
}

/// Counters of deliveries by outcome.
#[derive(Debug, Default)]
pub struct DeliveryCounters {
    /// Events that were taken.
    pub delivered: Counter,
    /// Attempts that failed.
    pub failed: Counter,
    /// Events that were given up for now.
    pub parked: Counter,
    /// The lag of deliveries.
    pub lag: Lag,
}

impl Counter {
    /// One more.
    #[doc(hidden)]
    pub fn inc(&self) {
        self.add(1);
    }

    /// So many more.
    #[doc(hidden)]
    pub fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    /// One less.
    #[doc(hidden)]
    pub fn dec(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    /// Another number.
    #[doc(hidden)]
    pub fn set(&self, number: u64) {
        self.0.store(number, Ordering::Relaxed);
    }

    /// The number.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
