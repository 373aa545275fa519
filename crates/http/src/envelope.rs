//! Middleware around all routes: assigns a session id to the request, reads the body, formats errors as problem
//! objects, and adds headers that name the thread.

use std::time::Instant;

use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderMap, HeaderValue, VARY, X_CONTENT_TYPE_OPTIONS,
};
use actix_web::http::{ConnectionType, StatusCode, Version};
use actix_web::middleware::Next;
use actix_web::{Error, HttpMessage, HttpRequest, web};

use super::Api;
use super::answer::memory::{AnswerMemory, MemoryFull};
use super::connection_state::ConnectionState;
use super::openai_paths::is_openai_path;
use super::request::body::{Body, is_endless};
use super::request::context::{About, RequestContext, change_context};
use super::request::query::{Query, Reading};
use super::request::{early, head};
use threadkeep_domain::Completed;
use threadkeep_identity::{Caller, Source};
use threadkeep_trace as trace;
use threadkeep_trace::Phase;
use threadkeep_web::{ApiError, SESSION_ID, SessionId, with_problem};

/// Content security policy of `/` and `/docs`. Allows the server's own files, requests to the server, and Swagger UI's
/// inline styles and images. Forbids frames, to prevent clickjacking.
const PAGE_POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; \
     img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'none'",
);

pub async fn envelope<B: MessageBody + 'static>(
    mut request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse, Error> {
    let start = Instant::now();
    let active = ConnectionState::begin_request(&request);
    let session = SessionId::random();
    let refusal = head::refusal(&request);
    let api = request.app_data::<web::Data<Api>>();
    let prepared = api.filter(|_| refusal.is_none());
    let prepared = prepared.and_then(|api| api.identity.prepare(request.request()));
    if let Some(prepared) = prepared {
        prepared.await;
    }
    let is_refused = refusal.is_some();
    let context = RequestContext::new(session, refusal);
    request.extensions_mut().insert(context);
    let limit_bytes = if is_refused {
        Some(0)
    } else if is_own_api(request.match_info().as_str()) {
        Some(early::limit_bytes(&request))
    } else {
        None
    };
    if let Some(limit_bytes) = limit_bytes {
        let spending = trace::spend(Phase::Body);
        let body = Body::read(&mut request, limit_bytes).await;
        drop(spending);
        change_context(&request, |context| context.body = body);
    }
    let response = hold_large_body(next.call(request).await?.map_into_boxed_body()).await;
    active.mark_answered();
    let mut response = with_problem(response, &session).map_into_boxed_body();
    add_headers(&mut response, session);
    report_completed(&response, session, start);
    let is_stream = response.response().body().size() == BodySize::Stream;
    let is_old = response.request().version() < Version::HTTP_11;
    if (is_endless(response.request().head()) || is_stream && is_old)
        && response.status() != StatusCode::SWITCHING_PROTOCOLS
    {
        // actix would otherwise announce a chunked body. But actix sends no chunks after a rejected upgrade, and
        // HTTP/1.0 does not support chunks (RFC 9112, section 6.1). Closing the connection ends the response instead.
        let head = response.response_mut().head_mut();
        head.no_chunking(true);
        head.set_connection_type(ConnectionType::Close);
    }
    Ok(if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        response.map_body(|_, body| active.attach_to_upgraded(body))
    } else if is_stream {
        response.map_body(|_, body| active.attach_to(body))
    } else {
        response
    })
}

/// Moves a large response into [`AnswerMemory`]. If that memory is full, a read fails with 503, but the response to a
/// completed write is always sent.
async fn hold_large_body(response: ServiceResponse) -> ServiceResponse {
    let is_large = matches!(
        response.response().body().size(),
        BodySize::Sized(bytes) if AnswerMemory::is_counted(bytes)
    );
    let memory = response.request().conn_data::<AnswerMemory>().cloned();
    let Some(memory) = memory.filter(|_| is_large) else {
        return response;
    };
    let is_read = response.request().method().is_safe();
    let (request, response) = response.into_parts();
    let (response, body) = response.into_parts();
    let held = match body.try_into_bytes() {
        Ok(bytes) if is_read => memory.hold(bytes).await.map(BoxBody::new),
        Ok(bytes) => Ok(BoxBody::new(memory.hold_or_evict(bytes))),
        Err(body) => Ok(body),
    };
    match held {
        Ok(body) => ServiceResponse::new(request, response.set_body(body)),
        Err(MemoryFull) => {
            let mut refused = ServiceResponse::from_err(ApiError::Overloaded, request);
            copy_cors(response.headers(), refused.headers_mut());
            refused
        }
    }
}

