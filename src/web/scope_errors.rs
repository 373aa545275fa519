//! The part of the table that is about scopes.

use actix_web::http::StatusCode;
use serde_json::{Map, Value, json};

use crate::domain::scope::{ScopeError, ScopeRefusal, TaskError};

pub(crate) fn part_row(error: &ScopeError) -> (StatusCode, &'static str) {
    match error {
        ScopeError::Kind | ScopeError::Name | ScopeError::Id => {
            (StatusCode::BAD_REQUEST, "invalid_scope")
        }
        ScopeError::KeyFormat | ScopeError::KeyTooLong { .. } => {
            (StatusCode::BAD_REQUEST, "invalid_key")
        }
        ScopeError::ValueTooLarge { .. } => (StatusCode::PAYLOAD_TOO_LARGE, "value_too_large"),
        ScopeError::ItemId => (StatusCode::BAD_REQUEST, "invalid_parameter"),
    }
}

pub(crate) fn part_members(error: &ScopeError, index: Option<usize>) -> Value {
    let mut members = Map::new();
    if let ScopeError::KeyTooLong { limit_bytes } | ScopeError::ValueTooLarge { limit_bytes } =
        error
    {
        members.insert("limit_bytes".into(), (*limit_bytes).into());
    }
    if let Some(index) = index {
        members.insert("index".into(), index.into());
    }
    members.into()
}

pub(crate) fn scope_row(refusal: &ScopeRefusal) -> (StatusCode, &'static str) {
    match refusal {
        ScopeRefusal::NotFound => (StatusCode::NOT_FOUND, "scope_not_found"),
        ScopeRefusal::Sealed => (StatusCode::CONFLICT, "scope_ended"),
        ScopeRefusal::Exists => (StatusCode::CONFLICT, "scope_exists"),
        // given up after trying for as long as a request may take
        ScopeRefusal::NoThread | ScopeRefusal::Changed => {
            (StatusCode::SERVICE_UNAVAILABLE, "store_unavailable")
        }
        ScopeRefusal::VersionMismatch { .. } => {
            (StatusCode::PRECONDITION_FAILED, "version_mismatch")
        }
        ScopeRefusal::NotAnInteger { .. } => (StatusCode::CONFLICT, "not_an_integer"),
        ScopeRefusal::IntegerOverflow { .. } => (StatusCode::CONFLICT, "integer_overflow"),
        ScopeRefusal::KvTooLarge { .. } => (StatusCode::PAYLOAD_TOO_LARGE, "kv_too_large"),
        ScopeRefusal::TooManyKeys { .. } => (StatusCode::PAYLOAD_TOO_LARGE, "too_many_keys"),
        ScopeRefusal::HistoryTooLarge { .. } => {
            (StatusCode::PAYLOAD_TOO_LARGE, "history_too_large")
        }
        ScopeRefusal::ItemIdReused { .. } => (StatusCode::UNPROCESSABLE_ENTITY, "item_id_reused"),
        ScopeRefusal::IdempotencyKeyReused => {
            (StatusCode::UNPROCESSABLE_ENTITY, "idempotency_key_reused")
        }
        ScopeRefusal::TooManyIdempotencyKeys { .. } | ScopeRefusal::RateLimited(_) => {
            (StatusCode::TOO_MANY_REQUESTS, "rate_limited")
        }
    }
}

pub(crate) fn scope_members(refusal: &ScopeRefusal) -> Value {
    match *refusal {
        ScopeRefusal::NotAnInteger { operation } | ScopeRefusal::IntegerOverflow { operation } => {
            json!({"operation": operation})
        }
        ScopeRefusal::KvTooLarge {
            limit_bytes,
            attempted_bytes,
        } => json!({"limit_bytes": limit_bytes, "attempted_bytes": attempted_bytes}),
        ScopeRefusal::TooManyKeys { limit_keys } => json!({"limit_keys": limit_keys}),
        ScopeRefusal::HistoryTooLarge {
            limit_bytes,
            size_bytes,
            attempted_bytes,
        } => json!({
            "limit_bytes": limit_bytes,
            "size_bytes": size_bytes,
            "attempted_bytes": attempted_bytes,
        }),
        ScopeRefusal::ItemIdReused { item } => json!({"item": item}),
        ScopeRefusal::VersionMismatch { current } => json!({"current_version": current.version}),
        ScopeRefusal::NotFound
        | ScopeRefusal::Sealed
        | ScopeRefusal::Exists
        | ScopeRefusal::NoThread
        | ScopeRefusal::Changed
        | ScopeRefusal::IdempotencyKeyReused
        | ScopeRefusal::TooManyIdempotencyKeys { .. } => json!({}),
        ScopeRefusal::RateLimited(limited) => json!({"limit": limited.limit.as_str()}),
    }
}

pub(crate) fn task_row(error: &TaskError) -> (StatusCode, &'static str) {
    match error {
        TaskError::NotFound => (StatusCode::NOT_FOUND, "task_not_found"),
        TaskError::WouldDropUnfinished { .. } => (StatusCode::CONFLICT, "tasks_unfinished"),
        TaskError::TooMany { .. } | TaskError::TooLarge { .. } => {
            (StatusCode::PAYLOAD_TOO_LARGE, "tasks_too_large")
        }
        TaskError::NoContent | TaskError::SameId | TaskError::Id => {
            (StatusCode::BAD_REQUEST, "invalid_parameter")
        }
    }
}
