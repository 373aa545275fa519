use std::future::ready;

use actix_web::http::Method;
use actix_web::{FromRequest, Route, web};

use threadkeep_web::ApiError;

pub(super) fn not_found() -> Route {
    web::to(|| ready(Err::<&str, _>(ApiError::NotFound)))
}

/// `Check` extracts the thread or caller, which each request must pass first, or is `()`.
pub(super) fn not_allowed<Check: FromRequest + 'static>(allow: &'static str) -> Route {
    web::to(move |_: Check, method: Method| {
        ready(Err::<&str, _>(ApiError::MethodNotAllowed { method, allow }))
    })
}
