use std::future::ready;

use actix_web::http::Method;
use actix_web::{FromRequest, Route, web};

use threadkeep_web::ApiError;

pub(super) fn not_found() -> Route {
    web::to(|| ready(Err::<&str, _>(ApiError::NotFound)))
}

/// Responds with 405 if the extractor `Check` accepts the request. `Check` verifies the caller or the thread, or is
/// `()`, which accepts every request.
pub(super) fn not_allowed<Check: FromRequest + 'static>(allow: &'static str) -> Route {
    web::to(move |_: Check, method: Method| {
        ready(Err::<&str, _>(ApiError::MethodNotAllowed { method, allow }))
    })
}
