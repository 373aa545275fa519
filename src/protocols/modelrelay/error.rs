//! The one table from what went wrong to what the wire answers: `{"error","code","message"}`.

use actix_web::http::StatusCode;
use actix_web::http::header::{ALLOW, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use actix_web::{HttpResponse, ResponseError};
use serde_json::json;

use crate::domain::Refusal;
use crate::domain::scope::{ScopeRefusal, TaskError};
use crate::service::ServiceError;
use crate::store::StoreError;

/// Why a request was not done.
#[derive(Debug, thiserror::Error)]
pub enum RelayError {
    /// No api key, or none that is known.
    #[error("an api key is needed")]
    Unauthorized,
    /// There is nothing of that name.
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
    /// A body that does not say what it should.
    #[error("{0}")]
    Validation(String),
    /// The body is too large.
    #[error("the body is larger than {limit_bytes} bytes")]
    BodyTooLarge {
        /// The limit.
        limit_bytes: u64,
    },
    /// The bodies of other requests have all the memory that there is for them.
    #[error("the server has no memory left for the body")]
    Overloaded,
    /// The service did not do it.
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
            Self::NotFound(_) => NOT_FOUND,
            Self::MethodNotAllowed { .. } => (StatusCode::METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED"),
            Self::InvalidInput(_) => INVALID,
            Self::Validation(_) => WRONG,
            Self::BodyTooLarge { .. } => TOO_LARGE,
            Self::Overloaded => UNAVAILABLE,
            Self::Service(error) => service_row(error),
        }
    }

    /// For people. What broke inside is for the log alone.
    fn message(&self) -> String {
        match self {
            Self::Service(ServiceError::Store(StoreError::Full)) => "the store is full".into(),
            Self::Service(ServiceError::Store(_)) => "the store is not available".into(),
            Self::Service(ServiceError::ScopeRefused(ScopeRefusal::NotFound)) => "not found".into(),
            _ => self.to_string(),
        }
    }

    fn retry_after_seconds(&self) -> Option<u64> {
        match self {
            Self::Service(ServiceError::ScopeRefused(ScopeRefusal::TooManyIdempotencyKeys {
                retry_after_ms,
            })) => Some(retry_after_ms.div_ceil(1_000)),
            Self::Service(
                ServiceError::Refused(Refusal::RateLimited(limited))
                | ServiceError::ScopeRefused(ScopeRefusal::RateLimited(limited)),
            ) => Some(limited.retry_after_seconds()),
            _ if self.row() == UNAVAILABLE => Some(1),
            _ => None,
        }
    }
}

fn service_row(error: &ServiceError) -> Row {
    match error {
        ServiceError::KeyNotFound { .. }
        | ServiceError::ArchiveNotFound
        | ServiceError::EntryNotFound => NOT_FOUND,
        ServiceError::EntryTooLarge { .. } => TOO_LARGE,
        ServiceError::NotAnArray { .. }
        | ServiceError::ThreadExists
        | ServiceError::TooManyNamespaces { .. } => CONFLICT,
        ServiceError::Refused(refusal) => refusal_row(refusal),
        ServiceError::ScopeRefused(refusal) => scope_row(refusal),
        ServiceError::Tasks(error) => task_row(error),
        ServiceError::Store(_) => UNAVAILABLE,
    }
}

fn refusal_row(refusal: &Refusal) -> Row {
    match refusal {
        Refusal::NotAnArray { .. }
        | Refusal::NotAnInteger { .. }
        | Refusal::IntegerOverflow { .. }
        | Refusal::VersionMismatch { .. }
        | Refusal::Destroyed
        | Refusal::IdempotencyKeyReused => CONFLICT,
        Refusal::StateTooLarge { .. }
        | Refusal::TooManyKeys { .. }
        | Refusal::MetadataTooLarge { .. } => TOO_LARGE,
        Refusal::ValueChanged => UNAVAILABLE,
        Refusal::TooManyIdempotencyKeys { .. } | Refusal::RateLimited(_) => RATE_LIMIT,
    }
}

fn scope_row(refusal: &ScopeRefusal) -> Row {
    match refusal {
        ScopeRefusal::NotFound => NOT_FOUND,
        ScopeRefusal::Sealed
        | ScopeRefusal::Exists
        | ScopeRefusal::VersionMismatch { .. }
        | ScopeRefusal::NotAnInteger { .. }
        | ScopeRefusal::IntegerOverflow { .. }
        | ScopeRefusal::ItemIdReused { .. }
        | ScopeRefusal::IdempotencyKeyReused => CONFLICT,
        // given up after trying for as long as a request may take
        ScopeRefusal::NoThread | ScopeRefusal::Changed => UNAVAILABLE,
        ScopeRefusal::KvTooLarge { .. }
        | ScopeRefusal::TooManyKeys { .. }
        | ScopeRefusal::HistoryTooLarge { .. } => TOO_LARGE,
        ScopeRefusal::TooManyIdempotencyKeys { .. } | ScopeRefusal::RateLimited(_) => RATE_LIMIT,
    }
}

fn task_row(error: &TaskError) -> Row {
    match error {
        TaskError::NotFound => NOT_FOUND,
        TaskError::WouldDropUnfinished { .. } => CONFLICT,
        TaskError::TooMany { .. } | TaskError::TooLarge { .. } => TOO_LARGE,
        TaskError::NoContent | TaskError::SameId | TaskError::Id => WRONG,
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
        if let Some(seconds) = self.retry_after_seconds() {
            response.insert_header((RETRY_AFTER, HeaderValue::from(seconds)));
        }
        let message = self.message();
        response.json(json!({"error": message, "code": code, "message": message}))
    }
}
