use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use threadkeep_domain::Position;
use threadkeep_store::StoreError;

/// Skips and counts unreadable records, so that readers can read the other records in a list.
#[derive(Debug, Default)]
pub(super) struct Unreadable {
    skipped: AtomicU64,
    /// For each bucket, the position of the last unreadable event that was reported in the server log. Readers read the
    /// same events repeatedly, but each unreadable event must be reported only once.
    events: Mutex<HashMap<u16, Position>>,
}

impl Unreadable {
    /// Returns the number of skipped records. A record in a list is counted each time it is read.
    pub(super) fn skipped(&self) -> u64 {
        self.skipped.load(Ordering::Relaxed)
    }

    pub(super) fn skip<T>(
        &self,
        list: &'static str,
        records: impl IntoIterator<Item = Result<T, StoreError>>,
    ) -> Vec<T> {
        let records = records.into_iter();
        records
            .filter_map(|record| self.skip_one(list, record))
            .collect()
    }

    pub(super) fn skip_one<T>(
        &self,
        list: &'static str,
        record: Result<T, StoreError>,
    ) -> Option<T> {
        record
            .inspect_err(|error| {
                self.skipped.fetch_add(1, Ordering::Relaxed);
                tracing::error!(%error, list, "unreadable record skipped");
            })
            .ok()
    }

    /// Logs and counts unreadable events that were not logged before.
    pub(super) fn skip_events(&self, bucket: u16, positions: &[Position]) {
        if positions.is_empty() {
            return;
        }
        let mut logged = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        let logged = logged.entry(bucket).or_default();
        for position in positions.iter().filter(|position| **position > *logged) {
            self.skipped.fetch_add(1, Ordering::Relaxed);
            tracing::error!(bucket, %position, "unreadable event skipped");
        }
        *logged = positions.iter().copied().fold(*logged, Position::max);
    }
}
