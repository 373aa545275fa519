//! Method routes that do not allocate memory for each request.
//!
//! For every request, actix's own method routes allocate a list of methods in case the response is 405. The routes of
//! this module do not, so a resource that uses them needs a [default handler](super::fallback) that responds with 405.

use actix_web::http::Method;
use actix_web::{FromRequest, Handler, Resource, Responder, Route, guard, web};

use super::fallback::not_allowed;

pub(super) fn on(method: Method) -> Route {
    web::route().guard(guard::fn_guard(move |request| {
        request.head().method == method
    }))
}

pub fn read_only<A, F>(path: &str, handler: F) -> Resource
where
    A: FromRequest + 'static,
    F: Handler<A>,
    F::Output: Responder + 'static,
{
    web::resource(path)
        .route(on(Method::GET).to(handler.clone()))
        .route(on(Method::HEAD).to(handler))
        .default_service(not_allowed::<()>("GET, HEAD"))
}

pub fn post_only<A, F>(path: &str, handler: F) -> Resource
where
    A: FromRequest + 'static,
    F: Handler<A>,
    F::Output: Responder + 'static,
{
    web::resource(path)
        .route(on(Method::POST).to(handler))
        .default_service(not_allowed::<()>("POST"))
}
