//! The errors of requests, and the one table that maps them to HTTP.

mod problem;
mod table;

use actix_web::body::{BoxBody, EitherBody, MessageBody};
use actix_web::dev::ServiceResponse;
use actix_web::http::header::{CONTENT_TYPE, HeaderMap, HeaderValue, IF_MATCH};
use actix_web::http::{Method, StatusCode};
use actix_web::{HttpResponse, ResponseError};

pub use problem::{BEARER, Problem, WRONG_BEARER};
pub use table::ToProblem;

use super::session::SessionId;
use threadkeep_domain::scope::ScopeError;
use threadkeep_domain::{
    ContentError, EntryKeyError, EventTypeError, Excerpt, JsonError, KeyError, NamespaceError,
    ObjectError, ObjectFault, Refusal,
};
use threadkeep_identity::IdentityError;
use threadkeep_service::ServiceError;

/// The error of a request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ApiError {
    /// The body is not JSON, or nested too deep.
    #[error("The body is not JSON: {0}.")]
    InvalidJson(JsonError),
    /// An invalid key.
    #[error("The key is invalid: {error}.")]
    InvalidKey {
        /// The broken rule.
        error: KeyError,
        /// Index of the operation, in a merge.
        operation: Option<usize>,
    },
    /// An invalid key of an entry.
    #[error("The key is invalid: {0}.")]
    InvalidEntryKey(#[from] EntryKeyError),
    /// An invalid namespace.
    #[error("The namespace is invalid: {0}.")]
    InvalidNamespace(#[from] NamespaceError),
    /// An invalid content type or encoding of an entry.
    #[error("The type of the body is invalid: {0}.")]
    InvalidContent(#[from] ContentError),
    /// A malformed operation.
    #[error("The operation is invalid: {detail}.")]
    InvalidOperation {
        /// The broken rule.
        detail: String,
        /// Index of the operation, in a merge.
        operation: Option<usize>,
    },
    /// A malformed or unknown query parameter, header or member of the body.
    #[error("{0}.")]
    InvalidParameter(String),
    /// A malformed thread id in the path or body.
    #[error("A thread id is `thrd_` with 27 to 59 letters and digits.")]
    InvalidThreadId,
    /// An invalid scope, or an invalid key, value or item of one.
    #[error("The {} is invalid: {error}.", error.part())]
    ScopePart {
        /// The broken rule.
        error: ScopeError,
        /// Index in a list of several.
        index: Option<usize>,
    },
    /// The server is about to stop.
    #[error("The server is about to stop.")]
    ShuttingDown,
    /// An unknown tool.
    #[error("The tool does not exist. GET /v1/tools lists all tools.")]
    ToolNotFound,
    /// A cursor that the server did not issue, or that belongs to another list.
    #[error("The cursor is invalid, or belongs to another list. Pass `next_cursor` unchanged.")]
    InvalidCursor,
    /// An unknown event type.
    #[error("Unknown event type: {0}.")]
    InvalidEventType(#[from] EventTypeError),
    /// An invalid URL of a webhook endpoint.
    #[doc(hidden)]
    #[error("The URL of the webhook is invalid: {0}.")]
    InvalidWebhookUrl(String),
    /// The request lacks a valid API key or signed id.
    #[error(
        "This request needs an API key (`Authorization: Bearer`). For a thread, its signed id is enough (`x-thread-id` or the cookie)."
    )]
    ApiKeyRequired,
    /// The credential is no API key of this server.
    #[error("The API key is unknown.")]
    InvalidApiKey,
    /// The API key may not make this call.
    #[error("The API key lacks the right `{right}`.")]
    RightMissing {
        /// The right that the call needs.
        right: String,
    },
    /// The caller's thread cannot be verified.
    #[error("The signature of the thread id does not verify.")]
    Identity(#[from] IdentityError),
    /// An unknown path.
    #[error("The path does not exist. /openapi.json lists all paths.")]
    NotFound,
    /// An unknown webhook endpoint.
    #[doc(hidden)]
    #[error("The webhook endpoint does not exist.")]
    WebhookNotFound,
    /// An endpoint of the settings, which the API cannot change.
    #[doc(hidden)]
    #[error("Only the server's settings can change this endpoint.")]
    WebhookConfigured,
    /// Too many webhook endpoints.
    #[doc(hidden)]
    #[error("There are {limit} endpoints already, the maximum. Delete one first.")]
    TooManyWebhooks {
        /// The maximum.
        limit: usize,
    },
    /// The path does not support the method.
    #[error("{} is not supported here; use {}.", Excerpt(method.as_str()), any_of(allow))]
    MethodNotAllowed {
        /// The method of the request.
        method: Method,
        /// The supported methods.
        allow: &'static str,
    },
    /// The client does not accept the type of the answer.
    #[error("The answer is {answer}, which `Accept` excludes.")]
    NotAcceptable {
        /// The type of the answer.
        answer: &'static str,
    },
    /// The body has another type.
    #[error("The body must be {wanted} in UTF-8, without a content encoding.")]
    UnsupportedMediaType {
        /// The supported type.
        wanted: &'static str,
    },
    /// The body is too large.
    #[error("The body is larger than {limit_bytes} bytes.")]
    BodyTooLarge {
        /// The limit.
        limit_bytes: u64,
        /// The bytes that were read.
        read_bytes: u64,
    },
    /// The URL is too long.
    #[error("The URL is longer than {limit_bytes} bytes.")]
    UrlTooLong {
        /// The limit.
        limit_bytes: usize,
    },
    /// The headers are too many or too large.
    #[error("A request may have {limit} headers, and {limit_bytes} bytes of headers and URL.")]
    HeadersTooLarge {
        /// The maximum.
        limit: usize,
        /// The maximum of their bytes, with the URL.
        limit_bytes: usize,
    },
    /// The body ended too early, or its HTTP framing is malformed.
    #[error("The body is incomplete or malformed.")]
    BodyUnreadable,
    /// The bodies or answers of other requests use all the memory for them.
    #[error("The server has no memory left for the body or the answer. Retry later.")]
    Overloaded,
    /// The service rejected the request, or failed.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// A fault of the app around the library. The server never answers this.
    #[error("{what}")]
    Internal {
        /// The cause, for the log.
        what: &'static str,
        /// The difference between a value and its type. Its text may show the value, so it is not logged.
        source: Option<serde_json::Error>,
    },
}

impl ApiError {
    /// An id that a provider names would come again.
    #[doc(hidden)]
    pub fn provided_id() -> Self {
        let detail = "The identity provider names the id of this thread, so it cannot change";
        Self::InvalidParameter(detail.into())
    }

    /// Its stable code, as in the problem object.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.problem().code
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
                Self::InvalidParameter("The body must be a JSON object".into())
            }
        }
    }
}

/// `GET, HEAD, PUT` as "GET, HEAD or PUT".
fn any_of(allow: &str) -> String {
    match allow.rsplit_once(", ") {
        Some((others, last)) => format!("{others} or {last}"),
        None => allow.to_owned(),
    }
}

/// Status and headers. [`with_problem`] adds the body, which needs the session.
impl ResponseError for ApiError {
    fn status_code(&self) -> StatusCode {
        self.problem().status
    }

    fn error_response(&self) -> HttpResponse {
        self.problem().head()
    }
}

/// Whether `If-Match` has a weak tag, which never matches (RFC 9110, section 8.8.3.2).
fn has_weak_condition(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(IF_MATCH);
    values.any(|value| value.as_bytes().windows(3).any(|bytes| bytes == b"W/\""))
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
    let weakened = || has_weak_condition(response.request().headers());
    let body = error.problem().explained(weakened).body(session);
    response.map_body(|head, _| {
        let json = HeaderValue::from_static("application/problem+json");
        head.headers_mut().insert(CONTENT_TYPE, json);
        EitherBody::right(BoxBody::new(body))
    })
}
