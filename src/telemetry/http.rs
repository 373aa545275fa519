use std::sync::Arc;

use actix_web::http::{Method, StatusCode};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use super::labels::{Identity, Labels, Request, method_label};
use threadkeep_identity::RejectedCookie;
use threadkeep_stats::RouteRecorder;

const BUCKETS: [f64; 12] = [
    0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.1, 0.5, 1.0, 2.5,
];

/// Request metrics: counts by route, method and status; latency by route; errors by code; and how threads were
/// identified.
#[derive(Debug, Clone)]
pub struct HttpMetrics {
    pub(super) requests: Family<Request, Counter>,
    pub(super) durations: Family<[(&'static str, Arc<str>); 1], Histogram>,
    pub(super) errors: Family<Labels<1>, Counter>,
    pub(super) identities: Family<Identity, Counter>,
    rejected_cookies: Family<Labels<1>, Counter>,
    pub(super) foreign_without_cookie: Counter,
    pub(super) refused_bytes: Family<Labels<1>, Counter>,
}

impl HttpMetrics {
    #[must_use]
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            requests: Family::default(),
            durations: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
            errors: Family::default(),
            identities: Family::default(),
            rejected_cookies: Family::default(),
            foreign_without_cookie: Counter::default(),
            refused_bytes: Family::default(),
        };
        let help = "Responses, by route, method and status";
        registry.register("http_requests", help, metrics.requests.clone());
        let (name, help) = ("http_request_duration", "Time to the start of the response");
        registry.register_with_unit(name, help, Unit::Seconds, metrics.durations.clone());
        let help = "Error responses, by code";
        registry.register("http_errors", help, metrics.errors.clone());
        let help = "Requests, by how their thread was identified and by signing key";
        registry.register("requests_identified", help, metrics.identities.clone());
        let help =
            "Requests with a cookie that was ignored because it is malformed or no key verifies it";
        registry.register("cookies_rejected", help, metrics.rejected_cookies.clone());
        for rejected in [RejectedCookie::Malformed, RejectedCookie::Unverified] {
            metrics.rejected_cookie(rejected);
        }
        let help = "Writes without a cookie from pages of other origins; each got a new thread";
        registry.register(
            "foreign_writes_without_cookie",
            help,
            metrics.foreign_without_cookie.clone(),
        );
        let (name, help) = ("rejected", "Bytes that a limit has rejected");
        registry.register_with_unit(name, help, Unit::Bytes, metrics.refused_bytes.clone());
        metrics
    }

    pub(super) fn rejected_cookie(&self, rejected: RejectedCookie) -> Counter {
        let reason = match rejected {
            RejectedCookie::Malformed => "malformed",
            RejectedCookie::Unverified => "unverified",
        };
        self.rejected_cookies
            .get_or_create_owned(&[("reason", reason)])
    }
}

/// Metrics of a route, looked up once.
#[derive(Debug)]
pub(super) struct RouteSeries {
    pub(super) route: Arc<str>,
    pub(super) duration: Histogram,
    requests: Vec<AnswerSeries>,
}

#[derive(Debug)]
pub(super) struct AnswerSeries {
    method: &'static str,
    status: StatusCode,
    pub(super) count: Counter,
    /// Index of this route and method in the statistics of the last minute.
    pub(super) number: usize,
}

impl RouteSeries {
    pub(super) fn new(metrics: &HttpMetrics, pattern: &str) -> Self {
        let route: Arc<str> = label(pattern).into();
        let labels = [("route", Arc::clone(&route))];
        Self {
            route,
            duration: metrics.durations.get_or_create_owned(&labels),
            requests: Vec::new(),
        }
    }

    pub(super) fn answers(
        &mut self,
        metrics: &HttpMetrics,
        recorder: &RouteRecorder,
        method: &Method,
        status: StatusCode,
    ) -> &AnswerSeries {
        let method = method_label(method);
        let position = self
            .requests
            .iter()
            .position(|series| series.method == method && series.status == status);
        let index = position.unwrap_or_else(|| {
            let labels = Request {
                route: Arc::clone(&self.route),
                method,
                status: status.as_u16(),
            };
            self.requests.push(AnswerSeries {
                method,
                status,
                count: metrics.requests.get_or_create_owned(&labels),
                number: recorder.number(&self.route, method),
            });
            self.requests.len() - 1
        });
        &self.requests[index]
    }
}

/// Removes the regular expressions of the parameters from a route pattern: `/{key:[^/]*}` becomes `/{key}`.
fn label(pattern: &str) -> String {
    let mut label = String::with_capacity(pattern.len());
    let mut is_expression = false;
    for letter in pattern.chars() {
        match letter {
            '}' => is_expression = false,
            ':' => is_expression = true,
            _ => {}
        }
        if !is_expression {
            label.push(letter);
        }
    }
    label
}
