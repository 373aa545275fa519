use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Instant, SystemTime};

use async_trait::async_trait;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use super::{Endpoint, SendError, Sender};
use threadkeep_domain::{Event, EventTypes, TraceParent};
use threadkeep_events::{Failure, Handler, cloud_event};
use threadkeep_store::{Backend, millis};
use threadkeep_trace as trace;
use threadkeep_trace::{Context, Ended, SpanKind, Tracer};

const ID: HeaderName = HeaderName::from_static("webhook-id");
const TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// Delivers events to an endpoint. The endpoint's settings may change between deliveries.
#[derive(Debug)]
pub(super) struct Delivery {
    endpoint: RwLock<Arc<Endpoint>>,
    sender: Sender,
    backend: Arc<dyn Backend>,
    public_url: Arc<str>,
    tracer: Option<Tracer>,
}

impl Delivery {
    pub(super) fn new(
        endpoint: Endpoint,
        sender: Sender,
        backend: Arc<dyn Backend>,
        public_url: Arc<str>,
        tracer: Option<Tracer>,
    ) -> Self {
        Self {
            endpoint: RwLock::new(Arc::new(endpoint)),
            sender,
            backend,
            public_url,
            tracer,
        }
    }

    fn endpoint(&self) -> Arc<Endpoint> {
        let endpoint = self.endpoint.read();
        Arc::clone(&endpoint.unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn set(&self, endpoint: Endpoint) {
        let mut current = self
            .endpoint
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        if **current != endpoint {
            *current = Arc::new(endpoint);
        }
    }
}

#[async_trait]
impl Handler for Delivery {
    fn types(&self) -> EventTypes {
        self.endpoint().types
    }

    async fn deliver(&self, event: &Event) -> Result<(), Failure> {
        let parent = event.trace.as_deref().copied();
        let started = Instant::now();
        let recording = parent.and_then(|_| self.tracer.as_ref()?.begin(parent, started));
        let Some(recording) = recording else {
            let sent = self.send(event, parent).await?;
            return sent.map(drop).map_err(Failure::new);
        };
        // the span includes the time spent reading the final state of the thread
        let context = Context::recorded(recording.clone(), started);
        let sent = trace::within(context, self.send(event, Some(recording.span_context()))).await?;
        recording.end(Instant::now(), span(&self.endpoint(), event, sent));
        sent.map(drop).map_err(Failure::new)
    }
}

impl Delivery {
    /// Sends an event. `parent` is the trace context that the endpoint receives.
    async fn send(
        &self,
        event: &Event,
        parent: Option<TraceParent>,
    ) -> Result<Result<u16, SendError>, Failure> {
        let rendered = cloud_event(&*self.backend, &self.public_url, event).await;
        let body = rendered.map_err(|_| Failure::new("the final state could not be read"))?;
        let endpoint = self.endpoint();
        let mut headers = headers(&endpoint, &event.id.to_string(), now_ms(), body.as_bytes());
        if let Some(parent) = parent {
            headers.insert(TRACEPARENT, visible(parent.to_string()));
        }
        Ok(self.sender.send(&endpoint.url, headers, body.into()).await)
    }
}

/// Creates the span for a delivery, following the conventions for
/// [HTTP](https://opentelemetry.io/docs/specs/semconv/http/http-spans/#http-client) and
/// [CloudEvents](https://opentelemetry.io/docs/specs/semconv/cloudevents/). Omits the URL, because it may contain a
/// secret. Also omits the subject, because it is a full thread id.
fn span(endpoint: &Endpoint, event: &Event, sent: Result<u16, SendError>) -> Ended {
    let (host, port) = endpoint.url.host();
    let status = sent.map_or_else(SendError::status, Some);
    let mut attributes = vec![
        ("http.request.method", "POST".into()),
        ("server.address", host.to_owned().into()),
        ("url.scheme", endpoint.url.url().scheme().to_owned().into()),
        ("threadkeep.webhook.id", endpoint.id.to_string().into()),
        ("cloudevents.event_id", event.id.to_string().into()),
        ("cloudevents.event_source", "threadkeep".into()),
        ("cloudevents.event_spec_version", "1.0".into()),
        ("cloudevents.event_type", event.event_type().as_str().into()),
    ];
    attributes.extend(port.map(|port| ("server.port", port.into())));
    attributes.extend(status.map(|status| ("http.response.status_code", status.into())));
    let error = sent.err();
    attributes.extend(error.map(|error| {
        let status = error.status().map(|status| status.to_string().into());
        ("error.type", status.unwrap_or_else(|| error.kind().into()))
    }));
    Ended {
        name: "POST".into(),
        kind: SpanKind::Client,
        attributes,
        has_failed: error.is_some(),
    }
}

fn headers(endpoint: &Endpoint, id: &str, now_ms: u64, body: &[u8]) -> HeaderMap {
    let signatures = endpoint.secrets.signatures(id, now_ms, body);
    HeaderMap::from_iter([
        (ID, visible(id.to_owned())),
        (TIMESTAMP, visible((now_ms / 1000).to_string())),
        (SIGNATURE, visible(signatures)),
    ])
}

fn visible(text: String) -> HeaderValue {
    HeaderValue::try_from(text).expect("header values are visible ASCII")
}

/// Returns the wall-clock time, which receivers compare with their own clocks.
pub(super) fn now_ms() -> u64 {
    millis(SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default())
}
