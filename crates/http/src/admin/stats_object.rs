//! The answer about the figures of this replica.

use std::time::{Duration, SystemTime};

use serde::Serialize;
use utoipa::ToSchema;

use threadkeep_domain::rfc3339;
use threadkeep_stats::{Busy, CallRow, Durations, LargeState, Report, Requests, RouteRow};

/// Figures of a replica.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct StatsObject {
    replica: ReplicaObject,
    /// The time that the figures called `window` are about: 50 to 60 seconds, and less at first.
    #[schema(minimum = 0, maximum = 60)]
    window_seconds: f64,
    /// The requests by route and method. Routes without requests are left out.
    routes: Vec<RouteObject>,
    /// All requests.
    all_routes: RequestsObject,
    /// The calls of the store. Operations without calls are left out.
    store: Vec<StoreCallsObject>,
    threads: ThreadListsObject,
    counts: CountsObject,
    events: EventsObject,
}

/// Which replica the figures are about.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ReplicaObject {
    /// Random for each start of a process.
    id: String,
    version: &'static str,
    /// `memory` or `redis`.
    store: &'static str,
    /// The start of the totals.
    #[schema(format = DateTime)]
    started_at: Option<String>,
    /// The time of the figures.
    #[schema(format = DateTime)]
    now: Option<String>,
}

/// The requests of a route and a method.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RouteObject {
    method: &'static str,
    /// The template of the path, such as `/v1/threads/current/state`.
    route: String,
    #[serde(flatten)]
    #[schema(inline)]
    requests: RequestsObject,
}

/// Requests.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RequestsObject {
    requests_total: u64,
    /// Those that were answered with 5xx.
    errors_total: u64,
    window: RequestsWindow,
}

/// Requests of the window, with the times to the start of their responses.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RequestsWindow {
    requests: u64,
    /// Those that were answered with 4xx.
    client_errors: u64,
    /// Those that were answered with 5xx.
    errors: u64,
    #[serde(flatten)]
    #[schema(inline)]
    durations: DurationsObject,
}

/// The calls of one operation of the store.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct StoreCallsObject {
    /// The part of the store that the operation belongs to.
    part: &'static str,
    operation: &'static str,
    calls_total: u64,
    /// Those in which the store failed.
    failures_total: u64,
    window: CallsWindow,
}

/// Calls of the window, with their times.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct CallsWindow {
    calls: u64,
    #[serde(flatten)]
    #[schema(inline)]
    durations: DurationsObject,
}

/// Times in milliseconds, to within an eighth; `max_ms` is exact. Null if there were none.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct DurationsObject {
    p50_ms: Option<f64>,
    p90_ms: Option<f64>,
    p99_ms: Option<f64>,
    max_ms: Option<f64>,
}

/// The first 20 threads of the window by each measure, the first one first. They count what the store did for them, by
/// whatever protocol.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ThreadListsObject {
    /// By accepted writes to state, metadata, keys, tasks and history.
    by_writes: Vec<ThreadWrites>,
    /// By reads of the same.
    by_reads: Vec<ThreadReads>,
    /// By bytes of values that were read and written.
    by_bytes: Vec<ThreadBytes>,
    /// By the largest size that their state had when it was written or read.
    largest: Vec<ThreadSize>,
}

/// A thread that was written often.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ThreadWrites {
    thread_id: String,
    writes: u64,
}

/// A thread that was read often.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ThreadReads {
    thread_id: String,
    reads: u64,
}

/// A thread of which much was read and written.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ThreadBytes {
    thread_id: String,
    bytes: u64,
}

/// A thread with a large state.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ThreadSize {
    thread_id: String,
    size_bytes: u64,
    /// When it had that size.
    #[schema(format = DateTime)]
    seen_at: Option<String>,
}

