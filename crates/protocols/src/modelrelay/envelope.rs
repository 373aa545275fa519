//! Shared by all requests and responses of the protocol.

use std::sync::Arc;

use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::{CACHE_CONTROL, HeaderMap, HeaderName, HeaderValue};
use actix_web::middleware::Next;
use actix_web::{Error, HttpMessage, HttpRequest, web};

use super::{ModelRelay, RelayError};
use threadkeep_http::{Body, missing, session_of};
use threadkeep_identity::bearer;
use threadkeep_service::rates::RateSubject;
use threadkeep_web::SessionId;

/// The id of a request, chosen by the client or by us.
pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("x-modelrelay-request-id");
const API_KEY: HeaderName = HeaderName::from_static("x-modelrelay-api-key");

/// The longest accepted id of a request.
const REQUEST_ID_MAX_BYTES: usize = 128;

/// Put into a request's extensions for the handlers.
pub(super) struct RequestContext {
    pub(super) body: Body,
    /// The name of the api key.
    pub(super) key_name: Arc<str>,
}

/// Reads the body, admits callers with an API key, and answers with the request's id.
///
/// # Errors
/// Those of the services inside.
pub(super) async fn envelope<B: MessageBody + 'static>(
    mut request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<EitherBody<B>>, Error> {
    let request_id = request_id(&request);
    let relay = request.app_data::<web::Data<ModelRelay>>();
    let key_name = relay
        .ok_or(RelayError::Unauthorized)
        .and_then(|relay| key_name(relay, request.request()));
    // nothing of a stranger is kept, but it is read: see `Body`
    let limit_bytes = key_name.as_ref().map_or(0, |_| Body::LIMIT_BYTES);
    let body = Body::read(&mut request, limit_bytes).await;
    let mut response = match key_name {
        Ok(key_name) => {
            RateSubject::is_a_back_end();
            let exchange = RequestContext { body, key_name };
            request.extensions_mut().insert(exchange);
            next.call(request).await?.map_into_left_body()
        }
        Err(refusal) => request.error_response(refusal).map_into_right_body(),
    };
    let headers = response.headers_mut();
    if let Some(request_id) = request_id {
        headers.insert(REQUEST_ID, request_id);
    }
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
    Ok(response)
}

/// The name of the API key that a request has in either place, if it may make the call.
fn key_name(relay: &ModelRelay, request: &HttpRequest) -> Result<Arc<str>, RelayError> {
    let headers = request.headers();
    let key = headers.get(API_KEY);
    let key = key.and_then(|key| relay.api_keys.find(key.as_bytes()));
    let key = key.or_else(|| relay.api_keys.verify(headers));
    let key = key.ok_or_else(|| match bearer(headers) {
        Some(_) => RelayError::WrongKey,
        None => RelayError::Unauthorized,
    })?;
    match missing(key, request.method(), request.match_info().as_str()) {
        Some(right) => Err(RelayError::Forbidden(right)),
        None => Ok(Arc::clone(&key.name)),
    }
}

/// The client's id of the request, or ours.
fn request_id(request: &ServiceRequest) -> Option<HeaderValue> {
    if let Some(id) = client_request_id(request.headers()) {
        return Some(id.clone());
    }
    session_of(request.request()).map(SessionId::to_header)
}

/// The client's id of a request: 1 to 128 visible ASCII characters; others count as none.
pub(super) fn client_request_id(headers: &HeaderMap) -> Option<&HeaderValue> {
    headers.get(REQUEST_ID).filter(|id| is_token(id.as_bytes()))
}

/// Whether a text is 1 to 128 visible ASCII characters.
pub(super) fn is_token(text: &[u8]) -> bool {
    (1..=REQUEST_ID_MAX_BYTES).contains(&text.len()) && text.iter().all(u8::is_ascii_graphic)
}
