//! Runs the steps before the protocol: reads the body, opens the scope, and rejects malformed messages.

use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{Payload, ServiceRequest, ServiceResponse};
use actix_web::http::Method;
use actix_web::http::header::{ACCEPT, CACHE_CONTROL, HeaderValue};
use actix_web::middleware::Next;
use actix_web::{Error, HttpMessage, HttpResponse, web};

use super::batch::Messages;
use super::exchange::{answer, answer_batch};
use super::fault::{MESSAGE_MAX_BYTES, MessageFault};
use super::revision::Revision;
use super::{Mcp, Opened};
use threadkeep_domain::scope::Scope;
use threadkeep_http::{About, Body, accepts_json, turn};
use threadkeep_service::ScopeService;
use threadkeep_service::rates::RateSubject;
use threadkeep_web::ApiError;

/// Middleware around the protocol. Requests without a credential are rejected before their method is checked.
pub(super) async fn gate<B: MessageBody + 'static>(
    mut request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let opened = request
        .app_data::<web::Data<Mcp>>()
        .ok_or(ApiError::NotFound)
        .and_then(|mcp| mcp.open(request.request()));
    // the body of a rejected request is read and discarded (see `Body`)
    let limit_bytes = opened.as_ref().map_or(0, |_| MESSAGE_MAX_BYTES);
    let body = Body::read(&mut request, limit_bytes).await;
    let admitted = opened.and_then(|opened| admit(&request, opened, &body));
    let mut response = match admitted {
        // `body` is dropped after the call, so its memory reservation also covers the copied arguments
        Ok((opened, Ok(messages))) => forward(request, next, opened, messages).await?,
        Ok((_, Err(fault))) => request.into_response(bad_request(fault)),
        Err(error) => request.error_response(error),
    };
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
    Ok(response)
}

/// Authorizes a request, and parses its messages.
fn admit(
    request: &ServiceRequest,
    (scope, scopes): (Scope, ScopeService),
    body: &Body,
) -> Result<(Opened, Result<Messages, MessageFault>), ApiError> {
    if let Scope::Kept(id) = &scope
        && let Some(thread) = id.thread()
    {
        request.extensions_mut().insert(About(*thread));
    }
    if !matches!(request.match_info().unprocessed(), "" | "/") {
        return Err(ApiError::NotFound);
    }
    if request.method() != Method::POST {
        return Err(ApiError::MethodNotAllowed {
            method: request.method().clone(),
            allow: "POST",
        });
    }
    let opened = Opened {
        scope,
        scopes,
        address: RateSubject::address(),
        turn: turn(request.request())?,
        arguments: None,
    };
    let revision = Revision::of(request.headers());
    Ok((opened, Messages::read(body.bytes()?, revision)))
}

/// Passes messages to the library's transport, without the request's original body.
async fn forward<B: MessageBody + 'static>(
    mut request: ServiceRequest,
    next: Next<B>,
    opened: Opened,
    messages: Messages,
) -> Result<ServiceResponse<BoxBody>, Error> {
    request.set_payload(Payload::None);
    if accepts_json(request.request()).is_ok() {
        // the transport rejects clients that do not accept streams, although each answer is JSON
        let both = HeaderValue::from_static("application/json, text/event-stream");
        request.headers_mut().insert(ACCEPT, both);
    }
    match messages {
        Messages::One(message) => answer(request, &next, &opened, message).await,
        Messages::Batch(messages) => answer_batch(request, &next, &opened, messages).await,
    }
}

fn bad_request(fault: MessageFault) -> HttpResponse {
    HttpResponse::BadRequest().json(fault.into_error())
}
