//! Error responses: `application/problem+json` ([RFC 9457](https://www.rfc-editor.org/rfc/rfc9457)).

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{ALLOW, ETAG, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use serde_json::{Map, Value, json};

use super::super::etag::{THREAD_VERSION, etag};
use super::super::session::SessionId;
use threadkeep_domain::Stamp;

/// `WWW-Authenticate` challenge of a 401 response (RFC 9110, section 15.5.2).
pub const BEARER: &str = "Bearer";
/// `WWW-Authenticate` challenge for an invalid credential (RFC 6750, section 3.1).
pub const WRONG_BEARER: &str = r#"Bearer error="invalid_token""#;

/// Status, code and text of an error.
#[derive(Debug)]
pub struct Problem {
    /// Status of the response.
    pub status: StatusCode,
    /// Stable code, for programs.
    pub code: &'static str,
    /// Text for people. Never reveals an internal cause.
    pub detail: String,
    members: Map<String, Value>,
    /// Seconds until a retry may succeed.
    pub retry_after_seconds: Option<u64>,
    /// Version and life, for the entity tag, of the thread or entry that the error concerns, if available.
    pub stamp: Option<Stamp>,
    allow: Option<&'static str>,
    challenge: &'static str,
    /// Name of the exceeded limit, and the size of the rejected data in bytes.
    pub refused_bytes: Option<(&'static str, u64)>,
}

impl Problem {
    /// Creates a problem. A 503 asks the client to retry after 1 second, because the server probes an unavailable store
    /// once a second.
    pub(super) fn new(status: StatusCode, code: &'static str, detail: impl ToString) -> Self {
        Self {
            status,
            code,
            detail: detail.to_string(),
            members: Map::new(),
            retry_after_seconds: (status == StatusCode::SERVICE_UNAVAILABLE).then_some(1),
            stamp: None,
            allow: None,
            challenge: BEARER,
            refused_bytes: None,
        }
    }

    pub(super) fn with(mut self, member: &str, value: impl Into<Value>) -> Self {
        self.members.insert(member.into(), value.into());
        self
    }

    pub(super) fn with_some(self, member: &str, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.with(member, value),
            None => self,
        }
    }

    pub(super) fn retry_after_seconds(self, seconds: u64) -> Self {
        Self {
            retry_after_seconds: Some(seconds),
            ..self
        }
    }

    pub(super) fn stamp(self, stamp: Stamp) -> Self {
        Self {
            stamp: Some(stamp),
            ..self
        }
    }

    pub(super) fn allow(self, methods: &'static str) -> Self {
        Self {
            allow: Some(methods),
            ..self
        }
    }

    pub(super) fn wrong_bearer(self) -> Self {
        Self {
            challenge: WRONG_BEARER,
            ..self
        }
    }

    pub(super) fn refused_bytes(self, limit: &'static str, bytes: u64) -> Self {
        Self {
            refused_bytes: Some((limit, bytes)),
            ..self
        }
    }

    pub(super) fn explained(mut self, is_weak: impl FnOnce() -> bool) -> Self {
        if self.status == StatusCode::PRECONDITION_FAILED && is_weak() {
            self.detail.push_str(
                " A weak tag (`W/`) never matches: a proxy has weakened it. Send `x-thread-version` in quotes instead.",
            );
        }
        self
    }

    pub(super) fn head(&self) -> HttpResponse {
        let mut response = HttpResponse::new(self.status);
        let headers = response.headers_mut();
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static(self.challenge));
        }
        if let Some(methods) = self.allow {
            headers.insert(ALLOW, HeaderValue::from_static(methods));
        }
        if let Some(stamp) = self.stamp {
            headers.insert(ETAG, etag(stamp));
            headers.insert(THREAD_VERSION, stamp.version.into());
        }
        if let Some(seconds) = self.retry_after_seconds {
            headers.insert(RETRY_AFTER, seconds.into());
        }
        response
    }

    pub(super) fn body(self, session: &SessionId) -> String {
        let mut problem = json!({
            "type": "about:blank",
            "title": self.status.canonical_reason(),
            "status": self.status.as_u16(),
            "code": self.code,
            "detail": self.detail,
            "request_id": session.as_str(),
        });
        for (member, value) in self.members {
            problem[member] = value;
        }
        problem.to_string()
    }
}
