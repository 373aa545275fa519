use std::cell::OnceCell;

use actix_web::web::Bytes;
use actix_web::{HttpMessage, HttpRequest};

use super::body::Body;
use crate::Api;
use crate::answer::ApiResult;
use threadkeep_domain::ThreadId;
use threadkeep_identity::{ApiKey, Caller};
use threadkeep_web::{ApiError, SessionId};

/// Data that the `envelope` middleware stores in the extensions of a request. All fields share a single value, because
/// each value in the extensions costs an allocation.
pub(crate) struct RequestContext {
    session: SessionId,
    pub(crate) body: Body,
    key: OnceCell<Option<ApiKey>>,
    /// The caller, if it was identified before the body was read.
    pub(super) caller: Option<Caller>,
    pub(super) refusal: Option<ApiError>,
    /// The caller with the new thread id. Set if this request ended the caller's thread or moved it to a new id.
    pub(crate) successor: Option<Caller>,
    /// True if the session lasts until the response stream ends. The stream then reports the end of the session.
    pub(crate) is_streaming: bool,
}

impl RequestContext {
    pub(crate) fn new(session: SessionId, refusal: Option<ApiError>) -> Self {
        Self {
            session,
            body: Body::none(),
            key: OnceCell::new(),
            caller: None,
            refusal,
            successor: None,
            is_streaming: false,
        }
    }
}

pub(crate) fn change_context<T>(
    request: &impl HttpMessage,
    change: impl FnOnce(&mut RequestContext) -> T,
) -> Option<T> {
    request.extensions_mut().get_mut().map(change)
}

/// Returns the session id of a request, or `None` if the `envelope` middleware has not assigned it yet.
#[must_use]
pub fn session_of(request: &HttpRequest) -> Option<SessionId> {
    let extensions = request.extensions();
    extensions
        .get::<RequestContext>()
        .map(|context| context.session)
}

pub(crate) fn body_of(request: &HttpRequest) -> ApiResult<Bytes> {
    let extensions = request.extensions();
    let context = extensions.get::<RequestContext>();
    let context = context.ok_or(ApiError::BodyUnreadable)?;
    context.body.bytes().cloned()
}

/// Returns the API key of a request, regardless of its rights. Verifies the key only once per request.
pub(super) fn key_of(request: &HttpRequest, api: &Api) -> Option<ApiKey> {
    let verify = || api.api_keys.verify(request.headers()).cloned();
    match request.extensions().get::<RequestContext>() {
        Some(context) => context.key.get_or_init(verify).clone(),
        None => verify(),
    }
}

/// A thread that a request names by its id, as opposed to the caller's own thread.
#[derive(Debug)]
pub struct About(pub ThreadId);
