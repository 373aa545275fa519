use std::sync::Arc;

use actix_web::HttpRequest;
use actix_web::dev::ServiceResponse;
use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};
use actix_web::web::Bytes;

use super::{ModelRelay, RelayError};
use crate::frame::Framed;
use threadkeep_http::{Body, missing, session_of};
use threadkeep_identity::bearer;
use threadkeep_service::rates::RateSubject;
use threadkeep_web::SessionId;

/// Header with the id of a request. Either the client or this server chooses the id.
pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("x-modelrelay-request-id");
const API_KEY: HeaderName = HeaderName::from_static("x-modelrelay-api-key");

const REQUEST_ID_MAX_BYTES: usize = 128;

impl Framed for ModelRelay {
    /// The name of the API key.
    type Caller = Arc<str>;
    type Error = RelayError;

    fn outside() -> RelayError {
        RelayError::Unauthorized
    }

    fn admit(&self, request: &HttpRequest) -> Result<(Arc<str>, u64), RelayError> {
        let key_name = key_name(self, request)?;
        RateSubject::exempt_address();
        Ok((key_name, Body::LIMIT_BYTES))
    }

    fn check(body: &Body) -> Result<(), RelayError> {
        bytes_of(body)?;
        Ok(())
    }

    fn add_headers<B>(response: &mut ServiceResponse<B>) {
        if let Some(id) = request_id(response.request()) {
            response.headers_mut().insert(REQUEST_ID, id);
        }
    }
}

/// Returns the body, or an error if the body was not received completely.
pub(super) fn bytes_of(body: &Body) -> Result<&Bytes, RelayError> {
    match body {
        Body::Whole { bytes, .. } => Ok(bytes),
        &Body::TooLarge { limit_bytes, .. } => Err(RelayError::BodyTooLarge { limit_bytes }),
        Body::Unreadable => {
            let text = "the body could not be read";
            Err(RelayError::InvalidInput(text.into()))
        }
        Body::Overloaded => Err(RelayError::Overloaded),
    }
}

/// Returns the name of the API key in `X-ModelRelay-Api-Key` or in the bearer token. Fails if neither is an API key, or
/// if the key may not make the call.
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

/// Returns the id that the client chose for the request, or else the id that this server chose.
fn request_id(request: &HttpRequest) -> Option<HeaderValue> {
    if let Some(id) = client_request_id(request.headers()) {
        return Some(id.clone());
    }
    session_of(request).map(SessionId::to_header)
}

/// Returns the client's id for the request if the id consists of 1 to 128 visible ASCII characters.
pub(super) fn client_request_id(headers: &HeaderMap) -> Option<&HeaderValue> {
    headers.get(REQUEST_ID).filter(|id| is_token(id.as_bytes()))
}

/// Returns whether `text` consists of 1 to 128 visible ASCII characters.
pub(super) fn is_token(text: &[u8]) -> bool {
    (1..=REQUEST_ID_MAX_BYTES).contains(&text.len()) && text.iter().all(u8::is_ascii_graphic)
}
