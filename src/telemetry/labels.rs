//! Labels of metrics. Each label has a small set of values, regardless of what clients send.

use std::sync::Arc;

use actix_web::http::Method;
use prometheus_client::encoding::EncodeLabelSet;

pub(super) type Labels<const N: usize> = [(&'static str, &'static str); N];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Request {
    pub(super) route: Arc<str>,
    pub(super) method: &'static str,
    pub(super) status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Identity {
    pub(super) source: &'static str,
    pub(super) key: Arc<str>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Answer {
    pub(super) upstream: String,
    pub(super) outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Tokens {
    pub(super) upstream: String,
    pub(super) kind: &'static str,
}

/// Returns the label of a method. All methods that no route accepts get the label `other`.
pub(super) fn method_label(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}
