//! Records that cannot be read, among others that can.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use threadkeep_domain::Position;
use threadkeep_store::StoreError;

/// Counts the records that are skipped, so that a bad one does not cost its readers all the others.
#[derive(Debug, Default)]
pub(super) struct Unreadable {
    skipped: AtomicU64,
    /// How far such events were logged, by bucket: a log is read again and again at its end, by
    /// several readers.
    events: Mutex<HashMap<u16, Position>>,
}

impl Unreadable {
    /// How many records were skipped; those of lists count each time.
    pub(super) fn skipped(&self) -> u64 {
        self.skipped.load(Ordering::Relaxed)
    }

    /// The readable records of a list.
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

    /// The same for one record of such a list.
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

    /// Has those events logged and counted that were not yet.
    pub(super) fn skip_events(&self, bucket: u16, places: &[Position]) {
        if places.is_empty() {
            return;
        }
        let mut told = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        let told = told.entry(bucket).or_default();
        for place in places.iter().filter(|place| **place > *told) {
            self.skipped.fetch_add(1, Ordering::Relaxed);
            tracing::error!(bucket, %place, "unreadable event skipped");
        }
        *told = places.iter().copied().fold(*told, Position::max);
    }
}
