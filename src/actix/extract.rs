use std::future::{Ready, ready};
use std::sync::Arc;

use actix_web::{FromRequest, HttpMessage, HttpRequest, dev};

use super::{RequestContext, RequestState, Session, Thread};
use threadkeep_web::ApiError;

fn request_context(request: &HttpRequest) -> Result<Arc<RequestContext>, ApiError> {
    let extensions = request.extensions();
    let context = extensions.get::<Arc<RequestContext>>();
    context.cloned().ok_or(ApiError::Internal {
        what: "the middleware `Threads` does not wrap this route",
        source: None,
    })
}

impl FromRequest for Thread {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut dev::Payload) -> Self::Future {
        ready(request_context(request).map(|context| Self(Arc::clone(&context.thread))))
    }
}

impl FromRequest for Session {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut dev::Payload) -> Self::Future {
        ready(request_context(request).map(Self))
    }
}

impl FromRequest for RequestState {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut dev::Payload) -> Self::Future {
        ready(request_context(request).map(Self))
    }
}