/// Copies the CORS headers. Without them, a browser would hide the error from the page.
fn copy_cors(from: &HeaderMap, to: &mut HeaderMap) {
    for (name, value) in from {
        if name.as_str().starts_with("access-control-") {
            to.insert(name.clone(), value.clone());
        }
    }
}

fn add_headers<B>(response: &mut ServiceResponse<B>, session: SessionId) {
    let request = response.request().clone();
    let status = response.status();
    let headers = response.headers_mut();
    headers.insert(SESSION_ID, session.to_header());
    // responses contain text from clients, which a browser must not render as a page
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    let path = request.match_info().as_str();
    if !is_own_api(path) {
        if is_page(path) {
            headers.insert(CONTENT_SECURITY_POLICY, PAGE_POLICY);
        }
        // the response is the same for all clients, except for CORS headers and encoding
        headers.append(VARY, HeaderValue::from_static("origin"));
        return;
    }
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    headers.insert(
        VARY,
        HeaderValue::from_static("cookie, x-thread-id, authorization, origin, accept-encoding"),
    );
    let extensions = request.extensions();
    let context = extensions.get::<RequestContext>();
    let successor = context.and_then(|context| context.successor.as_ref());
    if request.match_info().get("id").is_none()
        && let Some(caller) = successor.or_else(|| extensions.get::<Caller>())
        && !must_omit_thread(caller, status)
        && let Some(api) = request.app_data::<web::Data<Api>>()
    {
        let renews =
            request.method().is_safe() && path == "/v1/threads/current" && !is_peek(&request);
        api.identity
            .add_to_response(caller, &request, renews, headers);
    }
}

fn is_peek(request: &HttpRequest) -> bool {
    Query::<Reading>::of(request).is_ok_and(|Query(reading)| reading.is_peek())
}

fn report_completed<B>(response: &ServiceResponse<B>, session: SessionId, start: Instant) {
    let request = response.request();
    let extensions = request.extensions();
    let caller = extensions.get::<Caller>().map(|caller| &caller.id);
    let thread = caller.or_else(|| extensions.get::<About>().map(|About(id)| id));
    let context = extensions.get::<RequestContext>();
    if context.is_some_and(|context| context.is_streaming) {
        return;
    }
    let (Some(thread), Some(api)) = (thread, request.app_data::<web::Data<Api>>()) else {
        return;
    };
    api.events.session_completed(thread, || Completed {
        session: session.as_str().into(),
        status: response.status().as_u16(),
        duration_ms: start.elapsed().as_millis() as u64,
    });
}

/// Returns whether `path` belongs to this server's own API. Expects a decoded path, because `/%761/` means `/v1/`.
fn is_own_api(path: &str) -> bool {
    (path == "/v1" || path.starts_with("/v1/")) && !is_openai_path(path)
}

fn is_page(path: &str) -> bool {
    matches!(path, "/" | "/docs") || path.starts_with("/docs/")
}

/// Returns whether the response must omit the thread id. True for 401, and for errors other than 404 if the thread id
/// is new. Also true for 410, because a late response about a destroyed thread must not replace the client's new id.
fn must_omit_thread(caller: &Caller, status: StatusCode) -> bool {
    let is_refusal = status.is_client_error() || status.is_server_error();
    let is_new = caller.source == Source::Minted;
    matches!(status, StatusCode::UNAUTHORIZED | StatusCode::GONE)
        || is_new && is_refusal && status != StatusCode::NOT_FOUND
}
