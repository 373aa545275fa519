//! The one table from errors to HTTP, as `application/problem+json`
//! ([RFC 9457](https://www.rfc-editor.org/rfc/rfc9457)).

use actix_web::body::{BoxBody, EitherBody, MessageBody};
use actix_web::dev::ServiceResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{
    ALLOW, CONTENT_TYPE, ETAG, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE,
};
use actix_web::{HttpResponse, ResponseError};
use serde_json::{Map, Value, json};

use super::etag::etag;
use super::scope_errors::{part_members, part_row, scope_members, scope_row, task_row};
use super::session::SessionId;
use crate::domain::scope::{ScopeError, ScopeRefusal};
use crate::domain::{
    ContentError, EntryKeyError, EventTypeError, JsonError, KeyError, NamespaceError, ObjectError,
    ObjectFault, Refusal, Stamp,
};
use crate::identity::IdentityError;
use crate::service::ServiceError;
use crate::store::StoreError;
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
    /// The row of the table: status and stable code.
    #[must_use]
    pub fn row(&self) -> (StatusCode, &'static str) {
        match self {
            Self::InvalidJson(_) => (StatusCode::BAD_REQUEST, "invalid_json"),
            Self::InvalidKey { .. } | Self::InvalidEntryKey(_) => {
                (StatusCode::BAD_REQUEST, "invalid_key")
            }
            Self::InvalidNamespace(_) => (StatusCode::BAD_REQUEST, "invalid_namespace"),
            Self::InvalidOperation { .. } => (StatusCode::BAD_REQUEST, "invalid_operation"),
            Self::InvalidParameter(_) | Self::InvalidContent(_) | Self::BodyUnreadable => {
                (StatusCode::BAD_REQUEST, "invalid_parameter")
            }
            Self::InvalidThreadId => (StatusCode::BAD_REQUEST, "invalid_thread_id"),
            Self::ScopePart { error, .. } => part_row(error),
            Self::ShuttingDown => (StatusCode::SERVICE_UNAVAILABLE, "shutting_down"),
            Self::Overloaded => (StatusCode::SERVICE_UNAVAILABLE, "overloaded"),
            Self::ToolNotFound => (StatusCode::NOT_FOUND, "tool_not_found"),
            Self::InvalidCursor => (StatusCode::BAD_REQUEST, "invalid_cursor"),
            Self::InvalidEventType(_) => (StatusCode::BAD_REQUEST, "invalid_event_type"),
            #[cfg(feature = "server")]
            Self::InvalidWebhookUrl(_) => (StatusCode::BAD_REQUEST, "invalid_webhook_url"),
            Self::ApiKeyRequired => (StatusCode::UNAUTHORIZED, "api_key_required"),
            Self::Identity(IdentityError::OriginNotAllowed) => {
                (StatusCode::FORBIDDEN, "origin_not_allowed")
            }
            Self::Identity(IdentityError::Unavailable(_)) => {
                (StatusCode::SERVICE_UNAVAILABLE, "identity_unavailable")
            }
            Self::Identity(_) => (StatusCode::UNAUTHORIZED, "invalid_thread_signature"),
            Self::NotFound => (StatusCode::NOT_FOUND, "not_found"),
            #[cfg(feature = "server")]
            Self::WebhookNotFound => (StatusCode::NOT_FOUND, "not_found"),
            #[cfg(feature = "server")]
            Self::WebhookConfigured => (StatusCode::CONFLICT, "webhook_configured"),
            #[cfg(feature = "server")]
            Self::TooManyWebhooks { .. } => (StatusCode::CONFLICT, "too_many_webhooks"),
            Self::MethodNotAllowed { .. } => (StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed"),
            Self::NotAcceptable { .. } => (StatusCode::NOT_ACCEPTABLE, "not_acceptable"),
            Self::UnsupportedMediaType { .. } => {
                (StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type")
            }
            Self::BodyTooLarge { .. } => (StatusCode::PAYLOAD_TOO_LARGE, "body_too_large"),
            Self::UrlTooLong { .. } => (StatusCode::URI_TOO_LONG, "url_too_long"),
            Self::HeadersTooLarge { .. } => (
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
                "headers_too_large",
            ),
            Self::Service(error) => service_row(error),
            Self::Internal { .. } => (StatusCode::INTERNAL_SERVER_ERROR, "internal_error"),
        }
    }

    /// The limit that refused this and how many bytes it refused.
    #[must_use]
    pub fn refused_bytes(&self) -> Option<(&'static str, u64)> {
        match self {
            Self::BodyTooLarge { read_bytes, .. } => Some(("body", *read_bytes)),
            Self::Service(ServiceError::EntryTooLarge {
                attempted_bytes, ..
            }) => Some(("body", *attempted_bytes)),
            Self::Service(ServiceError::Refused(refusal)) => match refusal {
                Refusal::StateTooLarge {
                    attempted_bytes, ..
                } => Some(("state", *attempted_bytes)),
                Refusal::MetadataTooLarge {
                    attempted_bytes, ..
                } => Some(("metadata", *attempted_bytes)),
                _ => None,
            },
            Self::Service(ServiceError::ScopeRefused(refusal)) => match refusal {
                ScopeRefusal::KvTooLarge {
                    attempted_bytes, ..
                } => Some(("kv", *attempted_bytes)),
                ScopeRefusal::HistoryTooLarge {
                    attempted_bytes, ..
                } => Some(("history", *attempted_bytes)),
                _ => None,
            },
            _ => None,
        }
    }

    /// What is known of the thread that this is about.
    fn stamp(&self) -> Option<Stamp> {
        match self {
            Self::Service(error) => match error {
                ServiceError::KeyNotFound { stamp } | ServiceError::NotAnArray { stamp } => {
                    Some(*stamp)
                }
                ServiceError::Refused(Refusal::VersionMismatch { current }) => Some(*current),
                ServiceError::Refused(Refusal::Destroyed) => Some(Stamp::default()),
                _ => None,
            },
            _ => None,
        }
    }

    /// When to ask again, if it may be different then.
    #[must_use]
    pub fn retry_after_seconds(&self) -> Option<u64> {
        match self {
            Self::Service(
                ServiceError::Refused(Refusal::TooManyIdempotencyKeys { retry_after_ms })
                | ServiceError::ScopeRefused(ScopeRefusal::TooManyIdempotencyKeys { retry_after_ms }),
            ) => Some(retry_after_ms.div_ceil(1000)),
            Self::Service(
                ServiceError::Refused(Refusal::RateLimited(limited))
                | ServiceError::ScopeRefused(ScopeRefusal::RateLimited(limited)),
            ) => Some(limited.retry_after_seconds()),
            // a store that is away is looked at again within that time
            _ if self.status_code() == StatusCode::SERVICE_UNAVAILABLE => Some(1),
            _ => None,
        }
    }

    /// For people. What broke inside is for the log alone.
    fn detail(&self) -> String {
        match self {
            Self::Service(ServiceError::Store(StoreError::Timeout(_))) => {
                "The store did not answer in time.".into()
            }
            Self::Service(ServiceError::Store(StoreError::Unconfirmed { .. })) => {
                "Too few copies of the store have confirmed in time that they have it.".into()
            }
            Self::Service(ServiceError::Store(StoreError::Full)) => {
                "The store is full: nothing was changed. You can still read and delete.".into()
            }
            Self::Service(ServiceError::Store(_)) => "The store is not available.".into(),
            Self::Service(ServiceError::Refused(error)) => format!("Nothing was changed: {error}."),
            Self::Service(error) => format!("Not done: {error}."),
            Self::Internal { .. } => "Something is wrong on our side.".into(),
            Self::Identity(IdentityError::OriginNotAllowed) => {
                "A write by cookie has to come from a page of this host, or of an origin in \
                 `cors_origins`."
                    .into()
            }
            Self::Identity(IdentityError::Unavailable(_)) => {
                "Callers cannot be verified at the moment. Send the request again later.".into()
            }
            _ => self.to_string(),
        }
    }

    fn members(&self) -> Value {
        match self {
            Self::InvalidJson(error) => json!({"line": error.line, "column": error.column}),
            Self::InvalidKey {
                operation: Some(operation),
                ..
            }
            | Self::InvalidOperation {
                operation: Some(operation),
                ..
            } => json!({"operation": operation}),
            Self::BodyTooLarge { limit_bytes, .. } => json!({"limit_bytes": limit_bytes}),
            Self::UrlTooLong { limit_bytes } => json!({"limit_bytes": limit_bytes}),
            Self::HeadersTooLarge { limit, limit_bytes } => {
                json!({"limit": limit, "limit_bytes": limit_bytes})
            }
            Self::ScopePart { error, index } => part_members(error, *index),
            #[cfg(feature = "server")]
            Self::TooManyWebhooks { limit } => json!({"limit": limit}),
            Self::Service(ServiceError::EntryTooLarge { limit_bytes, .. }) => {
                json!({"limit_bytes": limit_bytes})
            }
            Self::Service(ServiceError::Refused(refusal)) => refusal_members(refusal),
            Self::Service(ServiceError::ScopeRefused(refusal)) => scope_members(refusal),
            _ => json!({}),
        }
    }

    /// The problem object of this error.
    fn problem(&self, session: &SessionId) -> Value {
        let (status, code) = self.row();
        let mut problem = Map::new();
        problem.insert("type".into(), "about:blank".into());
        problem.insert("title".into(), status.canonical_reason().into());
        problem.insert("status".into(), status.as_u16().into());
        problem.insert("code".into(), code.into());
        problem.insert("detail".into(), self.detail().into());
        problem.insert("request_id".into(), session.as_str().into());
        if let Value::Object(members) = self.members() {
            problem.extend(members);
        }
        problem.into()
    }
}

fn service_row(error: &ServiceError) -> (StatusCode, &'static str) {
    match error {
        ServiceError::KeyNotFound { .. } | ServiceError::EntryNotFound => {
            (StatusCode::NOT_FOUND, "key_not_found")
        }
        ServiceError::NotAnArray { .. } => (StatusCode::CONFLICT, "not_an_array"),
        ServiceError::ThreadExists => (StatusCode::CONFLICT, "thread_exists"),
        ServiceError::ArchiveNotFound => (StatusCode::NOT_FOUND, "not_found"),
        ServiceError::EntryTooLarge { .. } => (StatusCode::PAYLOAD_TOO_LARGE, "body_too_large"),
        ServiceError::TooManyNamespaces { .. } => {
            (StatusCode::UNPROCESSABLE_ENTITY, "too_many_namespaces")
        }
        ServiceError::Refused(refusal) => refusal_row(refusal),
        ServiceError::ScopeRefused(refusal) => scope_row(refusal),
        ServiceError::Tasks(error) => task_row(error),
        ServiceError::Store(StoreError::Full) => (StatusCode::SERVICE_UNAVAILABLE, "store_full"),
        ServiceError::Store(_) => (StatusCode::SERVICE_UNAVAILABLE, "store_unavailable"),
    }
}

fn refusal_row(refusal: &Refusal) -> (StatusCode, &'static str) {
    match refusal {
        Refusal::NotAnArray { .. } => (StatusCode::CONFLICT, "not_an_array"),
        Refusal::NotAnInteger { .. } => (StatusCode::CONFLICT, "not_an_integer"),
        Refusal::IntegerOverflow { .. } => (StatusCode::CONFLICT, "integer_overflow"),
        Refusal::StateTooLarge { .. } => (StatusCode::PAYLOAD_TOO_LARGE, "state_too_large"),
        Refusal::TooManyKeys { .. } => (StatusCode::PAYLOAD_TOO_LARGE, "too_many_keys"),
        Refusal::MetadataTooLarge { .. } => (StatusCode::PAYLOAD_TOO_LARGE, "metadata_too_large"),
        Refusal::VersionMismatch { .. } => (StatusCode::PRECONDITION_FAILED, "version_mismatch"),
        Refusal::ValueChanged => (StatusCode::SERVICE_UNAVAILABLE, "store_unavailable"),
        Refusal::Destroyed => (StatusCode::GONE, "thread_destroyed"),
        Refusal::IdempotencyKeyReused => {
            (StatusCode::UNPROCESSABLE_ENTITY, "idempotency_key_reused")
        }
        Refusal::TooManyIdempotencyKeys { .. } | Refusal::RateLimited(_) => {
            (StatusCode::TOO_MANY_REQUESTS, "rate_limited")
        }
    }
}

fn refusal_members(refusal: &Refusal) -> Value {
    match *refusal {
        Refusal::NotAnArray { operation }
        | Refusal::NotAnInteger { operation }
        | Refusal::IntegerOverflow { operation } => json!({"operation": operation}),
        Refusal::StateTooLarge {
            limit_bytes,
            size_bytes,
            attempted_bytes,
        } => json!({
            "limit_bytes": limit_bytes,
            "size_bytes": size_bytes,
            "attempted_bytes": attempted_bytes,
        }),
        Refusal::TooManyKeys { limit_keys } => json!({"limit_keys": limit_keys}),
        Refusal::MetadataTooLarge {
            limit_bytes,
            attempted_bytes,
        } => json!({"limit_bytes": limit_bytes, "attempted_bytes": attempted_bytes}),
        Refusal::VersionMismatch { current } => json!({"current_version": current.version}),
        Refusal::ValueChanged
        | Refusal::Destroyed
        | Refusal::IdempotencyKeyReused
        | Refusal::TooManyIdempotencyKeys { .. } => json!({}),
        Refusal::RateLimited(limited) => json!({"limit": limited.limit.as_str()}),
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
            WebhookError::Contended => Self::Service(Refusal::ValueChanged.into()),
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
        self.row().0
    }

    fn error_response(&self) -> HttpResponse {
        let mut response = HttpResponse::new(self.status_code());
        let headers = response.headers_mut();
        if self.status_code() == StatusCode::UNAUTHORIZED {
            // which every 401 has to have (RFC 9110, section 15.5.2)
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Self::MethodNotAllowed { allow } = self {
            headers.insert(ALLOW, HeaderValue::from_static(allow));
        }
        if let Some(stamp) = self.stamp() {
            headers.insert(ETAG, etag(stamp));
        }
        if let Some(seconds) = self.retry_after_seconds() {
            headers.insert(RETRY_AFTER, seconds.into());
        }
        response
    }
}

/// Gives a response that is an [`ApiError`] its problem object; others pass as they are.
pub fn with_problem<B: MessageBody>(
    response: ServiceResponse<B>,
    session: &SessionId,
) -> ServiceResponse<EitherBody<B>> {
    let problem = response
        .response()
        .error()
        .and_then(|error| error.as_error::<ApiError>())
        .map(|error| error.problem(session).to_string());
    match problem {
        None => response.map_into_left_body(),
        Some(problem) => response.map_body(|head, _| {
            let json = HeaderValue::from_static("application/problem+json");
            head.headers_mut().insert(CONTENT_TYPE, json);
            EitherBody::right(BoxBody::new(problem))
        }),
    }
}
