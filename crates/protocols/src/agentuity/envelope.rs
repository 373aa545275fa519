//! Shared by the requests and responses of the HTTP protocol.

use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::Method;
use actix_web::http::header::{CACHE_CONTROL, HeaderValue};
use actix_web::middleware::Next;
use actix_web::{Error, HttpMessage, web};

use super::{Agentuity, AgentuityError};
use threadkeep_http::Body;
use threadkeep_identity::{ApiKey, bearer};

/// Put into a request's extensions for the handlers.
pub(super) struct RequestContext {
    pub(super) body: Body,
    pub(super) key: ApiKey,
}

/// Reads the body to its end, and admits callers with an API key.
///
/// # Errors
/// Those of the services inside.
pub(super) async fn envelope<B: MessageBody + 'static>(
    mut request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<EitherBody<B>>, Error> {
    let admitted = admit(&request);
    let limit_bytes = admitted.as_ref().map_or(0, |(_, limit_bytes)| *limit_bytes);
    // nothing of a stranger is kept, but it is read: see `Body`
    let body = Body::read(&mut request, limit_bytes).await;
    let mut response = match admitted {
        Some((key, _)) => {
            request
                .extensions_mut()
                .insert(RequestContext { body, key });
            next.call(request).await?.map_into_left_body()
        }
        None => {
            let refusal = match bearer(request.headers()) {
                Some(_) => AgentuityError::WrongKey,
                None => AgentuityError::Unauthorized,
            };
            request.error_response(refusal).map_into_right_body()
        }
    };
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
    Ok(response)
}

/// The API key of a request, and the limit of its body.
fn admit(request: &ServiceRequest) -> Option<(ApiKey, u64)> {
    let protocol = request.app_data::<web::Data<Agentuity>>()?;
    let key = protocol.api_keys.verify(request.headers())?;
    let limit_bytes = match *request.method() {
        Method::PUT => protocol.namespaces.policy().max_bytes,
        _ => Body::LIMIT_BYTES,
    };
    Some((key.clone(), limit_bytes))
}
