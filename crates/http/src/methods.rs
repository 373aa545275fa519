//! Routes for a method.
//!
//! The routes of actix collect the methods of a resource on the heap at each request, in case they must
//! list them in a 405. A resource of these routes needs a [refusal of ours](super::fallback).

use actix_web::http::Method;
use actix_web::{FromRequest, Handler, Resource, Responder, Route, guard, web};

use super::fallback::not_allowed;

/// A route for one method.
pub(super) fn on(method: Method) -> Route {
    web::route().guard(guard::fn_guard(move |request| {
        request.head().method == method
    }))
}

/// A path that supports only GET and HEAD.
pub fn read_only<A, F>(path: &str, answer: F) -> Resource
where
    A: FromRequest + 'static,
    F: Handler<A>,
    F::Output: Responder + 'static,
{
    web::resource(path)
        .route(on(Method::GET).to(answer.clone()))
        .route(on(Method::HEAD).to(answer))
        .default_service(not_allowed::<()>("GET, HEAD"))
}

/// A path that supports only POST.
pub fn post_only<A, F>(path: &str, answer: F) -> Resource
where
    A: FromRequest + 'static,
    F: Handler<A>,
    F::Output: Responder + 'static,
{
    web::resource(path)
        .route(on(Method::POST).to(answer))
        .default_service(not_allowed::<()>("POST"))
}
