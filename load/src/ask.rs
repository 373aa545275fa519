//! A request that is about to be made.

use std::sync::Arc;

use reqwest::Method;

use crate::place::Place;
use crate::run::Run;

/// A request. Sent twice it is the same one.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    pub(crate) method: Method,
    /// Its name in reports.
    pub(crate) name: &'static str,
    /// Path and query.
    pub(crate) path: String,
    /// The replica; none for the next one.
    pub(crate) host: Option<Arc<str>>,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Option<String>,
    /// Which thread or scope it is about, for findings.
    pub(crate) about: Option<Arc<str>>,
    /// Whether it may be sent again when there was no answer.
    pub(crate) is_repeatable: bool,
}

impl Ask {
    /// To a path that is of no thread.
    pub(crate) fn to(method: Method, name: &'static str, path: impl Into<String>) -> Self {
        Self {
            is_repeatable: method == Method::GET,
            method,
            name,
            path: path.into(),
            host: None,
            headers: Vec::new(),
            body: None,
            about: None,
        }
    }

    /// To a path below a thread, such as `/state`.
    pub(crate) fn of(method: Method, name: &'static str, place: &Place, path: &str) -> Self {
        let mut ask = Self::to(method, name, place.path(path));
        ask.host = place.host();
        ask.headers.extend(place.header());
        ask.about = place.about();
        ask
    }

    pub(crate) fn body(mut self, json: impl Into<String>) -> Self {
        self.headers
            .push(("content-type", "application/json".into()));
        self.body = Some(json.into());
        self
    }

    pub(crate) fn body_of(mut self, content_type: &str, json: String) -> Self {
        self.headers.push(("content-type", content_type.into()));
        self.body = Some(json);
        self
    }

    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Makes it one that may be sent again: the service does it once.
    pub(crate) fn once(mut self, run: &Run) -> Self {
        self.is_repeatable = true;
        self.header("idempotency-key", run.next_idempotency_key())
    }
}
