//! Shared by all requests and responses of the protocol.

use std::sync::Arc;

use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::StatusCode;
use actix_web::http::header::{CACHE_CONTROL, HeaderName, HeaderValue};
use actix_web::middleware::Next;
use actix_web::{Error, HttpMessage, web};

use super::{OpenAi, OpenAiError};
use threadkeep_http::{Body, IDEMPOTENCY_KEY, key_for, session_of};
use threadkeep_web::ApiError;

/// Bytes of the largest body: items carry images as base64.
const BODY_MAX_BYTES: u64 = 8 * 1_048_576;
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// Put into a request's extensions for the handlers.
pub(super) struct RequestContext {
    pub(super) body: Body,
    /// The name of the caller's API key.
    pub(super) key: Arc<str>,
}

/// Put into the extensions of a request whose repeats are recognized without a key.
pub(super) struct Recognized;

/// Reads the body to its end, and admits back ends.
///
/// # Errors
/// Those of the services inside.
pub(super) async fn envelope<B: MessageBody + 'static>(
    mut request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<EitherBody<B>>, Error> {
    let admitted = match request.app_data::<web::Data<OpenAi>>() {
        Some(protocol) => key_for(request.request(), &protocol.api),
        None => Err(ApiError::NotFound),
    };
    // nothing of a stranger is kept, but it is read: see `Body`
    let limit_bytes = admitted.as_ref().map_or(0, |_| BODY_MAX_BYTES);
    let body = Body::read(&mut request, limit_bytes).await;
    let mut response = match admitted {
        Ok(key) => {
            let key = key.name;
            request
                .extensions_mut()
                .insert(RequestContext { body, key });
            next.call(request).await?.map_into_left_body()
        }
        Err(refusal) => {
            let refusal = OpenAiError::from(refusal);
            request.error_response(refusal).map_into_right_body()
        }
    };
    mark(&mut response);
    Ok(response)
}

fn mark<B>(response: &mut ServiceResponse<B>) {
    let should_retry = should_retry(response);
    let session = session_of(response.request());
    let headers = response.headers_mut();
    if let Some(session) = session {
        headers.insert(REQUEST_ID, session.to_header());
    }
    if let Some(should_retry) = should_retry {
        let value = if should_retry { "true" } else { "false" };
        headers.insert(SHOULD_RETRY, HeaderValue::from_static(value));
    }
    let private = HeaderValue::from_static("private, no-store");
    headers.insert(CACHE_CONTROL, private);
}

/// Whether the client should send a request again that met an unavailable store: not if the write may have taken
/// effect, unless an idempotency key lets the server recognize the repeat.
fn should_retry<B>(response: &ServiceResponse<B>) -> Option<bool> {
    let error = response.response().error();
    let error = error.and_then(|error| error.as_error::<OpenAiError>());
    if error.is_some_and(OpenAiError::passes) {
        return Some(true);
    }
    let request = response.request();
    let has_key = request.headers().contains_key(IDEMPOTENCY_KEY)
        || request.extensions().get::<Recognized>().is_some();
    if !has_key && !request.method().is_idempotent() && error.is_some_and(OpenAiError::has_run) {
        return Some(false);
    }
    if response.status() != StatusCode::SERVICE_UNAVAILABLE {
        return None;
    }
    let is_ambiguous = error.is_none_or(OpenAiError::is_ambiguous);
    Some(request.method().is_safe() || has_key || !is_ambiguous)
}
