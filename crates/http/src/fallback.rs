//! Handlers of unknown paths and methods.

use std::future::ready;

use actix_web::http::Method;
use actix_web::{FromRequest, Route, web};

use threadkeep_web::ApiError;

/// Rejects an unknown path.
pub(super) fn not_found() -> Route {
    web::to(|| ready(Err::<&str, _>(ApiError::NotFound)))
}

/// Rejects a method that a path does not support. `Check` is what each request to the path must pass first: the extractor of
/// the thread or of the caller, or `()` for nothing.
pub(super) fn not_allowed<Check: FromRequest + 'static>(allow: &'static str) -> Route {
    web::to(move |_: Check, method: Method| {
        ready(Err::<&str, _>(ApiError::MethodNotAllowed { method, allow }))
    })
}
