//! Sends spans to a collector with [OTLP over HTTP](https://opentelemetry.io/docs/specs/otlp/#otlphttp).
//!
//! Requests never wait for the collector, because spans enter a bounded queue. While the queue is full, new spans are
//! dropped and counted.

mod messages;

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use prometheus_client::registry::Registry;
use prost::Message as _;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER, USER_AGENT};
use reqwest::{Client, ClientBuilder, StatusCode, Url, redirect};
use tokio::sync::mpsc::Receiver;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use super::current::{by, counters, register};
use messages::Request;
use threadkeep_trace::{Span, Tracer};

/// Maximum queued spans: about 4 MiB.
const QUEUE_MAX: usize = 8_192;
/// Maximum spans per request to the collector.
const BATCH_MAX: usize = 512;
/// How long the first span of a batch waits for more spans.
const LINGER: Duration = Duration::from_secs(1);
/// Time limit for a request to the collector, from the DNS lookup to the response headers.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of attempts to send a batch. The pause between attempts doubles each time.
const ATTEMPTS_MAX: u32 = 5;
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);
const AGENT: &str = concat!("threadkeep/", env!("CARGO_PKG_VERSION"));
const PROTOBUF: HeaderValue = HeaderValue::from_static("application/x-protobuf");

#[derive(Debug, Clone)]
pub struct Collector {
    url: Url,
    headers: HeaderMap,
    ratio: f64,
}

#[derive(Debug)]
pub struct Exporter {
    task: JoinHandle<()>,
    stop: CancellationToken,
    counted: SpanCounts,
}

/// Counts of spans by outcome, all 0 without an exporter.
#[derive(Debug, Clone, Default)]
pub struct SpanCounts(Option<(Tracer, Arc<Counts>)>);

#[derive(Debug, Default)]
struct Counts {
    sent: AtomicU64,
    failed: AtomicU64,
}

#[derive(Debug, thiserror::Error)]
enum SendError {
    #[error("it answered {status}")]
    Status {
        status: StatusCode,
        /// Delay requested by the collector.
        pause: Option<Duration>,
    },
    #[error("it did not answer")]
    Link(#[source] reqwest::Error),
}

struct Sender {
    client: Client,
    collector: Collector,
    replica: String,
    counts: Arc<Counts>,
    /// True if the log has reported that the collector is unavailable.
    is_unavailable: bool,
    stop: CancellationToken,
}

impl Collector {
    /// Returns `None` if the URL or a header is malformed. Valid settings never contain such values.
    #[must_use]
    pub fn new<'a>(
        url: &str,
        headers: impl IntoIterator<Item = (&'a str, &'a str)>,
        ratio: f64,
    ) -> Option<Self> {
        let header = |(name, value): (&str, &str)| {
            let mut value = HeaderValue::from_str(value).ok()?;
            value.set_sensitive(true);
            Some((HeaderName::from_bytes(name.as_bytes()).ok()?, value))
        };
        Some(Self {
            url: Url::parse(url).ok()?,
            headers: headers.into_iter().map(header).collect::<Option<_>>()?,
            ratio,
        })
    }
}

impl Exporter {
    /// Starts the exporter. `replica` identifies this process in its spans.
    #[must_use]
    pub fn start(collector: Collector, replica: String) -> (Tracer, Self) {
        let (tracer, spans) = Tracer::new(QUEUE_MAX, collector.ratio);
        let counts = Arc::<Counts>::default();
        let stop = CancellationToken::new();
        let sender = Sender {
            client: client(),
            collector,
            replica,
            counts: Arc::clone(&counts),
            is_unavailable: false,
            stop: stop.clone(),
        };
        let task = tokio::spawn(sender.run(spans));
        let counted = SpanCounts(Some((tracer.clone(), counts)));
        let exporter = Self {
            task,
            stop,
            counted,
        };
        (tracer, exporter)
    }

    #[must_use]
    pub fn counts(&self) -> SpanCounts {
        self.counted.clone()
    }

    /// Sends the last spans, for up to five seconds.
    pub async fn shutdown(self) {
        self.stop.cancel();
        if timeout(SHUTDOWN_TIMEOUT, self.task).await.is_err() {
            tracing::warn!("the collector did not take the last spans in time");
        }
    }
}

impl Sender {
    async fn run(mut self, mut spans: Receiver<Span>) {
        let mut batch = Vec::with_capacity(BATCH_MAX);
        loop {
            let is_stopping = tokio::select! {
                biased;
                received = spans.recv_many(&mut batch, BATCH_MAX) => received == 0,
                () = self.stop.cancelled() => {
                    spans.close();
                    false
                }
            };
            if is_stopping {
                return;
            }
            self.fill(&mut batch, &mut spans).await;
            if !batch.is_empty() {
                self.send(std::mem::replace(&mut batch, Vec::with_capacity(BATCH_MAX)))
                    .await;
            }
        }
    }

