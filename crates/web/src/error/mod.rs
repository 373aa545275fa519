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

/// An error response to a request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ApiError {
    /// The body is not JSON, or nests too deeply.
    #[error("The body is not JSON: {0}.")]
    InvalidJson(JsonError),
    /// Invalid key.
    #[error("The key is invalid: {error}.")]
    InvalidKey {
        /// Violated rule.
        error: KeyError,
        /// Index of the operation in a merge.
        operation: Option<usize>,
    },
    /// Invalid key of a key-value entry.
    #[error("The key is invalid: {0}.")]
    InvalidEntryKey(#[from] EntryKeyError),
    /// Invalid namespace.
    #[error("The namespace is invalid: {0}.")]
    InvalidNamespace(#[from] NamespaceError),
    /// Invalid content type or encoding of a key-value entry.
    #[error("The type of the body is invalid: {0}.")]
    InvalidContent(#[from] ContentError),
    /// Malformed operation.
    #[error("The operation is invalid: {detail}.")]
    InvalidOperation {
        /// Violated rule.
        detail: String,
        /// Index of the operation in a merge.
        operation: Option<usize>,
    },
    /// Malformed or unknown query parameter, header or body member.
    #[error("{0}.")]
    InvalidParameter(String),
    /// Malformed thread id in the path or body.
    #[error("A thread id is `thrd_` with 27 to 59 letters and digits.")]
    InvalidThreadId,
    /// Invalid scope, or invalid key, value or item in a scope.
    #[error("The {} is invalid: {error}.", error.part())]
    ScopePart {
        /// Violated rule.
        error: ScopeError,
        /// Index of the part, if the request has several parts.
        index: Option<usize>,
    },
    /// The server is shutting down.
    #[error("The server is about to stop.")]
    ShuttingDown,
    /// Unknown tool.
    #[error("The tool does not exist. GET /v1/tools lists all tools.")]
    ToolNotFound,
    /// The cursor was not issued by this server, or belongs to a different list.
    #[error("The cursor is invalid, or belongs to another list. Pass `next_cursor` unchanged.")]
    InvalidCursor,
    /// Unknown event type.
    #[error("Unknown event type: {0}.")]
    InvalidEventType(#[from] EventTypeError),
    #[doc(hidden)]
    #[error("The URL of the webhook is invalid: {0}.")]
    InvalidWebhookUrl(String),
    /// The request contains neither a valid API key nor a signed thread id.
    #[error(
        "This request needs an API key (`Authorization: Bearer`). For a thread, its signed id is enough (`x-thread-id` or the cookie)."
    )]
    ApiKeyRequired,
    /// The credential is not an API key of this server.
    #[error("The API key is unknown.")]
    InvalidApiKey,
    /// The API key lacks the right for this call.
    #[error("The API key lacks the right `{right}`.")]
    RightMissing {
        /// The required right.
        right: String,
    },
    /// The caller's thread id cannot be verified.
    #[error("The signature of the thread id does not verify.")]
    Identity(#[from] IdentityError),
    /// Unknown path.
    #[error("The path does not exist. /openapi.json lists all paths.")]
    NotFound,
    #[doc(hidden)]
    #[error("The webhook endpoint does not exist.")]
    WebhookNotFound,
    #[doc(hidden)]
    #[error("Only the server's settings can change this endpoint.")]
    WebhookConfigured,
    #[doc(hidden)]
    #[error("There are {limit} endpoints already, the maximum. Delete one first.")]
    TooManyWebhooks {
        /// Maximum number of endpoints.
        limit: usize,
    },
    /// The path does not support the method.
    #[error("{} is not supported here; use {}.", Excerpt(method.as_str()), any_of(allow))]
    MethodNotAllowed {
        /// Method of the request.
        method: Method,
        /// Supported methods, separated by `, `.
        allow: &'static str,
    },
    /// `Accept` excludes the type of the response.
    #[error("The answer is {answer}, which `Accept` excludes.")]
    NotAcceptable {
        /// Type of the response.
        answer: &'static str,
    },
    /// Unsupported media type or content encoding of the body.
    #[error("The body must be {wanted} in UTF-8, without a content encoding.")]
    UnsupportedMediaType {
        /// Supported type.
        wanted: &'static str,
    },
    /// The body is too large.
    #[error("The body is larger than {limit_bytes} bytes.")]
    BodyTooLarge {
        /// Maximum size of a body, in bytes.
        limit_bytes: u64,
        /// Number of bytes read so far.
        read_bytes: u64,
    },
    /// The URL is too long.
    #[error("The URL is longer than {limit_bytes} bytes.")]
    UrlTooLong {
        /// Maximum size of a URL, in bytes.
        limit_bytes: usize,
    },
    /// The headers are too many or too large.
    #[error("A request may have {limit} headers, and {limit_bytes} bytes of headers and URL.")]
    HeadersTooLarge {
        /// Maximum number of headers.
        limit: usize,
        /// Maximum size of headers and URL, in bytes.
        limit_bytes: usize,
    },
    /// The body ended early, or its HTTP framing is malformed.
    #[error("The body is incomplete or malformed.")]
    BodyUnreadable,
    /// Other requests are using all the memory that is available for bodies and responses.
    #[error("The server has no memory left for the body or the answer. Retry later.")]
    Overloaded,
    /// The service rejected the request or failed.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// The application that embeds the library failed. The server never returns this error.
    #[error("{what}")]
    Internal {
        /// Cause, for the log.
        what: &'static str,
        /// Describes why a value does not match its type. Never logged, because the text may quote the value.
        source: Option<serde_json::Error>,
    },
}

impl ApiError {
    #[doc(hidden)]
    pub fn provided_id() -> Self {
        let detail = "The identity provider names the id of this thread, so it cannot change";
        Self::InvalidParameter(detail.into())
    }

    /// Returns the stable error code, which the problem object also contains.
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

/// Formats `GET, HEAD, PUT` as "GET, HEAD or PUT".
fn any_of(allow: &str) -> String {
    match allow.rsplit_once(", ") {
        Some((others, last)) => format!("{others} or {last}"),
        None => allow.to_owned(),
    }
}

/// Returns the status and headers. [`with_problem`] adds the body, which contains the session id.
impl ResponseError for ApiError {
    fn status_code(&self) -> StatusCode {
        self.problem().status
    }

    fn error_response(&self) -> HttpResponse {
        self.problem().head()
    }
}

/// Returns whether `If-Match` contains a weak tag, which never matches (RFC 9110, section 8.8.3.2).
fn has_weak_condition(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(IF_MATCH);
    values.any(|value| value.as_bytes().windows(3).any(|bytes| bytes == b"W/\""))
}

/// If a response was caused by an [`ApiError`], adds the problem object. Returns all other responses unchanged.
pub fn with_problem<B: MessageBody>(
    response: ServiceResponse<B>,
    session: &SessionId,
) -> ServiceResponse<EitherBody<B>> {
    let error = response.response().error();
    let Some(error) = error.and_then(|error| error.as_error::<ApiError>()) else {
        return response.map_into_left_body();
    };
    let is_weak = || has_weak_condition(response.request().headers());
    let body = error.problem().explained(is_weak).body(session);
    response.map_body(|head, _| {
        let json = HeaderValue::from_static("application/problem+json");
        head.headers_mut().insert(CONTENT_TYPE, json);
        EitherBody::right(BoxBody::new(body))
    })
}
