//! Spans, as OpenTelemetry defines them.

use std::borrow::Cow;

use threadkeep_domain::TraceParent;

/// A part of the work for a trace that has ended. Names and attributes follow OpenTelemetry's semantic conventions.
///
/// It contains nothing of states, no whole ids of threads and no paths.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// The trace, and the id of the span.
    pub place: TraceParent,
    /// The span that it is a part of, if the trace began before it.
    pub parent: Option<[u8; 8]>,
    /// Its name, of few values.
    pub name: Cow<'static, str>,
    /// On which side of a call it is.
    pub kind: SpanKind,
    /// Its start, in nanoseconds of the Unix epoch.
    pub start_ns: u64,
    /// Its end.
    pub end_ns: u64,
    /// More about it.
    pub attributes: Vec<Attribute>,
    /// Whether it failed.
    pub has_failed: bool,
}

/// A name and a value.
pub type Attribute = (&'static str, AttributeValue);

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttributeValue {
    /// Text.
    Text(Cow<'static, str>),
    /// A number.
    Number(i64),
}

/// The side of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    /// Work within a process.
    Internal,
    /// The answer to a call.
    Server,
    /// A call to another service.
    Client,
}

/// The description of a span at its end.
#[derive(Debug, Clone)]
pub struct Ended {
    /// Its name.
    pub name: Cow<'static, str>,
    /// On which side of a call it is.
    pub kind: SpanKind,
    /// More about it.
    pub attributes: Vec<Attribute>,
    /// Whether it failed.
    pub has_failed: bool,
}

impl From<&'static str> for AttributeValue {
    fn from(text: &'static str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for AttributeValue {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl From<u16> for AttributeValue {
    fn from(number: u16) -> Self {
        Self::Number(number.into())
    }
}
