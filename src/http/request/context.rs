//! What a request has from the start.

use actix_web::{HttpMessage, HttpRequest};

use super::body::Body;
use crate::domain::ThreadId;
use crate::identity::Caller;
use crate::web::SessionId;

/// Put into a request's extensions by the envelope. One thing and not two: each costs an allocation.
pub(crate) struct RequestContext {
    pub(crate) session: SessionId,
    pub(crate) body: Body,
}

/// The session of a request, once the envelope has given it one.
#[must_use]
pub fn session_of(request: &HttpRequest) -> Option<SessionId> {
    let extensions = request.extensions();
    extensions
        .get::<RequestContext>()
        .map(|exchange| exchange.session)
}

/// Whose thread the caller goes on with, when its own has ended.
pub(crate) struct Successor(pub(crate) Caller);

/// Which thread a request was about that was not asked for as the caller's own.
pub(crate) struct About(pub(crate) ThreadId);

/// The session goes on after the response has begun: who has this ends it.
pub(crate) struct Streaming;
