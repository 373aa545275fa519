//! The table that maps every error to its HTTP status, error code and message.

use actix_web::http::StatusCode;

use super::ApiError;
use super::problem::Problem;
use threadkeep_domain::effects::{
    EFFECTS_MAX, EffectRefusal, OPEN_MAX, OUTCOME_BYTES_MAX, RESULTS_BYTES_MAX,
};
use threadkeep_domain::scope::{ScopeError, TaskError};
use threadkeep_domain::{Refusal, Stamp, idempotency, rfc3339};
use threadkeep_identity::IdentityError;
use threadkeep_service::ServiceError;
use threadkeep_store::StoreError;

impl ApiError {
    #[doc(hidden)]
    pub fn problem(&self) -> Problem {
        let row = |status, code| Problem::new(status, code, self);
        match self {
            Self::InvalidJson(error) => row(StatusCode::BAD_REQUEST, "invalid_json")
                .with("line", error.line)
                .with("column", error.column),
            Self::InvalidKey { operation, .. } => {
                row(StatusCode::BAD_REQUEST, "invalid_key").with_some("operation", *operation)
            }
            Self::InvalidEntryKey(_) => row(StatusCode::BAD_REQUEST, "invalid_key"),
            Self::InvalidNamespace(_) => row(StatusCode::BAD_REQUEST, "invalid_namespace"),
            Self::InvalidOperation { operation, .. } => {
                row(StatusCode::BAD_REQUEST, "invalid_operation").with_some("operation", *operation)
            }
            Self::InvalidParameter(_) | Self::InvalidContent(_) | Self::BodyUnreadable => {
                row(StatusCode::BAD_REQUEST, "invalid_parameter")
            }
            Self::InvalidThreadId => row(StatusCode::BAD_REQUEST, "invalid_thread_id"),
            Self::InvalidCursor => row(StatusCode::BAD_REQUEST, "invalid_cursor"),
            Self::InvalidEventType(_) => row(StatusCode::BAD_REQUEST, "invalid_event_type"),
            Self::ScopePart { error, index } => part_problem(error, *index, self),
            Self::ApiKeyRequired => row(StatusCode::UNAUTHORIZED, "api_key_required"),
            Self::InvalidApiKey => row(StatusCode::UNAUTHORIZED, "invalid_api_key").wrong_bearer(),
            Self::RightMissing { right } => {
                row(StatusCode::FORBIDDEN, "right_missing").with("right", right.as_str())
            }
            Self::Identity(error) => identity_problem(error, self),
            Self::NotFound | Self::WebhookNotFound => row(StatusCode::NOT_FOUND, "not_found"),
            Self::ToolNotFound => row(StatusCode::NOT_FOUND, "tool_not_found"),
            Self::MethodNotAllowed { allow, .. } => {
                row(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed").allow(allow)
            }
            Self::NotAcceptable { .. } => row(StatusCode::NOT_ACCEPTABLE, "not_acceptable"),
            Self::UnsupportedMediaType { .. } => {
                row(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type")
            }
            Self::BodyTooLarge {
                limit_bytes,
                read_bytes,
            } => row(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large")
                .with("limit_bytes", *limit_bytes)
                .refused_bytes("body", *read_bytes),
            Self::UrlTooLong { limit_bytes } => {
                row(StatusCode::URI_TOO_LONG, "url_too_long").with("limit_bytes", *limit_bytes)
            }
            Self::HeadersTooLarge { limit, limit_bytes } => row(
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
                "headers_too_large",
            )
            .with("limit", *limit)
            .with("limit_bytes", *limit_bytes),
            Self::ShuttingDown => row(StatusCode::SERVICE_UNAVAILABLE, "shutting_down"),
            Self::Overloaded => row(StatusCode::SERVICE_UNAVAILABLE, "overloaded"),
            Self::InvalidWebhookUrl(_) => row(StatusCode::BAD_REQUEST, "invalid_webhook_url"),
            Self::WebhookConfigured => row(StatusCode::CONFLICT, "webhook_configured"),
            Self::TooManyWebhooks { limit } => {
                row(StatusCode::CONFLICT, "too_many_webhooks").with("limit", *limit)
            }
            Self::Service(error) => error.problem(),
            Self::Internal { .. } => Problem::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "internal_error",
                "The server failed. The log has the cause.",
            ),
        }
    }
}

fn identity_problem(error: &IdentityError, api_error: &ApiError) -> Problem {
    match error {
        IdentityError::OriginNotAllowed => Problem::new(
            StatusCode::FORBIDDEN,
            "origin_not_allowed",
            "A write by cookie must come from a page of this host, or of an origin in `cors_origins`. A proxy must keep the `Host` header \
             (Vite: `changeOrigin: false`), unless `public_url` is set.",
        ),
        IdentityError::Unavailable(_) => Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "identity_unavailable",
            "The server cannot verify callers at the moment. Retry later.",
        ),
        IdentityError::OwnerRequired | IdentityError::UnknownOwner(_) => Problem::new(
            StatusCode::UNAUTHORIZED,
            "owner_required",
            "The request needs a caller with an owner. Send its login, or an API key.",
        ),
        IdentityError::UnknownCaller(_) => Problem::new(
            StatusCode::UNAUTHORIZED,
            "unknown_caller",
            "The server could not verify the caller. Send the token that it expects, or the header that its proxy sets.",
        ),
        IdentityError::InvalidSignature => Problem::new(
            StatusCode::UNAUTHORIZED,
            "invalid_thread_signature",
            api_error,
        ),
    }
}

fn part_problem(error: &ScopeError, index: Option<usize>, api_error: &ApiError) -> Problem {
    let row = |status, code| Problem::new(status, code, api_error).with_some("index", index);
    match error {
        ScopeError::Kind | ScopeError::Name | ScopeError::Id => {
            row(StatusCode::BAD_REQUEST, "invalid_scope")
        }
        ScopeError::KeyFormat => row(StatusCode::BAD_REQUEST, "invalid_key"),
        ScopeError::KeyTooLong { limit_bytes } => {
            row(StatusCode::BAD_REQUEST, "invalid_key").with("limit_bytes", *limit_bytes)
        }
        ScopeError::ValueTooLarge { limit_bytes } => {
            row(StatusCode::PAYLOAD_TOO_LARGE, "value_too_large").with("limit_bytes", *limit_bytes)
        }
        ScopeError::ItemId => row(StatusCode::BAD_REQUEST, "invalid_parameter"),
    }
}

/// Maps an error from a lower layer to an HTTP problem. Some protocols convert the problem to their own error format.
pub trait ToProblem {
    /// Returns the table row for this error.
    fn problem(&self) -> Problem;
}

impl ToProblem for ServiceError {
    fn problem(&self) -> Problem {
        let row = |status, code| Problem::new(status, code, sentence(self));
        match self {
            Self::KeyNotFound { stamp } => {
                row(StatusCode::NOT_FOUND, "key_not_found").stamp(*stamp)
            }
            Self::EntryNotFound => row(StatusCode::NOT_FOUND, "key_not_found"),
            Self::NotAnArray { stamp } => row(StatusCode::CONFLICT, "not_an_array").stamp(*stamp),
            Self::ThreadExists => row(StatusCode::CONFLICT, "thread_exists"),
            Self::ArchiveNotFound => row(StatusCode::NOT_FOUND, "not_found"),
            Self::EntryTooLarge {
                limit_bytes,
                attempted_bytes,
            } => row(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large")
                .with("limit_bytes", *limit_bytes)
                .refused_bytes("body", *attempted_bytes),
            Self::TooManyNamespaces { .. } => {
                row(StatusCode::UNPROCESSABLE_ENTITY, "too_many_namespaces")
            }
            Self::Refused(refusal) => refusal_problem(refusal),
            Self::Tasks(error) => task_problem(error),
            Self::Store(error) => store_problem(error),
        }
    }
}

/// Capitalizes the text of an error, and adds a period.
fn sentence(error: &impl ToString) -> String {
    let text = error.to_string();
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).chain(['.']).collect()
}

fn refusal_problem(refusal: &Refusal) -> Problem {
    let row = |status, code| {
        Problem::new(
            status,
            code,
            format_args!("{} Nothing was changed.", sentence(refusal)),
        )
    };
    match *refusal {
        Refusal::NotAnArray { operation } => {
            row(StatusCode::CONFLICT, "not_an_array").with("operation", operation)
        }
        Refusal::NotAnInteger { operation } => {
            row(StatusCode::CONFLICT, "not_an_integer").with("operation", operation)
        }
        Refusal::IntegerOverflow { operation } => {
            row(StatusCode::CONFLICT, "integer_overflow").with("operation", operation)
        }
        Refusal::TooDeep { operation } => {
            row(StatusCode::BAD_REQUEST, "invalid_json").with("operation", operation)
        }
        Refusal::StateTooLarge {
            limit_bytes,
            size_bytes,
            attempted_bytes,
        } => row(StatusCode::PAYLOAD_TOO_LARGE, "state_too_large")
            .with("limit_bytes", limit_bytes)
            .with("size_bytes", size_bytes)
            .with("attempted_bytes", attempted_bytes)
            .refused_bytes("state", attempted_bytes),
        Refusal::KvTooLarge {
            limit_bytes,
            attempted_bytes,
        } => row(StatusCode::PAYLOAD_TOO_LARGE, "kv_too_large")
            .with("limit_bytes", limit_bytes)
            .with("attempted_bytes", attempted_bytes)
            .refused_bytes("kv", attempted_bytes),
        Refusal::TooManyKeys { limit_keys } => {
            row(StatusCode::PAYLOAD_TOO_LARGE, "too_many_keys").with("limit_keys", limit_keys)
        }
        Refusal::MetadataTooLarge {
            limit_bytes,
            attempted_bytes,
        } => row(StatusCode::PAYLOAD_TOO_LARGE, "metadata_too_large")
            .with("limit_bytes", limit_bytes)
            .with("attempted_bytes", attempted_bytes)
            .refused_bytes("metadata", attempted_bytes),
        Refusal::HistoryTooLarge {
            limit_bytes,
            size_bytes,
            attempted_bytes,
        } => row(StatusCode::PAYLOAD_TOO_LARGE, "history_too_large")
            .with("limit_bytes", limit_bytes)
            .with("size_bytes", size_bytes)
            .with("attempted_bytes", attempted_bytes)
            .refused_bytes("history", attempted_bytes),
        Refusal::PrefixChanged { count } => {
            row(StatusCode::PRECONDITION_FAILED, "prefix_changed").with("count", count)
        }
        Refusal::TooManyLaterItems { limit_items } => {
            row(StatusCode::CONFLICT, "too_many_later_items").with("limit_items", limit_items)
        }
        Refusal::ItemIdReused { item } => {
            row(StatusCode::UNPROCESSABLE_ENTITY, "item_id_reused").with("item", item)
        }
        Refusal::AppendReusesId { operation } => {
            row(StatusCode::UNPROCESSABLE_ENTITY, "item_id_reused").with("operation", operation)
        }
        Refusal::VersionMismatch { current } => {
            row(StatusCode::PRECONDITION_FAILED, "version_mismatch")
                .with("current_version", current.version)
                .stamp(current)
        }
        // the service has already retried until the request's time limit expired
        Refusal::Changed | Refusal::NoThread | Refusal::NoReservation => Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "contended",
            "Other clients kept changing the same data. Nothing was changed. Retry.",
        ),
        Refusal::TurnTaken { ends_ms, left_ms } => row(StatusCode::CONFLICT, "turn_taken")
            .with("expires_at", rfc3339(ends_ms))
            .retry_after_seconds(left_ms.div_ceil(1_000).max(1)),
        Refusal::TurnLost => row(StatusCode::CONFLICT, "turn_lost"),
        Refusal::TurnNotHeld { number, operation } => row(StatusCode::CONFLICT, "turn_not_held")
            .with("number", number)
            .with_some("operation", operation),
        Refusal::Effect { refusal, operation } => {
            effect_problem(refusal, row).with_some("operation", operation)
        }
        Refusal::NotTheOwner => Problem::new(
            StatusCode::FORBIDDEN,
            "not_the_owner",
            "The thread belongs to another owner.",
        ),
        Refusal::OwnerRequired => Problem::new(
            StatusCode::UNAUTHORIZED,
            "owner_required",
            "The thread belongs to an owner. Send its login, or an API key.",
        ),
        Refusal::TooManyThreads { limit_threads } => {
            row(StatusCode::CONFLICT, "too_many_threads").with("limit_threads", limit_threads)
        }
        Refusal::KeyReserved { operation } => {
            row(StatusCode::FORBIDDEN, "key_reserved").with("operation", operation)
        }
        Refusal::ThreadExists => ServiceError::ThreadExists.problem(),
        Refusal::CreatedAhead => Problem::new(
            StatusCode::BAD_REQUEST,
            "invalid_parameter",
            "`created_at` is more than a minute ahead of the service's clock.",
        ),
        Refusal::Destroyed => row(StatusCode::GONE, "thread_destroyed").stamp(Stamp::default()),
        Refusal::ThreadNotFound => Problem::new(
            StatusCode::NOT_FOUND,
            "not_found",
            "The thread does not exist.",
        ),
        Refusal::CheckpointNotFound => Problem::new(
            StatusCode::NOT_FOUND,
            "not_found",
            "The checkpoint does not exist.",
        ),
        Refusal::TooManyCheckpoints {
            limit_checkpoints,
            limit_bytes,
        } => row(StatusCode::CONFLICT, "too_many_checkpoints")
            .with("limit_checkpoints", limit_checkpoints)
            .with("limit_bytes", limit_bytes),
        Refusal::ScopeNotFound => Problem::new(
            StatusCode::NOT_FOUND,
            "scope_not_found",
            "The scope does not exist.",
        ),
        Refusal::ScopeExists => row(StatusCode::CONFLICT, "scope_exists"),
        Refusal::ScopeEnded => row(StatusCode::CONFLICT, "scope_ended"),
        Refusal::IdempotencyKeyReused => {
            row(StatusCode::UNPROCESSABLE_ENTITY, "idempotency_key_reused")
        }
        Refusal::TooManyIdempotencyKeys { retry_after_ms } => {
            row(StatusCode::TOO_MANY_REQUESTS, "rate_limited")
                .with("limit", idempotency::LIMIT_NAME)
                .retry_after_seconds(retry_after_ms.div_ceil(1_000))
        }
        Refusal::RateLimited(limited) => row(StatusCode::TOO_MANY_REQUESTS, "rate_limited")
            .with("limit", limited.limit.as_str())
            .retry_after_seconds(limited.retry_after_seconds()),
    }
}

