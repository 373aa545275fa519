//! A response before it begins, while it runs, and when it has ended.

use std::sync::Arc;
use std::time::Duration;

use crate::values::request::ResponseRequest;
use threadkeep_domain::scope::ScopeId;
use threadkeep_domain::{Failure, Fingerprint, Json, Outcome, ResponseId, TurnToken, Usage};

/// A response that a caller asks for.
#[derive(Debug, Clone)]
pub struct NewResponse {
    /// Its id: the same for a repeat that is recognized.
    pub id: ResponseId,
    /// The scope that it works in.
    pub scope: ScopeId,
    /// How it treats a thread that does not exist.
    pub missing: MissingThread,
    /// The turn of the thread that the caller holds.
    pub lent: Option<TurnToken>,
    /// How long it waits while another caller holds the turn.
    pub wait: Duration,
    /// The digest of all that makes a repeat the same request.
    pub fingerprint: Fingerprint,
    /// The request.
    pub request: Arc<ResponseRequest>,
}

/// How a request treats a thread that does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingThread {
    /// It is made, with that lifetime or the default one.
    Create(Option<Duration>),
    /// It is an error.
    Refuse,
}

/// A response that has ended.
#[derive(Debug, Clone)]
pub struct EndedResponse {
    /// Its id.
    pub id: ResponseId,
    /// Its request.
    pub request: Arc<ResponseRequest>,
    /// The scope that it worked in.
    pub scope: ScopeId,
    /// How it ended.
    pub outcome: Arc<Outcome>,
    /// Whether it had ended before.
    pub is_replay: bool,
}

/// A response as it is now.
#[derive(Debug, Clone)]
pub struct ResponseState {
    /// Its request.
    pub request: Arc<ResponseRequest>,
    /// The scope that it works in.
    pub scope: ScopeId,
    /// Complete items of its output.
    pub output: Vec<Json>,
    /// The tokens so far.
    pub usage: Usage,
    /// How it ended, once it has.
    pub outcome: Option<Outcome>,
    /// Why its last driver stopped, unless another one has continued it.
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
