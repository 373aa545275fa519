//! Tests the spans that a collector receives. The spans are parsed with OpenTelemetry's own message definitions.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value::Value};
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use prost::Message as _;
use tokio::task::spawn_blocking;

use crate::http::with_own_servers;
use crate::support::client::Request;
use crate::support::receiver::{AnswerMode, Receiver};
use crate::support::server::{API_SECRET, Backend, Builder, Server};
use crate::support::until;

const TRACES: &str = "/v1/traces";
const TRACE_ID: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "00f067aa0ba902b7";

#[derive(Debug, Clone)]
struct ReceivedSpan {
    span: Span,
    instance: String,
}

fn text_of(attributes: &[KeyValue], name: &str) -> Option<String> {
    let attribute = attributes.iter().find(|attribute| attribute.key == name)?;
    match attribute.value.clone()?.value? {
        Value::StringValue(text) => Some(text),
        Value::IntValue(number) => Some(number.to_string()),
        other => panic!("{name}: {other:?}"),
    }
}

impl ReceivedSpan {
    fn attribute(&self, name: &str) -> String {
        let found = text_of(&self.span.attributes, name);
        found.unwrap_or_else(|| panic!("{name} in {:?}", self.span))
    }

    fn id(&self) -> String {
        hex::encode(&self.span.span_id)
    }

    fn parent(&self) -> String {
        hex::encode(&self.span.parent_span_id)
    }

    fn has_failed(&self) -> bool {
        self.span.status.as_ref().unwrap().code() == StatusCode::Error
    }
}

fn received_spans(collector: &Receiver) -> Vec<ReceivedSpan> {
    let mut received = Vec::new();
    for taken in collector.taken(TRACES) {
        assert_eq!(taken.header("content-type"), "application/x-protobuf");
        let request = ExportTraceServiceRequest::decode(&taken.body[..]).unwrap();
        for resource_spans in request.resource_spans {
            let resource = resource_spans.resource.unwrap().attributes;
            let resource_attribute = |name: &str| text_of(&resource, name).unwrap();
            assert_eq!(resource_attribute("service.name"), "threadkeep");
            assert_eq!(
                resource_attribute("service.version"),
                env!("CARGO_PKG_VERSION")
            );
            let spans = resource_spans
                .scope_spans
                .into_iter()
                .flat_map(|scope| scope.spans);
            received.extend(spans.map(|span| ReceivedSpan {
                span,
                instance: resource_attribute("service.instance.id"),
            }));
        }
    }
    received
}

/// Stops a server without blocking this runtime, because the collector runs on it and must receive the last spans.
async fn stopped(server: Server) -> Server {
    let stopping = spawn_blocking(move || {
        assert!(server.stop().success());
        server
    });
    stopping.await.unwrap()
}

fn spans_of_trace(collector: &Receiver) -> Vec<ReceivedSpan> {
    let mut spans = received_spans(collector);
    spans.retain(|received| hex::encode(&received.span.trace_id) == TRACE_ID);
    spans
}

fn by_name(spans: &[ReceivedSpan], name: &str) -> ReceivedSpan {
    let found = spans.iter().find(|received| received.span.name == name);
    let found = found.unwrap_or_else(|| panic!("{name} in {spans:?}"));
    found.clone()
}

fn traced(request: Request, flags: &str) -> Request {
    let parent = format!("00-{TRACE_ID}-{CALLER}-{flags}");
    request.header("traceparent", parent)
}

fn exporting_to(collector: &Receiver, backend: Backend) -> Builder {
    Server::builder(backend)
        .set("THREADKEEP_WEBHOOK_ALLOW_PRIVATE", true)
        .set("THREADKEEP_OTLP_ENDPOINT", collector.url("/"))
}

