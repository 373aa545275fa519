use actix_web::dev::ServiceResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{HeaderName, HeaderValue};
use actix_web::{HttpMessage, HttpRequest};

use super::request::Sender;
use super::{OpenAi, OpenAiError};
use crate::frame::Framed;
use threadkeep_http::{Body, IDEMPOTENCY_KEY, key_for, session_of};
use threadkeep_web::ApiError;

/// Maximum size of a body. Items contain images as base64.
const BODY_MAX_BYTES: u64 = 8 * 1_048_576;
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// Marks a request whose repeats are detected without an idempotency key.
pub(super) struct Recognized;

impl Framed for OpenAi {
    type Caller = Sender;
    type Error = OpenAiError;

    fn outside() -> OpenAiError {
        ApiError::NotFound.into()
    }

    fn admit(&self, request: &HttpRequest) -> Result<(Sender, u64), OpenAiError> {
        let sender = Sender {
            key: key_for(request, &self.api)?.name,
            is_message: false,
        };
        Ok((sender, BODY_MAX_BYTES))
    }

    fn check(body: &Body) -> Result<(), OpenAiError> {
        body.bytes()?;
        Ok(())
    }

    fn add_headers<B>(response: &mut ServiceResponse<B>) {
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
    }
}

/// Returns whether the client should retry, or `None` if the client should decide. After a store outage, the client
/// should repeat a write that may have taken effect only if the server can detect repeats.
fn should_retry<B>(response: &ServiceResponse<B>) -> Option<bool> {
    let error = response.response().error();
    let error = error.and_then(|error| error.as_error::<OpenAiError>());
    if error.is_some_and(OpenAiError::is_temporary) {
        return Some(true);
    }
    let request = response.request();
    let has_key = request.headers().contains_key(IDEMPOTENCY_KEY)
        || request.extensions().get::<Recognized>().is_some();
    if !has_key
        && !request.method().is_idempotent()
        && error.is_some_and(OpenAiError::may_have_run_calls)
    {
        return Some(false);
    }
    if response.status() != StatusCode::SERVICE_UNAVAILABLE {
        return None;
    }
    let is_ambiguous = error.is_none_or(OpenAiError::is_ambiguous);
    Some(request.method().is_safe() || has_key || !is_ambiguous)
}
