//! Messages of [OTLP](https://opentelemetry.io/docs/specs/otlp/) that carry spans, with the field numbers of
//! opentelemetry-proto 1.x. Fields that this server never sets are omitted.

use prost::{Enumeration, Message, Oneof};

use threadkeep_trace::{AttributeValue, Span, SpanKind};

/// `ExportTraceServiceRequest`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Request {
    #[prost(message, repeated, tag = "1")]
    resource_spans: Vec<ResourceSpans>,
}

#[derive(Clone, PartialEq, Message)]
struct ResourceSpans {
    #[prost(message, optional, tag = "1")]
    resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    scope_spans: Vec<ScopeSpans>,
}

#[derive(Clone, PartialEq, Message)]
struct Resource {
    #[prost(message, repeated, tag = "1")]
    attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct ScopeSpans {
    #[prost(message, optional, tag = "1")]
    scope: Option<Scope>,
    #[prost(message, repeated, tag = "2")]
    spans: Vec<SpanMessage>,
}

/// `InstrumentationScope`.
#[derive(Clone, PartialEq, Message)]
struct Scope {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    version: String,
}

#[derive(Clone, PartialEq, Message)]
struct SpanMessage {
    #[prost(bytes = "vec", tag = "1")]
    trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    span_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "4")]
    parent_span_id: Vec<u8>,
    #[prost(string, tag = "5")]
    name: String,
    #[prost(enumeration = "Kind", tag = "6")]
    kind: i32,
    #[prost(fixed64, tag = "7")]
    start_time_unix_nano: u64,
    #[prost(fixed64, tag = "8")]
    end_time_unix_nano: u64,
    #[prost(message, repeated, tag = "9")]
    attributes: Vec<KeyValue>,
    #[prost(message, optional, tag = "15")]
    status: Option<Status>,
    /// Flags of `traceparent`.
    #[prost(fixed32, tag = "16")]
    flags: u32,
}

/// `SpanKind`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
enum Kind {
    Unspecified = 0,
    Internal = 1,
    Server = 2,
    Client = 3,
}

#[derive(Clone, PartialEq, Message)]
struct Status {
    #[prost(enumeration = "Code", tag = "3")]
    code: i32,
}

/// `StatusCode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
enum Code {
    Unset = 0,
    Error = 2,
}

#[derive(Clone, PartialEq, Message)]
struct KeyValue {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(message, optional, tag = "2")]
    value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct AnyValue {
    #[prost(oneof = "Value", tags = "1, 3")]
    value: Option<Value>,
}

#[derive(Clone, PartialEq, Oneof)]
enum Value {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(int64, tag = "3")]
    Number(i64),
}

impl Request {
    pub(super) fn of(spans: Vec<Span>, replica: &str) -> Self {
        let version = env!("CARGO_PKG_VERSION");
        let attributes = [
            ("service.name", "threadkeep"),
            ("service.version", version),
            ("service.instance.id", replica),
        ];
        let attributes = attributes.map(|(key, text)| KeyValue::of(key, Value::Text(text.into())));
        Self {
            resource_spans: vec![ResourceSpans {
                resource: Some(Resource {
                    attributes: attributes.into(),
                }),
                scope_spans: vec![ScopeSpans {
                    scope: Some(Scope {
                        name: "threadkeep".into(),
                        version: version.into(),
                    }),
                    spans: spans.into_iter().map(SpanMessage::of).collect(),
                }],
            }],
        }
    }
}

impl SpanMessage {
    fn of(span: Span) -> Self {
        let attribute = |(key, value)| match value {
            AttributeValue::Text(text) => KeyValue::of(key, Value::Text(text.into_owned())),
            AttributeValue::Number(number) => KeyValue::of(key, Value::Number(number)),
        };
        let code = match span.has_failed {
            true => Code::Error,
            false => Code::Unset,
        };
        Self {
            trace_id: span.context.trace_id().into(),
            span_id: span.context.span_id().into(),
            parent_span_id: span.parent.map_or_else(Vec::new, Into::into),
            name: span.name.into_owned(),
            kind: match span.kind {
                SpanKind::Internal => Kind::Internal,
                SpanKind::Server => Kind::Server,
                SpanKind::Client => Kind::Client,
            } as i32,
            start_time_unix_nano: span.start_ns,
            end_time_unix_nano: span.end_ns,
            attributes: span.attributes.into_iter().map(attribute).collect(),
            status: Some(Status { code: code as i32 }),
            flags: u32::from(span.context.is_sampled()),
        }
    }
}

impl KeyValue {
    fn of(key: &str, value: Value) -> Self {
        Self {
            key: key.into(),
            value: Some(AnyValue { value: Some(value) }),
        }
    }
}