fn effect_problem(
    refusal: EffectRefusal,
    row: impl Fn(StatusCode, &'static str) -> Problem,
) -> Problem {
    match refusal {
        EffectRefusal::NotFound => Problem::new(
            StatusCode::NOT_FOUND,
            "not_found",
            "The tool call does not exist.",
        ),
        EffectRefusal::NoFence => row(StatusCode::BAD_REQUEST, "invalid_parameter"),
        EffectRefusal::TooLarge => row(StatusCode::PAYLOAD_TOO_LARGE, "value_too_large")
            .with("limit_bytes", OUTCOME_BYTES_MAX),
        EffectRefusal::Reused => row(StatusCode::UNPROCESSABLE_ENTITY, "effect_reused"),
        EffectRefusal::Lost { attempt } => {
            row(StatusCode::CONFLICT, "effect_lost").with("attempt", attempt)
        }
        EffectRefusal::Settled { attempt } => {
            row(StatusCode::CONFLICT, "effect_settled").with("attempt", attempt)
        }
        EffectRefusal::TooMany => row(StatusCode::CONFLICT, "too_many_effects")
            .with("limit_effects", EFFECTS_MAX)
            .with("limit_open", OPEN_MAX)
            .with("limit_bytes", RESULTS_BYTES_MAX),
    }
}

fn task_problem(error: &TaskError) -> Problem {
    let row = |status, code| Problem::new(status, code, sentence(error));
    match error {
        TaskError::NotFound => row(StatusCode::NOT_FOUND, "task_not_found"),
        TaskError::WouldDropUnfinished { .. } => row(StatusCode::CONFLICT, "tasks_unfinished"),
        TaskError::TooMany { .. } | TaskError::TooLarge { .. } => {
            row(StatusCode::PAYLOAD_TOO_LARGE, "tasks_too_large")
        }
        TaskError::NoContent | TaskError::SameId { .. } | TaskError::Id => {
            row(StatusCode::BAD_REQUEST, "invalid_parameter")
        }
    }
}

fn store_problem(error: &StoreError) -> Problem {
    let row = |code, detail| Problem::new(StatusCode::SERVICE_UNAVAILABLE, code, detail);
    match error {
        StoreError::Full => row(
            "store_full",
            "The store is full. Nothing was changed; you can still read and delete.",
        ),
        StoreError::Timeout(_) => row("store_unavailable", "The store did not answer in time."),
        StoreError::Unconfirmed { .. } => row(
            "store_unavailable",
            "Too few replicas of Redis confirmed the write in time. Retry with the same idempotency key.",
        ),
        _ => row(
            "store_unavailable",
            "The store is unavailable. Retry later.",
        ),
    }
}
