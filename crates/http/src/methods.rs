//! Routes for a method.
//!
//! The routes of actix collect the methods of a resource on the heap at each request, in case they must
//! list them in a 405. A resource of these routes needs a [refusal of ours](super::fallback).

use actix_web::http::Method;
use actix_web::{FromRequest, Handler, Resource, Responder, Route, guard, web};

use super::fallback::not_allowed;

pub(super) fn get() -> Route {
    on(Method::GET)
}

pub(super) fn head() -> Route {
    on(Method::HEAD)
}

pub(super) fn post() -> Route {
    on(Method::POST)
}

pub(super) fn put() -> Route {
    on(Method::PUT)
}

pub(super) fn patch() -> Route {
    on(Method::PATCH)
}

pub(super) fn delete() -> Route {
    on(Method::DELETE)
}

/// A path that supports only GET and HEAD.
pub fn read_only<A, F>(path: &str, answer: F) -> Resource
where
    A: FromRequest + 'static,
    F: Handler<A>,
    F::Output: Responder + 'static,
{
    web::resource(path)
        .route(get().to(answer.clone()))
        .route(head().to(answer))
        .default_service(not_allowed("GET, HEAD"))
}

/// A path that supports only POST.
pub fn post_only<A, F>(path: &str, answer: F) -> Resource
where
    A: FromRequest + 'static,
    F: Handler<A>,
    F::Output: Responder + 'static,
{
    web::resource(path)
        .route(post().to(answer))
        .default_service(not_allowed("POST"))
}

fn on(method: Method) -> Route {
    web::route().guard(guard::fn_guard(move |request| {
        request.head().method == method
    }))
}
