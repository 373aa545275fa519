//! What a request has from the start.

use super::body::Body;
use crate::identity::Caller;

/// Put into a request's extensions by the envelope.
pub(super) struct Exchange {
    pub(super) body: Body,
}

/// Whose thread the caller goes on with, when its own has ended.
pub(super) struct Successor(pub(super) Caller);
