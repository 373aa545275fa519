//! What a request has from the start.

use super::body::Body;

/// Put into a request's extensions by the envelope.
pub(super) struct Exchange {
    pub(super) body: Body,
}
