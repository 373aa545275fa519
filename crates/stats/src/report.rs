use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::{Latency, Level, ResponseStats};
use threadkeep_domain::ThreadId;

#[derive(Debug, Clone)]
pub struct Report {
    pub replica: Replica,
    /// Period covered by the recent counts, up to 60 s.
    pub window: Duration,
    /// Sorted by route and method.
    pub routes: Vec<RouteRow>,
    pub all_routes: Requests,
    /// In the order of the store's parts.
    pub calls: Vec<CallRow>,
    pub threads: ThreadLists,
    pub level: Level,
}

#[derive(Debug, Clone)]
pub struct Replica {
    /// 16 random hex digits.
    pub id: String,
    pub started_at: SystemTime,
    pub now: SystemTime,
}

#[derive(Debug, Clone)]
pub struct RouteRow {
    pub route: Arc<str>,
    pub method: &'static str,
    pub requests: Requests,
}

#[derive(Debug, Clone, Copy)]
pub struct Requests {
    pub total: u64,
    pub errors_total: u64,
    pub client_errors: u64,
    pub errors: u64,
    /// Durations of recent requests, each until the response started.
    pub durations: Durations,
}

#[derive(Debug, Clone, Copy)]
pub struct CallRow {
    pub part: &'static str,
    pub operation: &'static str,
    pub calls_total: u64,
    pub failures_total: u64,
    pub durations: Durations,
}

/// Percentiles of recent request or call durations. Each percentile is `None` if `count` is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Durations {
    pub count: u64,
    pub p50: Option<Duration>,
    pub p90: Option<Duration>,
    pub p99: Option<Duration>,
    pub max: Option<Duration>,
}

/// Lists of up to 20 threads each, highest first.
#[derive(Debug, Clone)]
pub struct ThreadLists {
    pub by_writes: Vec<Busy>,
    pub by_reads: Vec<Busy>,
    pub by_bytes: Vec<Busy>,
    pub largest: Vec<LargeState>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Busy {
    pub id: ThreadId,
    /// Lower bound of the number of uses or bytes.
    pub count: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LargeState {
    pub id: ThreadId,
    pub size_bytes: u64,
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
    pub(super) fn of((total, errors_total, responses): (u64, u64, ResponseStats)) -> Self {
        Self {
            total,
            errors_total,
            client_errors: responses.client_errors,
            errors: responses.errors,
            durations: Durations::of(&responses.durations),
        }
    }
}
