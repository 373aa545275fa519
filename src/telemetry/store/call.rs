//! One operation of the store, measured.

use std::future::Future;
use std::time::Instant;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use super::super::labels::{StoreFailure, StoreOperation};
use crate::store::{StoreError, WriteError};

const BUCKETS: [f64; 12] = [
    0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.05, 0.25, 1.0, 2.5,
];

/// Latency and errors of all operations.
pub(super) struct Families {
    durations: Family<StoreOperation, Histogram>,
    errors: Family<StoreFailure, Counter>,
}

/// Latency and errors of one operation, looked up once.
#[derive(Debug)]
pub(super) struct Call {
    duration: Histogram,
    unavailable: Counter,
    full: Counter,
    interrupted: Counter,
    timeout: Counter,
    unconfirmed: Counter,
    corrupt: Counter,
}

impl Families {
    /// Adds the metrics to a registry.
    pub(super) fn register(registry: &mut Registry) -> Self {
        let families = Self {
            durations: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
            errors: Family::default(),
        };
        let (name, help) = ("store_duration", "Duration of store operations");
        registry.register_with_unit(name, help, Unit::Seconds, families.durations.clone());
        let help = "Failed store operations, by operation and kind";
        registry.register("store_errors", help, families.errors.clone());
        families
    }

    /// The series of an operation. They exist from the start, so an alert sees the first error.
    pub(super) fn call(&self, operation: &'static str, part: &'static str) -> Call {
        let failure = |kind| {
            let labels = StoreFailure {
                operation,
                kind,
                part,
            };
            self.errors.get_or_create_owned(&labels)
        };
        let labels = StoreOperation { operation, part };
        Call {
            duration: self.durations.get_or_create_owned(&labels),
            unavailable: failure("unavailable"),
            full: failure("full"),
            interrupted: failure("interrupted"),
            timeout: failure("timeout"),
            unconfirmed: failure("unconfirmed"),
            corrupt: failure("corrupt"),
        }
    }
}

impl Call {
    pub(super) async fn observe<T, E: Failed>(
        &self,
        call: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let start = Instant::now();
        let outcome = call.await;
        self.duration.observe(start.elapsed().as_secs_f64());
        if let Some(error) = outcome.as_ref().err().and_then(Failed::store_error) {
            self.failures(error).inc();
        }
        outcome
    }

    fn failures(&self, error: &StoreError) -> &Counter {
        match error {
            StoreError::Unavailable(_) => &self.unavailable,
            StoreError::Full => &self.full,
            StoreError::Interrupted(_) => &self.interrupted,
            StoreError::Timeout(_) => &self.timeout,
            StoreError::Unconfirmed { .. } => &self.unconfirmed,
            StoreError::Corrupt(_) => &self.corrupt,
        }
    }
}

/// An error of the store. A refusal is not one: the store has done its work.
pub(super) trait Failed {
    fn store_error(&self) -> Option<&StoreError>;
}

impl Failed for StoreError {
    fn store_error(&self) -> Option<&StoreError> {
        Some(self)
    }
}

impl Failed for WriteError {
    fn store_error(&self) -> Option<&StoreError> {
        match self {
            Self::Store(error) => Some(error),
            Self::Refused(_) => None,
        }
    }
}
