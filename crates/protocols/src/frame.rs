//! The request handling that protocols share.

use std::future::{Ready, ready};

use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{Payload, ServiceRequest, ServiceResponse};
use actix_web::http::header::{CACHE_CONTROL, HeaderValue};
use actix_web::middleware::Next;
use actix_web::{Error, FromRequest, HttpMessage, HttpRequest, ResponseError, web};

use threadkeep_http::Body;

/// A protocol that authenticates callers before it reads bodies.
pub(super) trait Framed: Sized + 'static {
    type Caller: 'static;
    type Error: ResponseError + 'static;

    /// Returns the error for a request that did not pass through [`frame`].
    fn outside() -> Self::Error;

    /// Returns the caller and the maximum size of the request's body, or the reason to reject the request.
    fn admit(&self, request: &HttpRequest) -> Result<(Self::Caller, u64), Self::Error>;

    /// Returns an error if the handlers do not accept the body.
    fn check(_: &Body) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Adds the protocol's headers to a response.
    fn add_headers<B>(_: &mut ServiceResponse<B>) {}
}

pub(super) struct Admitted<P: Framed> {
    pub(super) protocol: web::Data<P>,
    pub(super) request: HttpRequest,
    pub(super) caller: P::Caller,
    pub(super) body: Body,
}

/// The caller and body of a request, passed to [`Admitted`] in the request's extensions.
struct Context<P: Framed> {
    caller: P::Caller,
    body: Body,
}

/// Authenticates the caller, and reads the body to its end.
pub(super) async fn frame<P: Framed, B: MessageBody + 'static>(
    mut request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<EitherBody<B>>, Error> {
    let admitted = match request.app_data::<web::Data<P>>() {
        Some(protocol) => protocol.admit(request.request()),
        None => Err(P::outside()),
    };
    // the body of a rejected request is read and discarded (see `Body`)
    let limit_bytes = admitted.as_ref().map_or(0, |(_, limit_bytes)| *limit_bytes);
    let body = Body::read(&mut request, limit_bytes).await;
    let mut response = match admitted {
        Ok((caller, _)) => {
            let context = Context::<P> { caller, body };
            request.extensions_mut().insert(context);
            next.call(request).await?.map_into_left_body()
        }
        Err(refusal) => request.error_response(refusal).map_into_right_body(),
    };
    P::add_headers(&mut response);
    forbid_storing(&mut response);
    Ok(response)
}

pub(super) fn forbid_storing<B>(response: &mut ServiceResponse<B>) {
    let private = HeaderValue::from_static("private, no-store");
    response.headers_mut().insert(CACHE_CONTROL, private);
}

impl<P: Framed> Admitted<P> {
    /// Extracts the request without checking its body. The context is removed from the request's extensions, so
    /// dropping the returned value frees the body.
    pub(super) fn of(request: &HttpRequest) -> Result<Self, P::Error> {
        let protocol = request.app_data::<web::Data<P>>().cloned();
        let context = request.extensions_mut().remove::<Context<P>>();
        let (protocol, context) = protocol.zip(context).ok_or_else(P::outside)?;
        Ok(Self {
            protocol,
            request: request.clone(),
            caller: context.caller,
            body: context.body,
        })
    }

    fn checked(request: &HttpRequest) -> Result<Self, P::Error> {
        let admitted = Self::of(request)?;
        P::check(&admitted.body)?;
        Ok(admitted)
    }
}

impl<P: Framed> FromRequest for Admitted<P> {
    type Error = P::Error;
    type Future = Ready<Result<Self, P::Error>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(Self::checked(request))
    }
}
