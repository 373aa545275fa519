//! Shared by the requests and responses of the HTTP protocol.

use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::Method;
use actix_web::http::header::{CACHE_CONTROL, HeaderValue};
use actix_web::middleware::Next;
use actix_web::{Error, HttpMessage, web};

use super::{Agentuity, AgentuityError};
use crate::http::Body;

/// Put into a request's extensions for the handlers.
pub(super) struct RequestContext {
    pub(super) body: Body,
}

/// Reads the body to its end, and admits callers with an API key.
///
/// # Errors
/// Those of the services inside.
pub(super) async fn envelope<B: MessageBody + 'static>(
    mut request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<EitherBody<B>>, Error> {
    let limit_bytes = limit_bytes(&request);
    // nothing of a stranger is kept, but it is read: see `Body`
    let body = Body::read(&mut request, limit_bytes.unwrap_or(0)).await;
    let mut response = match limit_bytes {
        Some(_) => {
            request.extensions_mut().insert(RequestContext { body });
            next.call(request).await?.map_into_left_body()
        }
        None => request
            .error_response(AgentuityError::Unauthorized)
            .map_into_right_body(),
    };
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
    Ok(response)
}

/// The limit of a request's body; none without an API key.
fn limit_bytes(request: &ServiceRequest) -> Option<u64> {
    let protocol = request.app_data::<web::Data<Agentuity>>()?;
    protocol.api_keys.verify(request.headers())?;
    Some(match *request.method() {
        Method::PUT => protocol.namespaces.policy().max_bytes,
        _ => Body::LIMIT_BYTES,
    })
}
