use std::sync::Arc;

use super::CurrentThread;
use threadkeep_domain::scope::ScopeId;
use threadkeep_service::{ScopeService, WriteOptions};
use threadkeep_web::ApiError;

/// The scope that a handle reads and writes: the scope of the request's thread, or a scope that the app names. The app
/// can name a scope inside or outside of a request.
#[derive(Debug, Clone)]
pub(super) enum ScopeTarget {
    Thread(Arc<CurrentThread>),
    Shared(Arc<CurrentThread>, ScopeId),
    Outside(Option<ScopeService>, ScopeId),
}

impl ScopeTarget {
    /// Fails with [`ApiError::Internal`] if the middleware was built without scopes.
    pub(super) fn open(&self) -> Result<(ScopeService, ScopeId), ApiError> {
        let (scopes, scope) = match self {
            Self::Thread(thread) => (thread.scopes(), ScopeId::Thread(thread.id())),
            Self::Shared(thread, scope) => (thread.scopes(), scope.clone()),
            Self::Outside(scopes, scope) => (scopes.clone(), scope.clone()),
        };
        let scopes = scopes.ok_or(ApiError::Internal {
            what: "the middleware `Threads` has no scopes",
            source: None,
        })?;
        Ok((scopes, scope))
    }

    /// Adds the token of the request's turn to `options` if the scope belongs to the request's thread.
    pub(super) fn options(&self, options: WriteOptions) -> WriteOptions {
        match self {
            Self::Thread(thread) => WriteOptions {
                turn: thread.options().turn,
                ..options
            },
            _ => options,
        }
    }

    /// Records that the thread of `scope` exists, because the store accepted a write to the scope.
    pub(super) fn note_stored(&self, scope: &ScopeId) {
        if let (Self::Thread(thread), Some(id)) = (self, scope.thread()) {
            thread.note_stored(id);
        }
    }
}
