use std::collections::BTreeMap;

use goose::metrics::GooseMetrics;
use serde::Serialize;

/// The durations of one kind of request, from the first byte sent to the last byte received.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    pub(super) method: String,
    pub(super) name: String,
    pub(super) requests: usize,
    pub(super) failures: usize,
    pub(super) per_second: f64,
    pub(super) mean_ms: f64,
    pub(super) p50_ms: f64,
    pub(super) p90_ms: f64,
    pub(super) p99_ms: f64,
    pub(super) max_ms: f64,
    /// Number of answers by status. 0 means no answer.
    pub(super) statuses: BTreeMap<u16, usize>,
}

/// Returns all kinds of requests, most frequent first.
pub(super) fn all(metrics: &GooseMetrics, seconds: f64) -> Vec<Row> {
    let mut rows: Vec<_> = metrics
        .requests
        .values()
        .map(|measured| {
            let times = &measured.raw_data;
            let requests = measured.success_count + measured.fail_count;
            let at = |part| millis(times.percentile_us(part));
            Row {
                method: measured.method_label().to_owned(),
                name: measured.path.clone(),
                requests,
                failures: measured.fail_count,
                per_second: rounded(requests as f64 / seconds),
                mean_ms: rounded(times.average_ms()),
                p50_ms: at(0.5),
                p90_ms: at(0.9),
                p99_ms: at(0.99),
                max_ms: millis(times.maximum_time_us),
                statuses: measured.status_code_counts.clone().into_iter().collect(),
            }
        })
        .collect();
    rows.sort_by(|a, b| b.requests.cmp(&a.requests).then(a.name.cmp(&b.name)));
    rows
}

fn millis(micros: u64) -> f64 {
    rounded(micros as f64 / 1_000.0)
}

fn rounded(number: f64) -> f64 {
    (number * 1_000.0).round() / 1_000.0
}
