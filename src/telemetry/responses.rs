use std::sync::Arc;
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use super::current::{gauge, register};
use super::labels::{Answer, Labels, Tokens};
use threadkeep_domain::{Status, Usage};
use threadkeep_responses::{
    Protocol, ResponseObserver, ResponseRefusal, ResponseService, UpstreamOutcome,
};

/// Label for calls to tools that do not exist, because models sometimes invent tool names.
const UNKNOWN: &str = "unknown";

/// Buckets in seconds, from short answers to the longest response that the default settings allow.
const SECONDS: [f64; 11] = [
    0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 180.0, 600.0,
];
const STEPS: [f64; 7] = [1.0, 2.0, 3.0, 4.0, 8.0, 16.0, 64.0];

#[derive(Debug)]
pub struct ResponseMetrics {
    ends: Family<Labels<2>, Counter>,
    seconds: Histogram,
    steps: Histogram,
    taken_over: Counter,
    fenced: Counter,
    refused: Family<Labels<1>, Counter>,
    calls: Family<Labels<2>, Counter>,
    answers: Family<Answer, Counter>,
    answer_seconds: Family<[(&'static str, String); 1], Histogram>,
    tokens: Family<Tokens, Counter>,
}

impl ResponseMetrics {
    #[must_use]
    pub fn register(registry: &mut Registry) -> Arc<Self> {
        let metrics = Self {
            ends: Family::default(),
            seconds: Histogram::new(SECONDS),
            steps: Histogram::new(STEPS),
            taken_over: Counter::default(),
            fenced: Counter::default(),
            refused: Family::default(),
            calls: Family::default(),
            answers: Family::default(),
            answer_seconds: Family::new_with_constructor(|| Histogram::new(SECONDS)),
            tokens: Family::default(),
        };
        registry.register("responses", "Responses that ended", metrics.ends.clone());
        let help = "Time from the request to the end of the response";
        registry.register_with_unit(
            "response_duration",
            help,
            Unit::Seconds,
            metrics.seconds.clone(),
        );
        let help = "Model answers per response";
        registry.register("response_steps", help, metrics.steps.clone());
        let help = "Responses that this process took over from another";
        registry.register("responses_taken_over", help, metrics.taken_over.clone());
        let help =
            "Responses that this process lost to another driver, or to a cancel by another process";
        registry.register("responses_fenced", help, metrics.fenced.clone());
        let help = "Responses rejected before they started";
        registry.register("responses_rejected", help, metrics.refused.clone());
        let help = "Tool calls in responses";
        registry.register("tool_calls", help, metrics.calls.clone());
        let help = "Requests to upstreams, each counted once with its retries";
        registry.register("upstream_requests", help, metrics.answers.clone());
        let help = "Duration of requests to upstreams, retries included";
        let seconds = metrics.answer_seconds.clone();
        registry.register_with_unit("upstream_duration", help, Unit::Seconds, seconds);
        let help = "Tokens that models have read and written";
        registry.register("upstream_tokens", help, metrics.tokens.clone());
        Arc::new(metrics)
    }
}

pub fn register_running_responses(registry: &mut Registry, responses: &ResponseService) {
    let responses = responses.clone();
    register(registry, move |encoder| {
        let help = "Responses that this process drives";
        let running = responses.running();
        gauge(encoder, "responses_running", help, None, running)
    });
}

impl ResponseObserver for ResponseMetrics {
    fn begun(&self, taken_over: bool) {
        self.taken_over.inc_by(taken_over.into());
    }

    fn ended(&self, protocol: Protocol, status: &Status, time: Duration, steps: u32) {
        let labels = [("protocol", protocol.as_str()), ("end", status.as_str())];
        self.ends.get_or_create(&labels).inc();
        self.seconds.observe(time.as_secs_f64());
        self.steps.observe(steps.into());
    }

    fn fenced(&self) {
        self.fenced.inc();
    }

    fn refused(&self, reason: ResponseRefusal) {
        let labels = [("reason", reason.as_str())];
        self.refused.get_or_create(&labels).inc();
    }

    fn called(&self, tool: Option<&'static str>, is_mistake: bool) {
        let outcome = if is_mistake { "mistake" } else { "done" };
        let labels = [("tool", tool.unwrap_or(UNKNOWN)), ("outcome", outcome)];
        self.calls.get_or_create(&labels).inc();
    }

    fn answered(&self, upstream: &str, answer: UpstreamOutcome, time: Duration) {
        let answered = Answer {
            upstream: upstream.into(),
            outcome: answer.as_str(),
        };
        self.answers.get_or_create(&answered).inc();
        let labels = [("upstream", upstream.to_owned())];
        let seconds = self.answer_seconds.get_or_create_owned(&labels);
        seconds.observe(time.as_secs_f64());
    }

    fn used(&self, upstream: &str, usage: &Usage) {
        for (kind, count) in [
            ("input", usage.input_tokens),
            ("cached", usage.cached_tokens),
            ("output", usage.output_tokens),
            ("reasoning", usage.reasoning_tokens),
        ] {
            let tokens = Tokens {
                upstream: upstream.into(),
                kind,
            };
            self.tokens.get_or_create(&tokens).inc_by(count);
        }
    }
}
