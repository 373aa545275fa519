//! The owner on whose behalf a request acts.

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

/// Finds the owner on whose behalf a request acts, such as the logged-in user.
///
/// It runs on the worker that serves the request, so it must not block. A closure of the request is one too, whose
/// credential counts as ambient.
pub trait OwnerProvider: Send + Sync {
    /// Whether a browser adds the credential by itself: see
    /// [`ThreadIdProvider::is_ambient`](super::ThreadIdProvider::is_ambient).
    fn is_ambient(&self) -> bool {
        true
    }

    /// The wait before [`Self::owner`], such as for fetching a key. It has to end within the time limit of a request.
    fn prepare(&self, _request: &HttpRequest) -> Option<BoxFuture<'static, ()>> {
        None
    }

    /// The owner; none if the request shows no credential for one.
    ///
    /// # Errors
    /// [`ProviderError`] when the credential is not accepted: the request is then refused with 401.
    fn owner(
        &self,
        request: &HttpRequest,
        proxies: &TrustedProxies,
    ) -> Result<Option<Owner>, ProviderError>;

    /// When the credential of a request expires, for streams that would outlive it: in the past, if it is rejected now. Returns
    /// `None` if it does not expire.
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

/// On whose behalf a request acts.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Behalf {
    /// A back end, or a caller where owners are not asked for: it may use all threads.
    Anyone,
    /// This owner, or none.
    Caller(Option<Owner>),
}

/// Where owners come from, and whether each request needs one.
#[doc(hidden)]
#[derive(Clone)]
pub struct Owners {
    pub(super) provider: Arc<dyn OwnerProvider>,
    pub(super) required: bool,
}

impl Owners {
    /// Owners of that provider. If `required`, a request for a thread without an owner is refused.
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

/// The owner of that name. A name that fits no owner is not accepted.
fn named(text: &str) -> Result<Owner, ProviderError> {
    Owner::new(text).map_err(|error| ProviderError::Untrusted(Some(error.into())))
}
