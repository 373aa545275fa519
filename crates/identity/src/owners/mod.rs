mod header;
#[cfg(feature = "jwt")]
mod jwt;

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use actix_web::HttpRequest;
use futures_util::future::BoxFuture;

use super::{ProviderError, TrustedProxies};
use threadkeep_domain::Owner;

pub use header::HeaderOwner;
#[cfg(feature = "jwt")]
pub use jwt::JwtOwner;

/// Finds the owner on whose behalf a request acts, such as the logged-in user. Implementations must not block, because
/// they run on the worker that serves the request. Closures implement this trait.
pub trait OwnerProvider: Send + Sync {
    /// See [`ThreadIdProvider::is_ambient`](super::ThreadIdProvider::is_ambient).
    fn is_ambient(&self) -> bool {
        true
    }

    /// Prepares for [`Self::owner`], for example by fetching a key. Must finish within the request's time limit.
    fn prepare(&self, _request: &HttpRequest) -> Option<BoxFuture<'static, ()>> {
        None
    }

    /// Returns the owner, or `None` if the request has no owner credential. The server answers errors with 401 or 503.
    fn owner(
        &self,
        request: &HttpRequest,
        proxies: &TrustedProxies,
    ) -> Result<Option<Owner>, ProviderError>;

    /// Returns the time at which the credential expires, or `None` if it never expires. Returns a past time if the
    /// credential is invalid. The server ends the caller's streams at that time.
    fn valid_until(&self, _request: &HttpRequest) -> Option<SystemTime> {
        None
    }
}

impl<F> OwnerProvider for F
where
    F: Fn(&HttpRequest) -> Result<Option<Owner>, ProviderError> + Send + Sync,
{
    fn owner(
        &self,
        request: &HttpRequest,
        _: &TrustedProxies,
    ) -> Result<Option<Owner>, ProviderError> {
        self(request)
    }
}

#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Behalf {
    /// A back end, or any caller if no owner provider is configured. May use all threads.
    Anyone,
    /// The given owner, or a caller without an owner.
    Caller(Option<Owner>),
}

#[doc(hidden)]
#[derive(Clone)]
pub struct Owners {
    pub(super) provider: Arc<dyn OwnerProvider>,
    pub(super) required: bool,
}

impl Owners {
    /// Takes owners from `provider`. If `required` is true, requests for threads must name an owner.
    #[must_use]
    pub fn new(provider: impl OwnerProvider + 'static, required: bool) -> Self {
        Self {
            provider: Arc::new(provider),
            required,
        }
    }
}

impl fmt::Debug for Owners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Owners")
            .field("required", &self.required)
            .finish_non_exhaustive()
    }
}

fn parse_owner(text: &str) -> Result<Owner, ProviderError> {
    Owner::new(text).map_err(|error| ProviderError::Untrusted(Some(error.into())))
}