    async fn fill(&self, batch: &mut Vec<Span>, spans: &mut Receiver<Span>) {
        let end = Instant::now() + LINGER;
        while batch.len() < BATCH_MAX && !spans.is_closed() {
            let more = spans.recv_many(batch, BATCH_MAX - batch.len());
            let more = timeout_at(end, self.stop.run_until_cancelled(more)).await;
            if !matches!(more, Ok(Some(1..))) {
                return;
            }
        }
    }

    /// Sends a batch. Retries after failures that may be temporary.
    async fn send(&mut self, batch: Vec<Span>) {
        let count = batch.len() as u64;
        let body = Bytes::from(Request::of(batch, &self.replica).encode_to_vec());
        let mut pause = FIRST_PAUSE;
        for attempt in 1.. {
            let Err(error) = self.attempt(body.clone()).await else {
                self.counts.sent.fetch_add(count, Ordering::Relaxed);
                if std::mem::take(&mut self.is_unavailable) {
                    tracing::info!("the collector accepts spans again");
                }
                return;
            };
            if !std::mem::replace(&mut self.is_unavailable, true) {
                tracing::warn!(
                    error = &error as &dyn Error,
                    "the collector does not accept spans"
                );
            }
            let delay = error.pause().map(|delay| delay.unwrap_or(pause));
            let Some(delay) = delay.filter(|_| attempt < ATTEMPTS_MAX) else {
                break;
            };
            // add jitter, so that replicas do not all retry at the same time
            let delay = delay
                .min(LONGEST_PAUSE)
                .mul_f64(rand::random_range(0.75..1.25));
            if self.stop.run_until_cancelled(sleep(delay)).await.is_none() {
                // the server is stopping: there is time for a single attempt
                if self.attempt(body).await.is_ok() {
                    self.counts.sent.fetch_add(count, Ordering::Relaxed);
                    return;
                }
                break;
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        self.counts.failed.fetch_add(count, Ordering::Relaxed);
    }

    async fn attempt(&self, body: Bytes) -> Result<(), SendError> {
        let request = self
            .client
            .post(self.collector.url.clone())
            .headers(self.collector.headers.clone())
            .header(CONTENT_TYPE, PROTOBUF)
            .header(USER_AGENT, HeaderValue::from_static(AGENT))
            .body(body);
        // the body of the response is dropped unread
        let answer = request.send().await;
        let answer = answer.map_err(|error| SendError::Link(error.without_url()))?;
        let status = answer.status();
        if status.is_success() {
            return Ok(());
        }
        let seconds = answer.headers().get(RETRY_AFTER);
        let seconds = seconds.and_then(|text| text.to_str().ok()?.parse().ok());
        let pause = seconds.map(Duration::from_secs);
        Err(SendError::Status { status, pause })
    }
}

impl SendError {
    /// Returns `None` if a retry cannot help. Otherwise returns the delay that the collector requested, if any.
    fn pause(&self) -> Option<Option<Duration>> {
        match self {
            // OTLP/HTTP, "Retryable Response Codes"
            Self::Status { status, pause } => {
                matches!(status.as_u16(), 429 | 502..=504).then_some(*pause)
            }
            Self::Link(_) => Some(None),
        }
    }
}

/// Builds a client that follows no redirects and uses no proxy.
fn client() -> Client {
    threadkeep_tls::install_tls_provider();
    let builder = || {
        Client::builder()
            .redirect(redirect::Policy::none())
            .no_proxy()
            .referer(false)
            .timeout(TIMEOUT)
    };
    let client = builder().build();
    client.unwrap_or_else(|error| without_certificates(builder(), &error))
}

/// Builds a client for a machine without certificate authorities. The client can still send spans to http URLs.
fn without_certificates(builder: ClientBuilder, error: &reqwest::Error) -> Client {
    tracing::warn!(
        error = error as &dyn Error,
        "no certificate authorities: spans cannot be sent over HTTPS"
    );
    builder
        .tls_certs_only([])
        .build()
        .expect("a client that reads no certificates is built from constants")
}

/// Registers the span counts. Every replica exports these metrics; without an exporter, they are 0.
pub fn register_spans(registry: &mut Registry, counts: SpanCounts) {
    register(registry, move |encoder| {
        let (sent, failed, dropped) = counts.0.as_ref().map_or((0, 0, 0), |(tracer, counts)| {
            let [sent, failed] =
                [&counts.sent, &counts.failed].map(|count| count.load(Ordering::Relaxed));
            (sent, failed, tracer.dropped())
        });
        let spans = [("sent", sent), ("failed", failed), ("dropped", dropped)];
        let help = "Spans, by outcome: sent, failed, or dropped because the queue was full";
        counters(encoder, "spans", help, by("outcome", spans))
    });
}
