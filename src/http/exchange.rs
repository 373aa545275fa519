//! What a request has from the start.

use super::body::Body;
use crate::domain::ThreadId;
use crate::identity::Caller;

/// Put into a request's extensions by the envelope.
pub(super) struct Exchange {
    pub(super) body: Body,
}

/// Whose thread the caller goes on with, when its own has ended.
pub(super) struct Successor(pub(super) Caller);

/// Which thread a request was about that was not asked for as the caller's own.
pub(crate) struct About(pub(crate) ThreadId);

/// The session goes on after the response has begun: who has this ends it.
pub(super) struct Streaming;
