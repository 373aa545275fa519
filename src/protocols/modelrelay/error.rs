//! The one table that maps errors to answers of the protocol: `{"error","code","message"}`.

use actix_web::http::StatusCode;
use actix_web::http::header::{ALLOW, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use actix_web::{HttpResponse, ResponseError};
use serde_json::json;

use crate::domain::Refusal;
use crate::identity::Right;
use crate::service::ServiceError;
use crate::store::StoreError;

/// Errors of requests.
#[derive(Debug, thiserror::Error)]
pub enum RelayError {
    /// No API key, or an unknown one.
    #[error("an api key is needed")]
    Unauthorized,
    /// The API key may not make this call.
    #[error("the api key lacks the right {0}")]
    Forbidden(Right),
    /// The object does not exist.
    #[error("{0} not found")]
    NotFound(&'static str),
    /// The path has other methods.
    #[error("this path does not take that method")]
    MethodNotAllowed {
        /// Which it takes.
        allow: &'static str,
    },
    /// A path, query or header that is malformed, or a body that is not JSON.
    #[error("{0}")]
    InvalidInput(String),
    /// An invalid body.
    #[error("{0}")]
    Validation(String),
    /// The body is too large.
    #[error("the body is larger than {limit_bytes} bytes")]
    BodyTooLarge {
        /// The limit.
        limit_bytes: u64,
    },
    /// The bodies of other requests use all the memory for bodies.
    #[error("the server has no memory left for the body")]
    Overloaded,
    /// The service rejected the request, or failed.
    #[error(transparent)]
    Service(#[from] ServiceError),
}

type Row = (StatusCode, &'static str);

const INVALID: Row = (StatusCode::BAD_REQUEST, "INVALID_INPUT");
const WRONG: Row = (StatusCode::BAD_REQUEST, "VALIDATION_ERROR");
const TOO_LARGE: Row = (StatusCode::PAYLOAD_TOO_LARGE, "VALIDATION_ERROR");
const NOT_FOUND: Row = (StatusCode::NOT_FOUND, "NOT_FOUND");
const CONFLICT: Row = (StatusCode::CONFLICT, "CONFLICT");
const RATE_LIMIT: Row = (StatusCode::TOO_MANY_REQUESTS, "RATE_LIMIT");
const UNAVAILABLE: Row = (StatusCode::SERVICE_UNAVAILABLE, "SERVICE_UNAVAILABLE");

impl RelayError {
    fn row(&self) -> Row {
        match self {
            Self::Unauthorized => (StatusCode::UNAUTHORIZED, "UNAUTHORIZED"),
            Self::Forbidden(_) => (StatusCode::FORBIDDEN, "FORBIDDEN"),
            Self::NotFound(_) => NOT_FOUND,
            Self::MethodNotAllowed { .. } => (StatusCode::METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED"),
            Self::InvalidInput(_) => INVALID,
            Self::Validation(_) => WRONG,
            Self::BodyTooLarge { .. } => TOO_LARGE,
            Self::Overloaded => UNAVAILABLE,
            Self::Service(error) => service_row(error),
        }
    }

    /// The text for people. The cause of a fault is only in the log.
    fn message(&self) -> String {
        match self {
            Self::Service(ServiceError::Store(StoreError::Full)) => "the store is full".into(),
            Self::Service(ServiceError::Store(_)) => "the store is not available".into(),
            Self::Service(ServiceError::Refused(Refusal::ScopeNotFound)) => "not found".into(),
            _ => self.to_string(),
        }
    }
}

/// The wire has fewer codes than the API, so the status tells which.
fn service_row(error: &ServiceError) -> Row {
    match error.problem().status {
        StatusCode::BAD_REQUEST => WRONG,
        StatusCode::NOT_FOUND => NOT_FOUND,
        StatusCode::PAYLOAD_TOO_LARGE => TOO_LARGE,
        StatusCode::TOO_MANY_REQUESTS => RATE_LIMIT,
        StatusCode::SERVICE_UNAVAILABLE => UNAVAILABLE,
        _ => CONFLICT,
    }
}

impl ResponseError for RelayError {
    fn status_code(&self) -> StatusCode {
        self.row().0
    }

    fn error_response(&self) -> HttpResponse {
        let (status, code) = self.row();
        let mut response = HttpResponse::build(status);
        match self {
            Self::Unauthorized => {
                // which every 401 has to have (RFC 9110, section 15.5.2)
                let bearer = HeaderValue::from_static("Bearer");
                response.insert_header((WWW_AUTHENTICATE, bearer));
            }
            Self::MethodNotAllowed { allow } => {
                response.insert_header((ALLOW, HeaderValue::from_static(allow)));
            }
            _ => {}
        }
        let retry_after_seconds = match self {
            Self::Service(error) => error.problem().retry_after_seconds,
            _ => (status == StatusCode::SERVICE_UNAVAILABLE).then_some(1),
        };
        if let Some(seconds) = retry_after_seconds {
            response.insert_header((RETRY_AFTER, HeaderValue::from(seconds)));
        }
        let message = self.message();
        response.json(json!({"error": message, "code": code, "message": message}))
    }
}
