use std::error::Error;
use std::fmt;
use std::time::SystemTime;

use actix_web::HttpRequest;
use futures_util::future::BoxFuture;

use super::TrustedProxies;
use threadkeep_domain::ThreadId;

/// Finds the thread of a request without using signed ids, for example by mapping each logged-in user to a thread.
/// Implementations must not block, because they run on the worker that serves the request.
pub trait ThreadIdProvider: fmt::Debug + Send + Sync {
    /// Returns whether browsers add the credential automatically, like a proxy's login cookie. If so, only pages of the
    /// host itself or of allowed origins may write, because any site could otherwise write on a user's behalf.
    fn is_ambient(&self) -> bool {
        true
    }

    /// Prepares for [`Self::thread_id`], for example by fetching a key. Must finish within the request's time limit.
    fn prepare(&self, _request: &HttpRequest) -> Option<BoxFuture<'static, ()>> {
        None
    }

    /// Returns the thread of the request. The server answers errors with 401 or 503.
    fn thread_id(
        &self,
        request: &HttpRequest,
        proxies: &TrustedProxies,
    ) -> Result<ThreadId, ProviderError>;

    /// Returns the time at which the credential expires, or `None` if it never expires. Returns a past time if the
    /// credential is invalid. The server ends the caller's streams at that time.
    fn valid_until(&self, _request: &HttpRequest) -> Option<SystemTime> {
        None
    }
}

/// Why a provider cannot identify the caller.
#[derive(Debug, thiserror::Error)]
pub enum ProviderError {
    /// The request has no credential.
    #[error("the request has no credential")]
    Missing,
    /// The credential was rejected.
    #[error("the credential of the request is rejected")]
    Untrusted(#[source] Option<Box<dyn Error + Send + Sync>>),
    /// The credential cannot be verified yet. The server answers 503, and a retry may succeed.
    #[error("the keys that verify callers are not loaded yet")]
    Unavailable,
}
