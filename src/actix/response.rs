use std::error::Error as StdError;

use actix_web::HttpRequest;
use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::ServiceResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{CACHE_CONTROL, HeaderValue, VARY};

use super::RequestContext;
use threadkeep_identity::{Caller, Identity, Source};
use threadkeep_web::{ApiError, SESSION_ID, SessionId, with_problem};

/// Flushes the queued writes, or discards them if the handler failed. If the flush fails, its error replaces the
/// handler's response.
pub(super) async fn settle<B: MessageBody + 'static>(
    response: ServiceResponse<B>,
    context: &RequestContext,
    identity: &Identity,
) -> ServiceResponse<EitherBody<B>> {
    let thread = &context.thread;
    let has_failed = response.response().error().is_some() || response.status().is_server_error();
    let flushed = if has_failed {
        thread.discard("the handler failed");
        Ok(None)
    } else {
        thread.flush().await
    };
    let mut response = match flushed {
        Ok(_) => with_session(response, context.session),
        Err(error) => refused(
            response.error_response(ApiError::from(error)),
            context.session,
        ),
    };
    add_to_response(&mut response, context, identity);
    response
}

/// Completes an error response that replaces the handler's response, including its headers and body.
pub(super) fn refused<B>(
    response: ServiceResponse,
    session: SessionId,
) -> ServiceResponse<EitherBody<B>> {
    with_session(response, session)
        .map_into_boxed_body()
        .map_into_right_body()
}

fn with_session<B: MessageBody>(
    response: ServiceResponse<B>,
    session: SessionId,
) -> ServiceResponse<EitherBody<B>> {
    log_fault(&response, session);
    let mut response = with_problem(response, &session);
    let headers = response.headers_mut();
    headers.insert(SESSION_ID, session.to_header());
    if !headers.contains_key(CACHE_CONTROL) {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    }
    headers.append(VARY, HeaderValue::from_static("cookie, x-thread-id"));
    response
}

fn add_to_response<B>(
    response: &mut ServiceResponse<B>,
    context: &RequestContext,
    identity: &Identity,
) {
    let request = response.request().clone();
    let pending = context.thread.pending();
    if !omits_id(pending.caller(), pending.has_stored(), response.status()) {
        let renews = is_navigation(&request);
        identity.add_to_response(pending.caller(), &request, renews, response.headers_mut());
    }
}

/// Returns whether a browser is opening a page. Responses to such requests renew the cookie, because apps do not have a
/// separate path for renewing it.
fn is_navigation(request: &HttpRequest) -> bool {
    let mode = request.headers().get("sec-fetch-mode");
    request.method().is_safe() && mode.is_some_and(|mode| mode == "navigate")
}

/// Returns whether to omit the id from the response. An error response must not reveal a new id before its thread
/// exists, and must not send the id of a destroyed thread again.
fn omits_id(caller: &Caller, has_stored: bool, status: StatusCode) -> bool {
    let is_refusal = status.is_client_error() || status.is_server_error();
    let is_unstored = caller.source == Source::Minted || status == StatusCode::GONE;
    matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
        || is_refusal && is_unstored && !has_stored
}

/// Logs the cause of a 5xx response, because the client gets only a general message.
fn log_fault<B>(response: &ServiceResponse<B>, session: SessionId) {
    if !response.status().is_server_error() {
        return;
    }
    let error = response.response().error();
    match error.and_then(|error| error.as_error::<ApiError>()) {
        Some(ApiError::Service(error)) => {
            let error: &(dyn StdError + 'static) = error;
            tracing::error!(session.id = %session, error, "the store failed");
        }
        Some(error) => tracing::error!(session.id = %session, %error, "handler failed"),
        // the app logs its own errors
        None => {}
    }
}
