use std::sync::OnceLock;
use std::time::Instant;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use super::super::labels::Labels;
use super::ObservedStore;
use threadkeep_stats as stats;
use threadkeep_stats::{Stats, Use};
use threadkeep_store::{StoreError, WriteError};
use threadkeep_trace::{Context, Ended, SpanKind, Spending};

const BUCKETS: [f64; 12] = [
    0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.05, 0.25, 1.0, 2.5,
];

/// Kinds of errors. [`kind_of`] returns an index into this array.
const ERROR_KINDS: [&str; 6] = [
    "unavailable",
    "full",
    "interrupted",
    "timeout",
    "unconfirmed",
    "corrupt",
];

#[derive(Debug, Clone)]
pub(super) struct Families {
    stats: Stats,
    durations: Family<Labels<2>, Histogram>,
    errors: Family<Labels<3>, Counter>,
}

/// Metrics of one store operation. The time series are created on first use, because most replicas use only some
/// operations.
#[derive(Debug)]
pub(super) struct Call {
    /// Index of the operation in the statistics of the last minute.
    kind: usize,
    part: &'static str,
    operation: &'static str,
    families: Families,
    series: OnceLock<Series>,
}

#[derive(Debug)]
struct Series {
    duration: Histogram,
    errors: [Counter; ERROR_KINDS.len()],
}

impl Families {
    pub(super) fn register(registry: &mut Registry, stats: &Stats) -> Self {
        let families = Self {
            stats: stats.clone(),
            durations: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
            errors: Family::default(),
        };
        let (name, help) = ("store_duration", "Duration of store operations");
        registry.register_with_unit(name, help, Unit::Seconds, families.durations.clone());
        let help = "Failed store operations, by operation and kind";
        registry.register("store_errors", help, families.errors.clone());
        families
    }

    pub(super) fn call(&self, operation: &'static str, part: &'static str) -> Call {
        Call {
            kind: self.stats.kind(part, operation),
            part,
            operation,
            families: self.clone(),
            series: OnceLock::new(),
        }
    }
}

impl Call {
    pub(super) fn observe<T, E: Failed>(
        &self,
        start: Instant,
        outcome: &Result<T, E>,
        used: Option<Use<'_>>,
        store: &ObservedStore,
        spending: Spending,
    ) {
        let ended = Instant::now();
        let took = ended - start;
        let series = self.series.get_or_init(|| self.series());
        series.duration.observe(took.as_secs_f64());
        let error = outcome.as_ref().err().and_then(Failed::store_error);
        if let Some(error) = error {
            series.errors[kind_of(error)].inc();
        }
        let recording = spending.context().and_then(Context::recording);
        if let Some(recording) = recording {
            recording.part(start, ended, self.span(store.is_remote, error));
        }
        store.recorder.record(&stats::Call {
            kind: self.kind,
            ended,
            took,
            has_failed: error.is_some(),
            used,
        });
    }

    /// Creates a series with the value 0 for each kind of error, so that an alert can detect the first error of an
    /// operation.
    fn series(&self) -> Series {
        let (operation, part) = (("operation", self.operation), ("part", self.part));
        let families = &self.families;
        let error = |kind| {
            let labels = [operation, ("kind", kind), part];
            families.errors.get_or_create_owned(&labels)
        };
        Series {
            duration: families.durations.get_or_create_owned(&[operation, part]),
            errors: ERROR_KINDS.map(error),
        }
    }

    /// Builds a span according to the [conventions for
    /// databases](https://opentelemetry.io/docs/specs/semconv/database/database-spans/).
    fn span(&self, is_remote: bool, error: Option<&StoreError>) -> Ended {
        let (kind, system) = match is_remote {
            true => (SpanKind::Client, "redis"),
            false => (SpanKind::Internal, "threadkeep"),
        };
        let mut attributes = vec![
            ("db.system.name", system.into()),
            ("db.operation.name", self.operation.into()),
            ("threadkeep.store.part", self.part.into()),
        ];
        attributes.extend(error.map(|error| ("error.type", ERROR_KINDS[kind_of(error)].into())));
        Ended {
            name: format!("{} {}", self.operation, self.part).into(),
            kind,
            attributes,
            has_failed: error.is_some(),
        }
    }
}

fn kind_of(error: &StoreError) -> usize {
    match error {
        StoreError::Unavailable(_) => 0,
        StoreError::Full => 1,
        StoreError::Interrupted(_) => 2,
        StoreError::Timeout(_) => 3,
        StoreError::Unconfirmed { .. } => 4,
        StoreError::Corrupt(_) => 5,
    }
}

/// A result that may be a store error. A refusal is not a store error, because the store worked correctly.
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