/// Numbers of this moment.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct CountsObject {
    /// Threads of the store, with some that have just ended; null if the store did not answer.
    threads: Option<u64>,
    /// Memory that the embedded store takes; null with Redis.
    bytes: Option<u64>,
    /// The most that it may take.
    memory_limit_bytes: Option<u64>,
    /// Open connections of clients.
    connections: u64,
    /// Open streams of events.
    event_streams: u64,
}

/// Deliveries to webhook endpoints.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct EventsObject {
    /// For how long the oldest event has waited that this replica has to deliver; 0 if none waits.
    lag_ms: u64,
}

impl StatsObject {
    /// A report, with the number of threads that the store has.
    pub(super) fn of(report: Report, stored_threads: Option<u64>) -> Self {
        let (level, threads) = (report.level, report.threads);
        Self {
            replica: ReplicaObject {
                id: report.replica.id,
                version: env!("CARGO_PKG_VERSION"),
                store: level.store,
                started_at: time(report.replica.started_at),
                now: time(report.replica.now),
            },
            window_seconds: (report.window.as_secs_f64() * 10.0).round() / 10.0,
            routes: report.routes.into_iter().map(RouteObject::of).collect(),
            all_routes: RequestsObject::of(report.all_routes),
            store: report.calls.into_iter().map(StoreCallsObject::of).collect(),
            threads: ThreadListsObject {
                by_writes: list(threads.by_writes, |thread_id, writes| ThreadWrites {
                    thread_id,
                    writes,
                }),
                by_reads: list(threads.by_reads, |thread_id, reads| ThreadReads {
                    thread_id,
                    reads,
                }),
                by_bytes: list(threads.by_bytes, |thread_id, bytes| ThreadBytes {
                    thread_id,
                    bytes,
                }),
                largest: threads.largest.into_iter().map(ThreadSize::of).collect(),
            },
            counts: CountsObject {
                threads: stored_threads,
                bytes: level.store_bytes,
                memory_limit_bytes: level.store_limit_bytes,
                connections: level.connections,
                event_streams: level.event_streams,
            },
            events: EventsObject {
                lag_ms: level.delivery_lag_ms,
            },
        }
    }
}

impl RouteObject {
    fn of(row: RouteRow) -> Self {
        Self {
            method: row.method,
            route: row.route.to_string(),
            requests: RequestsObject::of(row.requests),
        }
    }
}

impl RequestsObject {
    fn of(requests: Requests) -> Self {
        Self {
            requests_total: requests.total,
            errors_total: requests.errors_total,
            window: RequestsWindow {
                requests: requests.durations.count,
                client_errors: requests.client_errors,
                errors: requests.errors,
                durations: DurationsObject::of(requests.durations),
            },
        }
    }
}

impl StoreCallsObject {
    fn of(row: CallRow) -> Self {
        Self {
            part: row.part,
            operation: row.operation,
            calls_total: row.calls_total,
            failures_total: row.failures_total,
            window: CallsWindow {
                calls: row.durations.count,
                durations: DurationsObject::of(row.durations),
            },
        }
    }
}

impl DurationsObject {
    fn of(durations: Durations) -> Self {
        Self {
            p50_ms: durations.p50.map(milliseconds),
            p90_ms: durations.p90.map(milliseconds),
            p99_ms: durations.p99.map(milliseconds),
            max_ms: durations.max.map(milliseconds),
        }
    }
}

impl ThreadSize {
    fn of(state: LargeState) -> Self {
        Self {
            thread_id: state.id.to_string(),
            size_bytes: state.size_bytes,
            seen_at: time(state.seen_at),
        }
    }
}

fn list<T>(threads: Vec<Busy>, object: fn(String, u64) -> T) -> Vec<T> {
    let objects = threads
        .into_iter()
        .map(|busy| object(busy.id.to_string(), busy.count));
    objects.collect()
}

/// Milliseconds with microseconds behind the point.
fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

fn time(at: SystemTime) -> Option<String> {
    let since = at.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    rfc3339(since.as_millis().try_into().ok()?)
}
