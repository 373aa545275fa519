use std::sync::Arc;

use reqwest::Method;

use crate::run::Run;
use crate::thread_ref::ThreadRef;

#[derive(Debug, Clone)]
pub(crate) struct Ask {
    pub(crate) method: Method,
    pub(crate) name: &'static str,
    pub(crate) path: String,
    /// The replica to send to. `None` selects the next replica in turn.
    pub(crate) host: Option<Arc<str>>,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Option<String>,
    pub(crate) about: Option<Arc<str>>,
    /// Whether an unanswered request may be sent again.
    pub(crate) is_repeatable: bool,
}

impl Ask {
    /// Creates a request that is not for a thread.
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

    /// Creates a request for a path below a thread, such as `/state`.
    pub(crate) fn of(
        method: Method,
        name: &'static str,
        thread_ref: &ThreadRef,
        path: &str,
    ) -> Self {
        let mut ask = Self::to(method, name, thread_ref.path(path));
        ask.host = thread_ref.host();
        ask.headers.extend(thread_ref.header());
        ask.about = thread_ref.about();
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

    /// Adds an idempotency key, which allows retries.
    pub(crate) fn once(mut self, run: &Run) -> Self {
        self.is_repeatable = true;
        self.header("idempotency-key", run.next_idempotency_key())
    }
}
