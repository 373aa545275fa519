//! Why a request was not done, and the one table from that to HTTP.

mod problem;
mod table;

use actix_web::body::{BoxBody, EitherBody, MessageBody};
use actix_web::dev::ServiceResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_TYPE, HeaderValue};
use actix_web::{HttpResponse, ResponseError};

use super::session::SessionId;
use crate::domain::scope::ScopeError;
use crate::domain::{
    ContentError, EntryKeyError, EventTypeError, JsonError, KeyError, NamespaceError, ObjectError,
    ObjectFault, Refusal,
};
use crate::identity::IdentityError;
use crate::service::ServiceError;
#[cfg(feature = "server")]
use crate::webhooks::{EndpointUrlError, WebhookError};

/// Why a request was not done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ApiError {
    /// The body is not JSON, or nested too deep.
    #[error("The body is not JSON: {0}.")]
    InvalidJson(JsonError),
    /// A key outside the rule.
    #[error("The key is not legal: {error}.")]
    InvalidKey {
        /// What is wrong.
        error: KeyError,
        /// Index of the operation, in a merge.
        operation: Option<usize>,
    },
    /// A key of an entry outside the rule.
    #[error("The key is not legal: {0}.")]
    InvalidEntryKey(#[from] EntryKeyError),
    /// A namespace outside the rule.
    #[error("The namespace is not legal: {0}.")]
    InvalidNamespace(#[from] NamespaceError),
    /// A header does not say what the body of an entry is.
    #[error("What the body is cannot be told: {0}.")]
    InvalidContent(#[from] ContentError),
    /// An operation that is malformed.
    #[error("The operation is not legal: {detail}.")]
    InvalidOperation {
        /// What is wrong.
        detail: String,
        /// Index of the operation, in a merge.
        operation: Option<usize>,
    },
    /// A query parameter, header or member of the body that is malformed or unknown.
    #[error("{0}.")]
    InvalidParameter(String),
    /// The id in the path or body is no thread id.
    #[error("The thread id is not legal.")]
    InvalidThreadId,
    /// What is no scope, or no key, value or item of one.
    #[error("The {} is not legal: {error}.", error.part())]
    ScopePart {
        /// What is wrong.
        error: ScopeError,
        /// Index in a list of several.
        index: Option<usize>,
    },
    /// The server is about to stop.
    #[error("The server is about to stop.")]
    ShuttingDown,
    /// There is no tool of that name.
    #[error("There is no such tool.")]
    ToolNotFound,
    /// The cursor is none of ours, or of something else.
    #[error("The cursor was not issued for this.")]
    InvalidCursor,
    /// There are no events of that type.
    #[error("There is no such event type: {0}.")]
    InvalidEventType(#[from] EventTypeError),
    #[cfg(feature = "server")]
    /// Deliveries cannot go to that URL.
    #[error("The URL cannot be delivered to: {0}.")]
    InvalidWebhookUrl(#[from] EndpointUrlError),
    /// An api key, or a signed id, is needed and was not there or not right.
    #[error("This needs an api key, or a signed id that is its own.")]
    ApiKeyRequired,
    /// It cannot be told whose thread this is about.
    #[error("The thread id could not be verified.")]
    Identity(#[from] IdentityError),
    /// No such path.
    #[error("There is nothing at this path.")]
    NotFound,
    #[cfg(feature = "server")]
    /// No such endpoint.
    #[error("There is no such endpoint.")]
    WebhookNotFound,
    #[cfg(feature = "server")]
    /// The endpoint is one of the settings.
    #[error("The endpoint is one of the server's settings, where alone it is changed.")]
    WebhookConfigured,
    #[cfg(feature = "server")]
    /// There are as many endpoints as there may be.
    #[error("There are {limit} endpoints already.")]
    TooManyWebhooks {
        /// How many there may be.
        limit: usize,
    },
    /// The path has other methods.
    #[error("This path does not take that method.")]
    MethodNotAllowed {
        /// Which it takes.
        allow: &'static str,
    },
    /// The client does not take what the answer is.
    #[error("The answer is {answer}, which the request does not accept.")]
    NotAcceptable {
        /// The type of the answer.
        answer: &'static str,
    },
    /// The body is of another type.
    #[error("The body has to be {wanted} in UTF-8, without an encoding.")]
    UnsupportedMediaType {
        /// What it has to be.
        wanted: &'static str,
    },
    /// The body is too large.
    #[error("The body is larger than {limit_bytes} bytes.")]
    BodyTooLarge {
        /// The limit.
        limit_bytes: u64,
        /// What was read of it.
        read_bytes: u64,
    },
    /// The URL is too long.
    #[error("The URL is longer than {limit_bytes} bytes.")]
    UrlTooLong {
        /// The limit.
        limit_bytes: usize,
    },
    /// The headers are too many or too large.
    #[error("There are more than {limit} headers, or they have more than {limit_bytes} bytes.")]
    HeadersTooLarge {
        /// How many there may be.
        limit: usize,
        /// What they may have with the URL.
        limit_bytes: usize,
    },
    /// The body ended before it was whole, or was malformed as HTTP.
    #[error("The body could not be read.")]
    BodyUnreadable,
    /// The bodies or answers of other requests use all the memory that there is for them.
    #[error(
        "The server has no memory left for the body or the answer. Send the request again later."
    )]
    Overloaded,
    /// The service did not do it.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// An app around the library is at fault. The API itself never answers this.
    #[error("{what}")]
    Internal {
        /// What is wrong, for the log.
        what: &'static str,
        /// Where a value and its type differ; its text may show the value, so it is not logged.
        source: Option<serde_json::Error>,
    },
}

impl ApiError {
    /// Its stable code, as in the problem object.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.problem().code
    }
}

#[cfg(feature = "server")]
impl From<WebhookError> for ApiError {
    fn from(error: WebhookError) -> Self {
        match error {
            WebhookError::NotFound => Self::WebhookNotFound,
            WebhookError::Configured => Self::WebhookConfigured,
            WebhookError::TooMany(limit) => Self::TooManyWebhooks { limit },
            WebhookError::Url(error) => Self::InvalidWebhookUrl(error),
            WebhookError::Contended => Self::Service(Refusal::Changed.into()),
            WebhookError::Store(error) => Self::Service(error.into()),
        }
    }
}

impl From<ScopeError> for ApiError {
    fn from(error: ScopeError) -> Self {
        Self::ScopePart { error, index: None }
    }
}

impl From<ObjectFault> for ApiError {
    fn from(fault: ObjectFault) -> Self {
        match fault {
            ObjectFault::Object(error) => error.into(),
            ObjectFault::Key(error) => Self::InvalidKey {
                error,
                operation: None,
            },
            ObjectFault::TooManyKeys(limit_keys) => {
                Self::Service(ServiceError::Refused(Refusal::TooManyKeys { limit_keys }))
            }
        }
    }
}

impl From<ObjectError> for ApiError {
    fn from(error: ObjectError) -> Self {
        match error {
            ObjectError::Json(error) => Self::InvalidJson(error),
            ObjectError::NotAnObject => {
                Self::InvalidParameter("The body has to be an object".into())
            }
        }
    }
}

/// Status and headers; the body needs the session, so [`with_problem`] puts it in.
impl ResponseError for ApiError {
    fn status_code(&self) -> StatusCode {
        self.problem().status
    }

    fn error_response(&self) -> HttpResponse {
        self.problem().head()
    }
}

/// Gives a response that is an [`ApiError`] its problem object; others pass as they are.
pub fn with_problem<B: MessageBody>(
    response: ServiceResponse<B>,
    session: &SessionId,
) -> ServiceResponse<EitherBody<B>> {
    let error = response.response().error();
    let Some(error) = error.and_then(|error| error.as_error::<ApiError>()) else {
        return response.map_into_left_body();
    };
    let body = error.problem().body(session);
    response.map_body(|head, _| {
        let json = HeaderValue::from_static("application/problem+json");
        head.headers_mut().insert(CONTENT_TYPE, json);
        EitherBody::right(BoxBody::new(body))
    })
}
