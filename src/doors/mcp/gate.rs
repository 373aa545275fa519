//! What comes before the protocol: the body, the scope, and messages that are none.

use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{Payload, ServiceRequest, ServiceResponse};
use actix_web::http::Method;
use actix_web::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use actix_web::middleware::Next;
use actix_web::{Error, HttpMessage, HttpResponse, web};
use rmcp::model::JsonRpcError;

use super::message::fault;
use super::{Mcp, Opened};
use crate::domain::scope::Scope;
use crate::http::{About, ApiError, Body};
use crate::service::rates::Asker;

/// The middleware around the protocol. Without a credential nothing of it is answered, and nobody is
/// told that it does not take a method.
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
    let limit_bytes = opened.as_ref().map_or(0, |_| Body::LIMIT_BYTES);
    let body = Body::read(&mut request, limit_bytes).await;
    let mut response = match opened.and_then(|scope| admit(&mut request, scope, &body)) {
        Ok(None) => named_text(next.call(request).await?).map_into_left_body(),
        Ok(Some(fault)) => request
            .into_response(HttpResponse::BadRequest().json(fault))
            .map_into_right_body(),
        Err(error) => request.error_response(error).map_into_right_body(),
    };
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
    Ok(response)
}

/// Notes the scope of a request, and gives the request its body back, unless that is no message.
fn admit(
    request: &mut ServiceRequest,
    scope: Scope,
    body: &Body,
) -> Result<Option<JsonRpcError>, ApiError> {
    if let Scope::Kept(kept) = &scope
        && let Some(thread) = kept.thread()
    {
        request.extensions_mut().insert(About(*thread));
    }
    let address = Asker::address();
    request.extensions_mut().insert(Opened { scope, address });
    if !matches!(request.match_info().unprocessed(), "" | "/") {
        return Err(ApiError::NotFound);
    }
    if request.method() != Method::POST {
        let allow = "POST";
        return Err(ApiError::MethodNotAllowed { allow });
    }
    let bytes = body.bytes()?;
    let fault = fault(bytes);
    request.set_payload(Payload::from(bytes.clone()));
    Ok(fault)
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
