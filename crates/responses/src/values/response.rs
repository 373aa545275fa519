use std::sync::Arc;
use std::time::Duration;

use crate::values::request::ResponseRequest;
use threadkeep_domain::scope::ScopeId;
use threadkeep_domain::{Failure, Fingerprint, Json, Outcome, ResponseId, TurnToken, Usage};

#[derive(Debug, Clone)]
pub struct NewResponse {
    /// A repeated request has the same id if it is recognized.
    pub id: ResponseId,
    pub scope: ScopeId,
    pub missing: MissingThread,
    /// Token of the caller's turn (exclusive lease of the thread), if the response runs under that turn.
    pub lent: Option<TurnToken>,
    /// Maximum time to wait while another caller holds the turn.
    pub wait: Duration,
    /// Digest of everything that must be identical in a repeated request.
    pub fingerprint: Fingerprint,
    pub request: Arc<ResponseRequest>,
}

/// How a request treats a missing thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingThread {
    /// Creates the thread with this TTL. `None` uses the default TTL.
    Create(Option<Duration>),
    Refuse,
}

#[derive(Debug, Clone)]
pub struct EndedResponse {
    pub id: ResponseId,
    pub request: Arc<ResponseRequest>,
    pub scope: ScopeId,
    pub outcome: Arc<Outcome>,
    /// True if the response had ended before the request.
    pub is_replay: bool,
}

#[derive(Debug, Clone)]
pub struct ResponseState {
    pub request: Arc<ResponseRequest>,
    pub scope: ScopeId,
    /// Complete output items.
    pub output: Vec<Json>,
    pub usage: Usage,
    /// `None` until the response has ended.
    pub outcome: Option<Outcome>,
    /// Why the response was last interrupted. `None` if it was never interrupted or has been resumed.
    pub failure: Option<Failure>,
}

impl EndedResponse {
    pub(crate) fn new(
        id: ResponseId,
        request: Arc<ResponseRequest>,
        scope: ScopeId,
        outcome: Outcome,
        is_replay: bool,
    ) -> Self {
        Self {
            id,
            request,
            scope,
            outcome: Arc::new(outcome),
            is_replay,
        }
    }

    pub(crate) fn replayed_if(self, is_replay: bool) -> Self {
        Self { is_replay, ..self }
    }
}
