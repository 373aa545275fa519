//! The steps before the protocol: reading the body, opening the scope, rejecting malformed messages.

use actix_web::body::{BoxBody, EitherBody, MessageBody, to_bytes};
use actix_web::dev::{Payload, ServiceRequest, ServiceResponse};
use actix_web::http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use actix_web::http::{Method, StatusCode};
use actix_web::middleware::Next;
use actix_web::{Error, HttpMessage, HttpResponse, web};
use bytes::Bytes;

use super::message::{MESSAGE_MAX_BYTES, Message, MessageFault};
use super::{Mcp, Opened};
use crate::domain::scope::Scope;
use crate::http::{About, Body, accepts_json, turn};
use crate::service::ScopeService;
use crate::service::rates::RateSubject;
use crate::web::ApiError;

/// The middleware around the protocol. Without a credential it answers nothing, not even that it does not support a
/// method.
///
/// # Errors
/// Those of the services inside.
pub(super) async fn gate<B: MessageBody + 'static>(
    mut request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<EitherBody<B>>, Error> {
    let opened = request
        .app_data::<web::Data<Mcp>>()
        .ok_or(ApiError::NotFound)
        .and_then(|mcp| mcp.open(request.request()));
    // nothing of a stranger is kept, but it is read: see `Body`
    let limit_bytes = opened.as_ref().map_or(0, |_| MESSAGE_MAX_BYTES);
    let body = Body::read(&mut request, limit_bytes).await;
    let mut response = match opened.and_then(|opened| admit(&mut request, opened, &body)) {
        // the body has its share of the memory until the call is done, as the arguments are a copy of it
        Ok(Ok(envelope)) => forward(request, next, envelope).await?,
        Ok(Err(fault)) => request
            .into_response(bad_request(fault))
            .map_into_right_body(),
        Err(error) => request.error_response(error).map_into_right_body(),
    };
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
    Ok(response)
}

/// Notes the scope and the arguments of a request, and returns its envelope, if it is a message.
fn admit(
    request: &mut ServiceRequest,
    (scope, scopes): (Scope, ScopeService),
    body: &Body,
) -> Result<Result<Bytes, MessageFault>, ApiError> {
    if let Scope::Kept(kept) = &scope
        && let Some(thread) = kept.thread()
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
    let turn = turn(request.request())?;
    Ok(Message::read(body.bytes()?).map(|message| {
        request.extensions_mut().insert(Opened {
            scope,
            scopes,
            address: RateSubject::address(),
            turn,
            arguments: message.arguments,
        });
        message.envelope
    }))
}

/// Passes a message to the transport. A body that is not a message gets the same refusal as a body
/// of another type.
async fn forward<B: MessageBody + 'static>(
    mut request: ServiceRequest,
    next: Next<B>,
    envelope: Bytes,
) -> Result<ServiceResponse<EitherBody<B>>, Error> {
    let is_json = request
        .content_type()
        .eq_ignore_ascii_case("application/json");
    if accepts_json(request.request()).is_ok() {
        // each answer is JSON, but the transport asks for clients that take streams too
        let both = HeaderValue::from_static("application/json, text/event-stream");
        request.headers_mut().insert(ACCEPT, both);
    }
    request.set_payload(Payload::from(envelope.clone()));
    let response = next.call(request).await?;
    if is_json && response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE {
        let answer = bad_request(MessageFault::of(&envelope));
        return Ok(response.into_response(answer).map_into_right_body());
    }
    let response = whole(named_text(response).map_into_boxed_body()).await?;
    Ok(response.map_into_right_body())
}

/// The transport streams each answer as one part. As a whole it has a length, and counts like other answers.
async fn whole(response: ServiceResponse) -> Result<ServiceResponse, ApiError> {
    let content_type = response.headers().get(CONTENT_TYPE);
    if content_type.is_some_and(|name| name == "text/event-stream") {
        return Ok(response);
    }
    let (request, response) = response.into_parts();
    let (response, body) = response.into_parts();
    let bytes = to_bytes(body).await.map_err(|_| ApiError::Internal {
        what: "the transport broke off an answer",
        source: None,
    })?;
    let response = response.set_body(BoxBody::new(bytes));
    Ok(ServiceResponse::new(request, response))
}

fn bad_request(fault: MessageFault) -> HttpResponse {
    HttpResponse::BadRequest().json(fault.into_error())
}

/// The transport gives the texts of its refusals no type.
fn named_text<B>(mut response: ServiceResponse<B>) -> ServiceResponse<B> {
    let is_error = response.status().is_client_error() || response.status().is_server_error();
    let headers = response.headers_mut();
    let has_type = headers
        .get(CONTENT_TYPE)
        .is_some_and(|name| name != "application/octet-stream");
    if is_error && !has_type {
        let text = HeaderValue::from_static("text/plain; charset=utf-8");
        headers.insert(CONTENT_TYPE, text);
    }
    response
}
