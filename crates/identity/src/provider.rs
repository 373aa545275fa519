//! Thread ids from elsewhere.

use std::error::Error;
use std::fmt;
use std::time::SystemTime;

use actix_web::HttpRequest;
use futures_util::future::BoxFuture;

use super::TrustedProxies;
use threadkeep_domain::ThreadId;

/// Finds the thread of a request in another way than by signed ids, such as one thread for each logged-in user.
///
/// It runs on the worker that serves the request, so it must not block.
pub trait ThreadIdProvider: fmt::Debug + Send + Sync {
    /// Whether a browser adds the credential by itself, as with a login cookie at a proxy, so that pages of other
    /// sites could write in its user's name. Then a write has to come from the host's own pages or from an allowed
    /// origin.
    fn is_ambient(&self) -> bool {
        true
    }

    /// The wait before [`Self::thread_id`], such as for fetching a key. It has to end within the time limit of a
    /// request.
    fn prepare(&self, _request: &HttpRequest) -> Option<BoxFuture<'static, ()>> {
        None
    }

    /// The thread of the request.
    ///
    /// # Errors
    /// [`ProviderError`] when the caller is not known: the request is then refused with 401.
    fn thread_id(
        &self,
        request: &HttpRequest,
        proxies: &TrustedProxies,
    ) -> Result<ThreadId, ProviderError>;

    /// When the credential of a request expires, for streams that would outlive it: in the past, if it is rejected now. Returns
    /// `None` if it does not expire.
    fn valid_until(&self, _request: &HttpRequest) -> Option<SystemTime> {
        None
    }
}

/// Why a provider does not know the caller.
#[derive(Debug, thiserror::Error)]
pub enum ProviderError {
    /// The request has no credential.
    #[error("the request has no credential")]
    Missing,
    /// It says so in a way that is not believed.
    #[error("the credential of the request is rejected")]
    Untrusted(#[source] Option<Box<dyn Error + Send + Sync>>),
    /// It cannot be checked now, but perhaps in a moment: the request is then refused with 503.
    #[error("the keys that verify callers are not loaded yet")]
    Unavailable,
}
