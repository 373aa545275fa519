//! The figures of all workers together.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::{Answers, Latency, Level};
use threadkeep_domain::ThreadId;

/// The figures at one moment.
#[derive(Debug, Clone)]
pub struct Report {
    /// Which process they are about.
    pub replica: Replica,
    /// The time that recent figures are about: up to 60 s.
    pub window: Duration,
    /// The requests by route and method, sorted by these.
    pub routes: Vec<RouteRow>,
    /// All requests.
    pub all_routes: Requests,
    /// The calls of the store, in the order of its parts.
    pub calls: Vec<CallRow>,
    /// The threads that were used most, and the largest.
    pub threads: ThreadLists,
    /// Numbers of this moment.
    pub level: Level,
}

/// A process.
#[derive(Debug, Clone)]
pub struct Replica {
    /// 16 random hex digits.
    pub id: String,
    /// When it began to record.
    pub started_at: SystemTime,
    /// When the report was made, by the clock that the start is measured by.
    pub now: SystemTime,
}

/// The requests of one route and method.
#[derive(Debug, Clone)]
pub struct RouteRow {
    /// The template of the path.
    pub route: Arc<str>,
    /// The method.
    pub method: &'static str,
    /// The requests.
    pub requests: Requests,
}

/// Requests, since the start and recent ones.
#[derive(Debug, Clone, Copy)]
pub struct Requests {
    /// All since the start.
    pub total: u64,
    /// Those that were answered with 5xx.
    pub errors_total: u64,
    /// Recent ones that were answered with 4xx.
    pub client_errors: u64,
    /// Recent ones that were answered with 5xx.
    pub errors: u64,
    /// The number of recent ones, and how long they took to the start of the response.
    pub durations: Durations,
}

/// The calls of the store of one kind.
#[derive(Debug, Clone, Copy)]
pub struct CallRow {
    /// The part of the store.
    pub part: &'static str,
    /// The operation.
    pub operation: &'static str,
    /// All since the start.
    pub calls_total: u64,
    /// Those that failed.
    pub failures_total: u64,
    /// The number of recent ones, and how long they took.
    pub durations: Durations,
}

/// How long recent requests or calls took. `None` if there were none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Durations {
    /// How many there were.
    pub count: u64,
    /// The duration that half of them did not exceed.
    pub p50: Option<Duration>,
    /// The duration that nine of ten did not exceed.
    pub p90: Option<Duration>,
    /// The duration that 99 of 100 did not exceed.
    pub p99: Option<Duration>,
    /// The longest duration.
    pub max: Option<Duration>,
}

/// Lists of threads, each of at most 20, the first of its kind first.
#[derive(Debug, Clone)]
pub struct ThreadLists {
    /// By accepted writes.
    pub by_writes: Vec<Busy>,
    /// By reads.
    pub by_reads: Vec<Busy>,
    /// By bytes of values that were read and written.
    pub by_bytes: Vec<Busy>,
    /// By the size of the state.
    pub largest: Vec<LargeState>,
}

/// A thread that was used much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Busy {
    /// Which.
    pub id: ThreadId,
    /// How often, or how many bytes: at least this number.
    pub count: u64,
}

/// A large state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LargeState {
    /// Of which thread.
    pub id: ThreadId,
    /// Its size.
    pub size_bytes: u64,
    /// When it had that size.
    pub seen_at: SystemTime,
}

impl Durations {
    pub(super) fn of(latency: &Latency) -> Self {
        Self {
            count: latency.count(),
            p50: latency.percentile(50),
            p90: latency.percentile(90),
            p99: latency.percentile(99),
            max: latency.longest(),
        }
    }
}

impl Requests {
    pub(super) fn of((total, errors_total, answers): (u64, u64, Answers)) -> Self {
        Self {
            total,
            errors_total,
            client_errors: answers.client_errors,
            errors: answers.errors,
            durations: Durations::of(&answers.durations),
        }
    }
}
