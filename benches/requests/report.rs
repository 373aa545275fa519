use std::time::Duration;

use super::load::Outcome;

pub(super) struct Row {
    name: String,
    pub(super) requests_per_second: f64,
    pub(super) p50: Duration,
    pub(super) p99: Duration,
    /// Microseconds per request.
    pub(super) server_cpu: f64,
    /// Microseconds per request.
    pub(super) redis_cpu: f64,
}

impl Row {
    pub(super) fn new(
        name: String,
        outcome: Outcome,
        server_cpu: Duration,
        redis_cpu: Duration,
    ) -> Self {
        let mut latencies = outcome.latencies;
        latencies.sort_unstable();
        let count = latencies.len();
        let per_request = |cpu: Duration| cpu.as_secs_f64() * 1e6 / count as f64;
        Self {
            name,
            requests_per_second: count as f64 / outcome.time.as_secs_f64(),
            p50: latencies[count / 2],
            p99: latencies[count * 99 / 100],
            server_cpu: per_request(server_cpu),
            redis_cpu: per_request(redis_cpu),
        }
    }
}

/// Formats the rows as a Markdown table. The first row of each group is the floor, a handler that does no work.
pub(super) fn table(groups: &[Vec<Row>]) -> String {
    let mut table = String::from(
        "| request | server CPU, µs | the floor's | ratio | Redis CPU, µs | requests/s | p50, µs | p99, µs |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    for group in groups {
        let [floor, rows @ ..] = &group[..] else {
            continue;
        };
        for row in rows {
            table += &format!(
                "| {} | {:.1} | {:.1} | {:.2} | {:.1} | {:.0} | {} | {} |\n",
                row.name,
                row.server_cpu,
                floor.server_cpu,
                row.server_cpu / floor.server_cpu,
                row.redis_cpu,
                row.requests_per_second,
                row.p50.as_micros(),
                row.p99.as_micros(),
            );
        }
    }
    table
}
