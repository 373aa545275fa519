//! Shared by all requests and responses of the protocol.

use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::{CACHE_CONTROL, HeaderValue};
use actix_web::middleware::Next;
use actix_web::{Error, HttpMessage, web};

use super::caller::Caller;
use super::{UseAgent, UseAgentError};
use threadkeep_http::Body;
use threadkeep_web::ApiError;

/// Put into a request's extensions for the handlers.
pub(super) struct RequestContext {
    pub(super) body: Body,
    pub(super) caller: Caller,
}

/// Reads the body to its end, and admits back ends and users.
///
/// # Errors
/// Those of the services inside.
pub(super) async fn envelope<B: MessageBody + 'static>(
    mut request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<EitherBody<B>>, Error> {
    let admitted = match request.app_data::<web::Data<UseAgent>>() {
        Some(protocol) => Caller::of(request.request(), &protocol.api),
        None => Err(ApiError::NotFound.into()),
    };
    // nothing of a stranger is kept, but it is read: see `Body`
    let limit_bytes = admitted.as_ref().map_or(0, |_| Body::LIMIT_BYTES);
    let body = Body::read(&mut request, limit_bytes).await;
    let mut response = match admitted {
        Ok(caller) => {
            request
                .extensions_mut()
                .insert(RequestContext { body, caller });
            next.call(request).await?.map_into_left_body()
        }
        Err(refusal) => request.error_response(refusal).map_into_right_body(),
    };
    forbid_storing(&mut response);
    Ok(response)
}

/// Answers for the routes of the client that the app serves.
///
/// # Errors
/// None.
pub(super) async fn refuse_route_of_the_app<B: MessageBody + 'static>(
    mut request: ServiceRequest,
    _: Next<B>,
) -> Result<ServiceResponse, Error> {
    Body::read(&mut request, 0).await;
    let mut response = request.error_response(UseAgentError::RouteOfTheApp);
    forbid_storing(&mut response);
    Ok(response)
}

fn forbid_storing<B>(response: &mut ServiceResponse<B>) {
    let private = HeaderValue::from_static("private, no-store");
    response.headers_mut().insert(CACHE_CONTROL, private);
}
