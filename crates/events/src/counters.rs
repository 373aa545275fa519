//! Counters of events.

use std::sync::atomic::{AtomicU64, Ordering};

use super::lag::Lag;

/// A number that many tasks count up, or set.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

/// Counters of this replica's events, since its start.
#[derive(Debug, Default)]
pub struct EventCounters {
    /// Events read from the log, once for each that reads it.
    pub events_read: Count,
    /// Threads that the reaper has ended with their state.
    pub threads_ended: Count,
    /// Threads that the reaper has found without it.
    pub threads_lost: Count,
    /// Threads that were used since they were due.
    pub threads_moved: Count,
    /// Age in milliseconds of the oldest due thread that has not been ended; 0 without one.
    pub reaper_lag_ms: Count,
    /// Whether the reaper has stopped, as its clock and the store's differ by too much: 0 or 1.
    pub reaper_stopped: Count,
    /// Streams of threads that are open.
    pub thread_streams: Count,
    /// Streams of all threads that are open.
    pub global_streams: Count,
    /// Streams whose reader was too slow.
    pub streams_cut_off: Count,
    /// Resets sent to readers that missed events.
    pub resets: Count,
    /// Ends of requests that were not logged, as there were too many or the store failed.
    pub sessions_dropped: Count,
    /// Records of events and endpoints that were skipped, as they cannot be read.
    pub unreadable: Count,
    /// Deliveries to webhook endpoints.
    pub webhooks: DeliveryCounters,
    /// Deliveries to subscribers in this process.
    pub subscribers: DeliveryCounters,
}

/// Counters of deliveries by outcome.
#[derive(Debug, Default)]
pub struct DeliveryCounters {
    /// Events that were taken.
    pub delivered: Count,
    /// Attempts that failed.
    pub failed: Count,
    /// Events that were given up for now.
    pub parked: Count,
    /// The lag of deliveries.
    pub lag: Lag,
}

impl Count {
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
