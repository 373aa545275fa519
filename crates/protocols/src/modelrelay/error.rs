//! Maps each error of this protocol to an HTTP answer of the form `{"error","code","message"}`.

use std::sync::Arc;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{ALLOW, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use serde_json::json;

use threadkeep_domain::{Failure, FailureCode, Refusal};
use threadkeep_identity::Right;
use threadkeep_responses::ResponseError;
use threadkeep_service::ServiceError;
use threadkeep_store::StoreError;
use threadkeep_web::ToProblem as _;
use threadkeep_web::{BEARER, WRONG_BEARER};

#[derive(Debug, thiserror::Error)]
pub enum RelayError {
    /// The request has neither an API key in `X-ModelRelay-Api-Key` nor a bearer credential.
    #[error("this request requires an API key")]
    Unauthorized,
    /// A bearer credential that is not an API key.
    #[error("this request requires an API key")]
    WrongKey,
    #[error("the API key lacks the right `{0}`")]
    Forbidden(Right),
    #[error("{0} not found")]
    NotFound(&'static str),
    #[error("the method is not supported here; use {allow}")]
    MethodNotAllowed { allow: &'static str },
    /// A malformed path, query or header, or a body that is not JSON.
    #[error("{0}")]
    InvalidInput(String),
    /// A body that is JSON but invalid.
    #[error("{0}")]
    Validation(String),
    #[error("the body is larger than {limit_bytes} bytes")]
    BodyTooLarge { limit_bytes: u64 },
    #[error("the server has no memory left for the body")]
    Overloaded,
    /// A model response that ended without an answer.
    #[error("{0}")]
    Response(#[from] Arc<ResponseError>),
    /// A failed model response. Its message may come from an upstream, so only the caller may see it.
    #[error("the response failed: {}", .0.code.as_str())]
    Failed(Failure),
    #[error(transparent)]
    Service(#[from] ServiceError),
}

impl From<ResponseError> for RelayError {
    fn from(error: ResponseError) -> Self {
        Self::Response(Arc::new(error))
    }
}

pub(super) fn wrong_body(text: impl Into<String>) -> RelayError {
    RelayError::Validation(text.into())
}

pub(super) fn wrong_input(text: impl Into<String>) -> RelayError {
    RelayError::InvalidInput(text.into())
}

type Row = (StatusCode, &'static str);

const INVALID: Row = (StatusCode::BAD_REQUEST, "INVALID_INPUT");
const WRONG: Row = (StatusCode::BAD_REQUEST, "VALIDATION_ERROR");
const TOO_LARGE: Row = (StatusCode::PAYLOAD_TOO_LARGE, "VALIDATION_ERROR");
const NOT_FOUND: Row = (StatusCode::NOT_FOUND, "NOT_FOUND");
const CONFLICT: Row = (StatusCode::CONFLICT, "CONFLICT");
const RATE_LIMIT: Row = (StatusCode::TOO_MANY_REQUESTS, "RATE_LIMIT");
const UNAVAILABLE: Row = (StatusCode::SERVICE_UNAVAILABLE, "SERVICE_UNAVAILABLE");
const BAD_GATEWAY: Row = (StatusCode::BAD_GATEWAY, "SERVICE_UNAVAILABLE");
const GATEWAY_TIMEOUT: Row = (StatusCode::GATEWAY_TIMEOUT, "SERVICE_UNAVAILABLE");
const INTERNAL: Row = (StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL_ERROR");

impl RelayError {
    fn row(&self) -> Row {
        match self {
            Self::Unauthorized | Self::WrongKey => (StatusCode::UNAUTHORIZED, "UNAUTHORIZED"),
            Self::Forbidden(_) => (StatusCode::FORBIDDEN, "FORBIDDEN"),
            Self::NotFound(_) => NOT_FOUND,
            Self::MethodNotAllowed { .. } => (StatusCode::METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED"),
            Self::InvalidInput(_) => INVALID,
            Self::Validation(_) => WRONG,
            Self::BodyTooLarge { .. } => TOO_LARGE,
            Self::Overloaded => UNAVAILABLE,
            Self::Response(error) => response_row(error),
            Self::Failed(failure) => failure_row(failure),
            Self::Service(error) => service_row(error),
        }
    }

    /// Returns the status, code and text of the error, to be sent as a line of a stream.
    pub(super) fn shown(&self) -> (StatusCode, &'static str, String) {
        let (status, code) = self.row();
        (status, code, self.message())
    }

    fn retry_after_seconds(&self) -> Option<u64> {
        match self {
            Self::Service(error) => error.problem().retry_after_seconds,
            Self::Failed(failure) => failure.retry_after_seconds,
            Self::Response(error) => match &**error {
                ResponseError::Failed(failure) => failure.retry_after_seconds,
                ResponseError::Service(error) => error.problem().retry_after_seconds,
                ResponseError::Locked { .. } | ResponseError::TooMany | ResponseError::Stopping => {
                    Some(1)
                }
                _ => None,
            },
            _ => (self.row() == UNAVAILABLE).then_some(1),
        }
    }

    fn message(&self) -> String {
        let service = match self {
            Self::Failed(failure) => return failure.message.clone(),
            Self::Service(error) => Some(error),
            Self::Response(error) => match &**error {
                ResponseError::Failed(failure) => return failure.message.clone(),
                ResponseError::Service(error) => Some(error),
                _ => None,
            },
            _ => None,
        };
        match service {
            Some(ServiceError::Store(StoreError::Full)) => "the store is full".into(),
            Some(ServiceError::Store(_)) => "the store is not available".into(),
            Some(ServiceError::Refused(Refusal::ScopeNotFound)) => "not found".into(),
            _ => self.to_string(),
        }
    }
}

/// Maps a service error by its status, because the protocol has fewer codes than `/v1`.
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

fn response_row(error: &ResponseError) -> Row {
    match error {
        ResponseError::NoModel | ResponseError::NoResponse | ResponseError::NoConversation => {
            NOT_FOUND
        }
        ResponseError::StreamExpired | ResponseError::NoSuchEvent => INVALID,
        ResponseError::NoCall { .. } | ResponseError::NoInput => WRONG,
        ResponseError::Locked { .. } => CONFLICT,
        ResponseError::TooMany | ResponseError::Stopping => UNAVAILABLE,
        ResponseError::Failed(failure) => failure_row(failure),
        ResponseError::Service(error) => service_row(error),
    }
}

fn failure_row(failure: &Failure) -> Row {
    match failure.code {
        FailureCode::UpstreamRefused => WRONG,
        FailureCode::RateLimitExceeded => RATE_LIMIT,
        FailureCode::UpstreamError | FailureCode::UpstreamMalformed => BAD_GATEWAY,
        FailureCode::UpstreamTimeout => GATEWAY_TIMEOUT,
        FailureCode::ConversationDestroyed => CONFLICT,
        FailureCode::ConversationTooLarge => TOO_LARGE,
        FailureCode::Abandoned => INTERNAL,
    }
}

impl actix_web::ResponseError for RelayError {
    fn status_code(&self) -> StatusCode {
        self.row().0
    }

    fn error_response(&self) -> HttpResponse {
        let (status, code) = self.row();
        let mut response = HttpResponse::build(status);
        match self {
            Self::Unauthorized => {
                response.insert_header((WWW_AUTHENTICATE, BEARER));
            }
            Self::WrongKey => {
                response.insert_header((WWW_AUTHENTICATE, WRONG_BEARER));
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
