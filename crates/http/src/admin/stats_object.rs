use std::time::{Duration, SystemTime};

use serde::Serialize;
use utoipa::ToSchema;

use threadkeep_domain::rfc3339;
use threadkeep_stats::{Busy, CallRow, Durations, LargeState, Report, Requests, RouteRow};

/// Statistics of a replica.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct StatsObject {
    replica: ReplicaObject,
    /// Length of the period that the `window` objects cover, in seconds. Between 50 and 60, or less if the replica has
    /// just started.
    #[schema(minimum = 0, maximum = 60)]
    window_seconds: f64,
    /// Requests by route and method. Routes without requests are omitted.
    routes: Vec<RouteObject>,
    /// All requests.
    all_routes: RequestsObject,
    /// Calls to the store. Operations without calls are omitted.
    store: Vec<StoreCallsObject>,
    threads: ThreadListsObject,
    counts: CountsObject,
    events: EventsObject,
}

/// The replica that the statistics describe.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ReplicaObject {
    /// A random id that changes with each start of the process.
    id: String,
    version: &'static str,
    /// `memory` or `redis`.
    store: &'static str,
    /// When the replica started. Totals are counted from this time.
    #[schema(format = DateTime)]
    started_at: Option<String>,
    /// When the statistics were collected.
    #[schema(format = DateTime)]
    now: Option<String>,
}

/// Requests to a route with an HTTP method.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RouteObject {
    method: &'static str,
    /// The path template, such as `/v1/threads/current/state`.
    route: String,
    #[serde(flatten)]
    #[schema(inline)]
    requests: RequestsObject,
}

/// Numbers of requests.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RequestsObject {
    requests_total: u64,
    /// Requests that got a 5xx response.
    errors_total: u64,
    window: RequestsWindow,
}

/// Requests in the window. Durations are measured until the response begins.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RequestsWindow {
    requests: u64,
    /// Requests that got a 4xx response.
    client_errors: u64,
    /// Requests that got a 5xx response.
    errors: u64,
    #[serde(flatten)]
    #[schema(inline)]
    durations: DurationsObject,
}

/// Calls to one operation of the store.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct StoreCallsObject {
    /// The part of the store that the operation belongs to.
    part: &'static str,
    operation: &'static str,
    calls_total: u64,
    /// Calls that failed in the store.
    failures_total: u64,
    window: CallsWindow,
}

/// Calls in the window, with their durations.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct CallsWindow {
    calls: u64,
    #[serde(flatten)]
    #[schema(inline)]
    durations: DurationsObject,
}

/// Durations in milliseconds. Percentiles are accurate to within one eighth, and `max_ms` is exact. All values are null
/// if there were no requests or calls.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct DurationsObject {
    p50_ms: Option<f64>,
    p90_ms: Option<f64>,
    p99_ms: Option<f64>,
    max_ms: Option<f64>,
}

/// The 20 busiest threads in the window by each measure, busiest first. Includes the traffic of all protocols.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ThreadListsObject {
    /// The threads with the most accepted writes to state, metadata, keys, tasks and history.
    by_writes: Vec<ThreadWrites>,
    /// The threads with the most reads of state, metadata, keys, tasks and history.
    by_reads: Vec<ThreadReads>,
    /// The threads with the largest total size of values read and written.
    by_bytes: Vec<ThreadBytes>,
    /// The threads with the largest states read or written.
    largest: Vec<ThreadSize>,
}

/// A thread and the number of its writes.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ThreadWrites {
    thread_id: String,
    writes: u64,
}

/// A thread and the number of its reads.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ThreadReads {
    thread_id: String,
    reads: u64,
}

/// A thread and the number of bytes read and written.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ThreadBytes {
    thread_id: String,
    bytes: u64,
}

/// A thread and the largest size of its state.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ThreadSize {
    thread_id: String,
    size_bytes: u64,
    /// When the state had this size.
    #[schema(format = DateTime)]
    seen_at: Option<String>,
}

/// Current counts.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct CountsObject {
    /// The number of threads in the store, including some that have just ended. Null if the store did not answer.
    threads: Option<u64>,
    /// The memory that the embedded store uses, in bytes. Null if the store is Redis.
    bytes: Option<u64>,
    /// The memory limit of the embedded store, in bytes. Null if the store is Redis.
    memory_limit_bytes: Option<u64>,
    /// The number of open client connections.
    connections: u64,
    /// The number of open event streams.
    event_streams: u64,
}

/// Deliveries to webhook endpoints.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct EventsObject {
    /// How long the oldest undelivered event has been waiting for delivery by this replica, in milliseconds. 0 if no
    /// event is waiting.
    lag_ms: u64,
}

impl StatsObject {
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

fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

fn time(at: SystemTime) -> Option<String> {
    let since = at.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    rfc3339(since.as_millis().try_into().ok()?)
}
