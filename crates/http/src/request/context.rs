use std::cell::OnceCell;

use actix_web::web::Bytes;
use actix_web::{HttpMessage, HttpRequest};

use super::body::Body;
use crate::Api;
use crate::answer::ApiResult;
use threadkeep_domain::ThreadId;
use threadkeep_identity::{ApiKey, Caller};
use threadkeep_web::{ApiError, SessionId};

/// The data that the envelope adds to the extensions of a request. One value, because each one costs an allocation.
pub(crate) struct RequestContext {
    session: SessionId,
    pub(crate) body: Body,
    key: OnceCell<Option<ApiKey>>,
    /// The caller, if identified before the body was read.
    pub(super) caller: Option<Caller>,
    pub(super) refusal: Option<ApiError>,
    /// The caller with its next thread, after its own has ended.
    pub(crate) successor: Option<Caller>,
    /// Whether the session continues after the response has begun. The stream then ends it.
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

/// Returns `None` until the envelope has assigned a session.
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

/// Returns the API key of a request, regardless of its rights. Verifies it once.
pub(super) fn key_of(request: &HttpRequest, api: &Api) -> Option<ApiKey> {
    let verify = || api.api_keys.verify(request.headers()).cloned();
    match request.extensions().get::<RequestContext>() {
        Some(context) => context.key.get_or_init(verify).clone(),
        None => verify(),
    }
}

/// The thread that a request named, unless it asked for the caller's own.
#[derive(Debug)]
pub struct About(pub ThreadId);