async fn make_endpoint(server: &Server, url: &str) {
    let body = format!(r#"{{"url":"{url}","events":["thread.created"]}}"#);
    let made = server.client().post("/v1/webhooks").bearer(API_SECRET);
    made.json(&body).ok().await;
}

const PUT: &str = "PUT /v1/threads/current/state/{key}";

async fn a_request_its_store_calls_and_its_delivery_form_one_trace(backend: Backend) {
    let collector = Receiver::start().await;
    let server = exporting_to(&collector, backend)
        .set("THREADKEEP_OTLP_HEADERS", "authorization:Bearer a-token")
        .set("THREADKEEP_OTLP_SAMPLE_RATIO", 0)
        .start();
    make_endpoint(&server, &collector.url("/hook-to-hide")).await;
    let thread = server.client().thread();

    traced(thread.put("state/key-to-hide", "\"value-to-hide\""), "01")
        .ok()
        .await;

    let is_delivered = |received: &ReceivedSpan| received.span.name == "POST";
    until(async || spans_of_trace(&collector).iter().any(is_delivered)).await;
    let spans = spans_of_trace(&collector);
    let request = by_name(&spans, PUT);
    assert_eq!(request.span.kind(), SpanKind::Server);
    assert_eq!(request.parent(), CALLER);
    assert_eq!(request.attribute("http.request.method"), "PUT");
    assert_eq!(request.attribute("http.response.status_code"), "200");
    assert_eq!(request.attribute("url.scheme"), "http");
    assert_eq!(
        request.attribute("http.route"),
        "/v1/threads/current/state/{key}"
    );
    let hash = request.attribute("threadkeep.thread.hash");
    assert_eq!((hash.len(), &hash[..1]), (9, "#"));
    let call = by_name(&spans, "write threads");
    let (kind, system) = match backend {
        Backend::Memory => (SpanKind::Internal, "threadkeep"),
        Backend::Redis => (SpanKind::Client, "redis"),
    };
    assert_eq!(call.span.kind(), kind);
    assert_eq!(call.attribute("db.system.name"), system);
    assert_eq!(call.attribute("db.operation.name"), "write");
    assert_eq!(call.parent(), request.id());
    let delivery = by_name(&spans, "POST");
    assert_eq!(delivery.span.kind(), SpanKind::Client);
    assert_eq!(delivery.parent(), request.id());
    assert_eq!(delivery.attribute("http.response.status_code"), "204");
    assert_eq!(delivery.attribute("url.scheme"), "http");
    assert_eq!(
        delivery.attribute("cloudevents.event_type"),
        "thread.created"
    );
    assert_eq!(
        delivery.attribute("server.port"),
        collector.port().to_string()
    );
    let taken = &collector.await_accepted("/hook-to-hide", 1).await[0];
    let parent = format!("00-{TRACE_ID}-{}-01", delivery.id());
    assert_eq!(taken.header("traceparent"), parent);
    assert_eq!(
        taken.json()["traceparent"],
        format!("00-{TRACE_ID}-{}-01", request.id())
    );
    for received in &spans {
        let Span {
            start_time_unix_nano: start,
            end_time_unix_nano: end,
            ..
        } = received.span;
        assert!(start <= end && !received.has_failed(), "{received:?}");
    }
    let within = call.span.start_time_unix_nano >= request.span.start_time_unix_nano
        && call.span.end_time_unix_nano <= request.span.end_time_unix_nano;
    assert!(within, "{spans:?}");
    for taken in collector.taken(TRACES) {
        assert_eq!(taken.header("authorization"), "Bearer a-token");
        let text = String::from_utf8_lossy(&taken.body);
        for hidden in [
            "to-hide",
            &thread.id,
            &thread.id[5..],
            &thread.signed,
            API_SECRET,
        ] {
            assert!(!text.contains(hidden), "{hidden} in {text}");
        }
    }
}

#[tokio::test]
async fn a_trace_continues_on_the_delivering_replica() {
    let collector = Receiver::start().await;
    collector.set("/hook", AnswerMode::Failing(500));
    let one = exporting_to(&collector, Backend::Redis).start();
    make_endpoint(&one, &collector.url("/hook")).await;
    traced(one.client().thread().put("state/k", "1"), "01")
        .ok()
        .await;
    collector.await_received("/hook", 1).await;
    // the server sends its last spans before it exits
    let one = stopped(one).await;
    collector.set("/hook", AnswerMode::Accepting);

    let other = one.settings().start();

    let taken = &collector.await_accepted("/hook", 1).await[0];
    stopped(other).await;
    let spans = spans_of_trace(&collector);
    let request = by_name(&spans, PUT);
    let deliveries = spans.iter().filter(|received| received.span.name == "POST");
    let (failed, done): (Vec<_>, Vec<_>) = deliveries.partition(|received| received.has_failed());
    assert_eq!(failed[0].attribute("error.type"), "500");
    assert_eq!(failed[0].instance, request.instance);
    assert_eq!(done.len(), 1);
    assert_ne!(done[0].instance, request.instance);
    assert_eq!(done[0].parent(), request.id());
    let parent = format!("00-{TRACE_ID}-{}-01", done[0].id());
    assert_eq!(taken.header("traceparent"), parent);
    let stored = by_name(&spans, "write threads");
    assert_eq!(
        (stored.parent(), stored.instance),
        (request.id(), request.instance)
    );
}

async fn unsampled_traces_are_not_recorded(backend: Backend) {
    let collector = Receiver::start().await;
    let server = exporting_to(&collector, backend).start();
    let thread = server.client().thread();

    traced(thread.put("state/k", "1"), "00").ok().await;
    // a request without `traceparent` starts a new trace
    thread.get("state").ok().await;
    stopped(server).await;

    assert!(spans_of_trace(&collector).is_empty());
    let root = by_name(&received_spans(&collector), "GET /v1/threads/current/state");
    assert_eq!(root.parent(), "");
    assert_eq!(root.span.trace_id.len(), 16);
}

async fn a_failing_collector_gets_the_spans_later(backend: Backend) {
    let collector = Receiver::start().await;
    collector.set(TRACES, AnswerMode::Failing(503));
    let server = exporting_to(&collector, backend).start();
    server.client().thread().put("state/k", "1").ok().await;
    collector.await_received(TRACES, 1).await;

    collector.set(TRACES, AnswerMode::Accepting);

    until(async || !received_spans(&collector).is_empty()).await;
    by_name(&received_spans(&collector), PUT);
    let sent = r#"threadkeep_spans_total{outcome="sent"}"#;
    until(async || server.metric(sent).await > 0).await;
    // an export that the collector rejects is not retried
    collector.set(TRACES, AnswerMode::Failing(400));
    server.client().thread().put("state/k", "1").ok().await;
    let failed = r#"threadkeep_spans_total{outcome="failed"}"#;
    until(async || server.metric(failed).await > 0).await;
}

async fn a_hanging_collector_does_not_block_requests_or_shutdown(backend: Backend) {
    let collector = Receiver::start().await;
    collector.set(TRACES, AnswerMode::Hanging);
    let server = exporting_to(&collector, backend).start();
    let thread = server.client().thread();
    thread.put("state/k", "1").ok().await;
    collector.await_received(TRACES, 1).await;

    for _ in 0..20 {
        thread.get("state").ok().await;
    }
    // before it exits, the server waits for the collector, but not indefinitely
    assert!(server.stop().success());

    assert!(server.log().contains("did not take the last spans in time"));
}

with_own_servers!(
    a_request_its_store_calls_and_its_delivery_form_one_trace,
    unsampled_traces_are_not_recorded,
    a_failing_collector_gets_the_spans_later,
    a_hanging_collector_does_not_block_requests_or_shutdown,
);
