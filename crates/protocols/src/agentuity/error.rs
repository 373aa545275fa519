//! Maps each error of this protocol to an HTTP answer of the form `{"error"}`. The client passes the error message to
//! the app, except for 401 and 404, which the client reports with fixed messages.

use actix_http::ws::HandshakeError;
use actix_web::http::StatusCode;
use actix_web::http::header::{
    ALLOW, HeaderValue, RETRY_AFTER, SEC_WEBSOCKET_VERSION, UPGRADE, WWW_AUTHENTICATE,
};
use actix_web::{HttpResponse, ResponseError};
use serde_json::json;

use threadkeep_domain::{ContentError, EntryKeyError, NamespaceError};
use threadkeep_identity::Right;
use threadkeep_service::ServiceError;
use threadkeep_store::StoreError;
use threadkeep_web::ToProblem as _;
use threadkeep_web::{BEARER, WRONG_BEARER};

#[derive(Debug, thiserror::Error)]
pub enum AgentuityError {
    #[error("this request requires an API key")]
    Unauthorized,
    /// A bearer credential that is not an API key.
    #[error("this request requires an API key")]
    WrongKey,
    #[error("the API key lacks the right `{0}`")]
    Forbidden(Right),
    #[error("the path does not exist")]
    NotFound,
    #[error("the method is not supported here; use {allow}")]
    MethodNotAllowed { allow: &'static str },
    #[error("this path is for WebSockets of version 13: {0}")]
    NotASocket(#[from] HandshakeError),
    #[error("the namespace is invalid: {0}")]
    Namespace(#[from] NamespaceError),
    #[error("the key is invalid: {0}")]
    Key(#[from] EntryKeyError),
    #[error("the type of the value is invalid: {0}")]
    Content(#[from] ContentError),
    #[error("{0}")]
    Invalid(&'static str),
    #[error("the body is larger than {limit_bytes} bytes")]
    BodyTooLarge { limit_bytes: u64 },
    #[error("the server has no memory left for the body")]
    Overloaded,
    #[error(transparent)]
    Service(#[from] ServiceError),
}

impl AgentuityError {
    fn status(&self) -> StatusCode {
        match self {
            Self::Unauthorized | Self::WrongKey => StatusCode::UNAUTHORIZED,
            Self::Forbidden(_) => StatusCode::FORBIDDEN,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed { .. } | Self::NotASocket(HandshakeError::GetMethodRequired) => {
                StatusCode::METHOD_NOT_ALLOWED
            }
            Self::NotASocket(HandshakeError::BadWebsocketKey) => StatusCode::BAD_REQUEST,
            Self::NotASocket(_) => StatusCode::UPGRADE_REQUIRED,
            Self::Namespace(_) | Self::Key(_) | Self::Content(_) | Self::Invalid(_) => {
                StatusCode::BAD_REQUEST
            }
            Self::BodyTooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Overloaded => StatusCode::SERVICE_UNAVAILABLE,
            Self::Service(error) => error.problem().status,
        }
    }

    fn message(&self) -> String {
        match self {
            Self::Service(ServiceError::Store(StoreError::Full)) => "the store is full".into(),
            Self::Service(ServiceError::Store(_)) => "the store is not available".into(),
            _ => self.to_string(),
        }
    }
}

impl ResponseError for AgentuityError {
    fn status_code(&self) -> StatusCode {
        self.status()
    }

    fn error_response(&self) -> HttpResponse {
        let status = self.status();
        let mut response = HttpResponse::build(status);
        if let Self::MethodNotAllowed { allow } = self {
            response.insert_header((ALLOW, HeaderValue::from_static(allow)));
        }
        match status {
            StatusCode::UNAUTHORIZED => {
                let is_wrong = matches!(self, Self::WrongKey);
                let challenge = if is_wrong { WRONG_BEARER } else { BEARER };
                response.insert_header((WWW_AUTHENTICATE, challenge));
            }
            StatusCode::UPGRADE_REQUIRED => {
                // required by RFC 9110, section 15.5.22, and RFC 6455, section 4.4
                response.insert_header((UPGRADE, HeaderValue::from_static("websocket")));
                response.insert_header((SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13")));
            }
            StatusCode::SERVICE_UNAVAILABLE => {
                response.insert_header((RETRY_AFTER, HeaderValue::from_static("1")));
            }
            _ => {}
        }
        response.json(json!({"error": self.message()}))
    }
}
