use std::fmt;
use std::time::SystemTime;

use actix_web::HttpRequest;
use futures_util::future::BoxFuture;

use super::{OwnerProvider, parse_owner};
use crate::bearer::bearer;
use crate::jwks::Jwks;
use crate::jwt::{JwtError, TokenKeys};
use crate::verifier::JwtSettings;
use crate::{ProviderError, TrustedProxies};
use threadkeep_domain::Owner;

/// Uses the `sub` claim of the bearer token as the owner. Verifies the token's signature and `exp`.
pub struct JwtOwner {
    keys: TokenKeys,
}

impl JwtOwner {
    /// Verifies tokens with `key`, like [`JwtSubject::new`](crate::JwtSubject::new).
    pub fn new(key: &[u8], settings: &JwtSettings) -> Result<Self, JwtError> {
        let keys = TokenKeys::one(key, settings)?;
        Ok(Self { keys })
    }

    /// Verifies tokens with a set of keys. Run [`Jwks::keep_fresh`] to keep the set up to date.
    #[must_use]
    pub fn from_jwks(keys: Jwks) -> Self {
        Self {
            keys: TokenKeys::Set(keys),
        }
    }
}

impl OwnerProvider for JwtOwner {
    fn is_ambient(&self) -> bool {
        false
    }

    fn prepare(&self, request: &HttpRequest) -> Option<BoxFuture<'static, ()>> {
        self.keys.prepare(request)
    }

    fn owner(
        &self,
        request: &HttpRequest,
        _: &TrustedProxies,
    ) -> Result<Option<Owner>, ProviderError> {
        let Some(token) = bearer(request.headers()) else {
            return Ok(None);
        };
        parse_owner(&self.keys.verify(token)?.subject).map(Some)
    }

    fn valid_until(&self, request: &HttpRequest) -> Option<SystemTime> {
        self.keys.valid_until(request)
    }
}

impl fmt::Debug for JwtOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JwtOwner").finish_non_exhaustive()
    }
}
