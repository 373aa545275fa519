//! Thread ids from elsewhere.

use std::error::Error;
use std::fmt;

use actix_web::HttpRequest;
use futures_util::future::BoxFuture;

use super::proxies::TrustedProxies;
use crate::domain::ThreadId;

/// Finds the thread of a request in another way than by signed ids, such as one thread for each
/// user who is logged in.
///
/// It runs on the worker that serves the request, so it must not block.
pub trait ThreadIdProvider: fmt::Debug + Send + Sync {
    /// Whether a browser shows who is asking by itself, as with a login cookie at the proxy before
    /// us, so that pages of other sites could write in its user's name. Then a write has to come
    /// from the host's own pages or from an allowed origin.
    fn is_ambient(&self) -> bool {
        true
    }

    /// What to wait for before [`Self::thread_id`] is asked, such as for a key to be fetched. It has
    /// to end within the time that a request may take.
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
}

/// Why a provider does not know the caller.
#[derive(Debug, thiserror::Error)]
pub enum ProviderError {
    /// The request says nothing of who is asking.
    #[error("the request does not say who is asking")]
    Missing,
    /// It says so in a way that is not believed.
    #[error("the request's word on who is asking is not believed")]
    Untrusted(#[source] Option<Box<dyn Error + Send + Sync>>),
    /// It cannot be checked now, but perhaps in a moment: the request is then refused with 503.
    #[error("what callers are verified with is not there yet")]
    Unavailable,
}
