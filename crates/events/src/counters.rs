use std::sync::atomic::{AtomicU64, Ordering};

use super::lag::Lag;

/// A counter or gauge.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

/// Counters of this replica's events since its start.
#[derive(Debug, Default)]
pub struct EventCounters {
    /// Events read from the log, counted once per reader.
    pub events_read: Counter,
    /// Expired threads that were ended with their state.
    pub threads_ended: Counter,
    /// Expired threads whose state was lost.
    pub threads_lost: Counter,
    /// Due threads that turned out to be in use.
    pub threads_moved: Counter,
    /// How long the reaper, which ends expired threads, has been behind, in milliseconds; 0 if it is not behind.
    pub reaper_lag_ms: Counter,
    /// 1 if the reaper has stopped because the clocks of this replica and the store differ too much, else 0.
    pub reaper_stopped: Counter,
    /// Open streams of the events of one thread.
    pub thread_streams: Counter,
    /// Open streams of the events of all threads.
    pub global_streams: Counter,
    /// Streams closed because their reader was too slow.
    pub streams_cut_off: Counter,
    /// Resets sent to readers that missed events.
    pub resets: Counter,
    /// Completed requests that were not logged because the queue was full or the store failed.
    pub sessions_dropped: Counter,
    /// Records of events and endpoints that were skipped because they are unreadable.
    pub unreadable: Counter,
    /// Deliveries to webhook endpoints.
    pub webhooks: DeliveryCounters,
    /// Deliveries to subscribers in this process.
    pub subscribers: DeliveryCounters,
}

/// Counters of deliveries.
#[derive(Debug, Default)]
pub struct DeliveryCounters {
    /// Delivered events.
    pub delivered: Counter,
    /// Failed attempts.
    pub failed: Counter,
    /// Parked events.
    pub parked: Counter,
    /// How long events have waited for delivery.
    pub lag: Lag,
}

impl Counter {
    #[doc(hidden)]
    pub fn inc(&self) {
        self.add(1);
    }

    #[doc(hidden)]
    pub fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    #[doc(hidden)]
    pub fn dec(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    #[doc(hidden)]
    pub fn set(&self, number: u64) {
        self.0.store(number, Ordering::Relaxed);
    }

    /// Returns the current value.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
