//! Requests that nobody takes.

use std::future::ready;

use actix_web::{Route, web};

use super::request::target::Target;
use crate::web::ApiError;

/// Refuses a path that is none.
pub(super) fn not_found() -> Route {
    web::to(|| ready(Err::<&str, _>(ApiError::NotFound)))
}

/// Refuses a method that a path does not take.
pub(super) fn not_allowed(allow: &'static str) -> Route {
    web::to(move || ready(Err::<&str, _>(ApiError::MethodNotAllowed { allow })))
}

/// The same where whose thread it is about comes first, as everywhere.
pub(super) fn not_allowed_for_thread(allow: &'static str) -> Route {
    web::to(move |_: Target| ready(Err::<&str, _>(ApiError::MethodNotAllowed { allow })))
}
