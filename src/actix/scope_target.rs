//! Where a handle to a scope writes.

use std::sync::Arc;

use super::CurrentThread;
use threadkeep_domain::scope::ScopeId;
use threadkeep_service::{ScopeService, WriteOptions};
use threadkeep_web::ApiError;

/// The scope of a request's thread, whichever that is by then, or a scope of the app's choice, from
/// a request or from outside of one.
#[derive(Debug, Clone)]
pub(super) enum ScopeTarget {
    Thread(Arc<CurrentThread>),
    Shared(Arc<CurrentThread>, ScopeId),
    Outside(Option<ScopeService>, ScopeId),
}

impl ScopeTarget {
    /// The service and the scope.
    ///
    /// # Errors
    /// [`ApiError::Internal`] when the middleware was made without scopes.
    pub(super) fn open(&self) -> Result<(ScopeService, ScopeId), ApiError> {
        let (scopes, scope) = match self {
            Self::Thread(live) => (live.scopes(), ScopeId::Thread(live.id())),
            Self::Shared(live, scope) => (live.scopes(), scope.clone()),
            Self::Outside(scopes, scope) => (scopes.clone(), scope.clone()),
        };
        let scopes = scopes.ok_or(ApiError::Internal {
            what: "the middleware `Threads` has no scopes",
            source: None,
        })?;
        Ok((scopes, scope))
    }

    /// The conditions of a write: those given, and the turn of the request if it is to its thread.
    pub(super) fn options(&self, given: WriteOptions) -> WriteOptions {
        match self {
            Self::Thread(live) => WriteOptions {
                turn: live.options().turn,
                ..given
            },
            _ => given,
        }
    }

    /// Notes that the store has accepted a write to that scope: its thread exists now.
    pub(super) fn note_stored(&self, scope: &ScopeId) {
        if let (Self::Thread(live), Some(id)) = (self, scope.thread()) {
            live.note_stored(id);
        }
    }
}
