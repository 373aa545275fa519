use std::borrow::Cow;

use threadkeep_domain::TraceParent;

/// A finished part of the work in a trace. Names and attributes follow the semantic conventions of OpenTelemetry.
///
/// Spans never contain state, complete thread ids or paths.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    pub context: TraceParent,
    /// The parent span, unless the trace starts here.
    pub parent: Option<[u8; 8]>,
    /// The name of the span, from a small set.
    pub name: Cow<'static, str>,
    pub kind: SpanKind,
    pub start_ns: u64,
    pub end_ns: u64,
    pub attributes: Vec<Attribute>,
    pub has_failed: bool,
}

pub type Attribute = (&'static str, AttributeValue);

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttributeValue {
    Text(Cow<'static, str>),
    Number(i64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    Internal,
    Server,
    Client,
}

#[derive(Debug, Clone)]
pub struct Ended {
    pub name: Cow<'static, str>,
    pub kind: SpanKind,
    pub attributes: Vec<Attribute>,
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
