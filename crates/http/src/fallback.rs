//! Handlers of unknown paths and methods.

use std::future::ready;

use actix_web::http::Method;
use actix_web::{Route, web};

use super::request::target::Target;
use threadkeep_web::ApiError;

/// Rejects an unknown path.
pub(super) fn not_found() -> Route {
    web::to(|| ready(Err::<&str, _>(ApiError::NotFound)))
}

/// Rejects a method that a path does not support.
pub(super) fn not_allowed(allow: &'static str) -> Route {
    web::to(move |method: Method| {
        ready(Err::<&str, _>(ApiError::MethodNotAllowed { method, allow }))
    })
}

/// The same for a path of a thread: like all requests, it first has to find the thread.
pub(super) fn not_allowed_for_thread(allow: &'static str) -> Route {
    web::to(move |_: Target, method: Method| {
        ready(Err::<&str, _>(ApiError::MethodNotAllowed { method, allow }))
    })
}
