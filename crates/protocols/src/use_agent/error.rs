//! Errors in the `use-agent` client's format: `{"error":{"code","message"}}`, with the statuses and codes of `/v1`.

use actix_web::body::BoxBody;
use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_TYPE, HeaderValue};
use actix_web::{HttpResponse, ResponseError};
use serde_json::json;

use threadkeep_domain::Refusal;
use threadkeep_service::ServiceError;
use threadkeep_web::ApiError;

#[derive(Debug, thiserror::Error)]
pub enum UseAgentError {
    #[error(transparent)]
    Api(ApiError),
    /// A name that no thread can have.
    #[error("A thread id has 1 to 256 bytes without control characters.")]
    ThreadName,
    #[error("There is no such thread")]
    NoSuchThread,
    /// A client route that runs agents.
    #[error(
        "This route runs agents, which your app does: set its URL in `api` of the transport's configuration."
    )]
    AppRoute,
}

impl<E: Into<ApiError>> From<E> for UseAgentError {
    fn from(error: E) -> Self {
        Self::Api(error.into())
    }
}

impl UseAgentError {
    /// Returns the error for a caller that names a different user, or a thread that belongs to a different user.
    pub(super) fn not_the_owner() -> Self {
        ServiceError::from(Refusal::NotTheOwner).into()
    }

    pub(super) fn invalid(detail: impl Into<String>) -> Self {
        Self::Api(ApiError::InvalidParameter(detail.into()))
    }

    fn code(&self) -> &'static str {
        match self {
            Self::Api(error) => error.code(),
            Self::ThreadName => "invalid_thread_id",
            Self::NoSuchThread | Self::AppRoute => "not_found",
        }
    }

    fn message(&self) -> String {
        match self {
            Self::Api(error) => error.problem().detail,
            _ => self.to_string(),
        }
    }
}

impl ResponseError for UseAgentError {
    fn status_code(&self) -> StatusCode {
        match self {
            Self::Api(error) => error.status_code(),
            Self::ThreadName => StatusCode::BAD_REQUEST,
            Self::NoSuchThread | Self::AppRoute => StatusCode::NOT_FOUND,
        }
    }

    fn error_response(&self) -> HttpResponse {
        let mut response = match self {
            Self::Api(error) => error.error_response(),
            _ => HttpResponse::new(self.status_code()),
        };
        let is_json = HeaderValue::from_static("application/json");
        response.headers_mut().insert(CONTENT_TYPE, is_json);
        let body = json!({"error": {"code": self.code(), "message": self.message()}});
        response.set_body(BoxBody::new(body.to_string()))
    }
}
