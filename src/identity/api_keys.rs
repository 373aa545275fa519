//! Keys of back ends, which see all threads.

use std::fmt;
use std::sync::Arc;

use actix_web::http::header::{AUTHORIZATION, HeaderMap};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// An api key by name. It is kept as a digest.
#[derive(Clone)]
pub struct ApiKey {
    name: Arc<str>,
    digest: [u8; 32],
}

/// The api keys of a deployment.
#[derive(Debug, Clone, Default)]
pub struct ApiKeys(Arc<[ApiKey]>);

impl ApiKey {
    /// A key of that name.
    #[must_use]
    pub fn new(name: &str, secret: &[u8]) -> Self {
        Self {
            name: name.into(),
            digest: Sha256::digest(secret).into(),
        }
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiKey")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl ApiKeys {
    /// These keys.
    #[must_use]
    pub fn new(keys: Vec<ApiKey>) -> Self {
        Self(keys.into())
    }

    /// Whether there are no keys, so that no caller is a back end.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The name of the key in `Authorization: Bearer <api key>`, if it is one of these. Digests
    /// are compared, in constant time, so that neither length nor prefix shows.
    #[must_use]
    pub fn verify(&self, headers: &HeaderMap) -> Option<Arc<str>> {
        let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
        let (scheme, secret) = value.split_once(' ')?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        self.name_of(secret.trim().as_bytes())
    }

    /// The name of the key with that secret, compared as in [`Self::verify`].
    #[must_use]
    pub fn name_of(&self, secret: &[u8]) -> Option<Arc<str>> {
        let digest: [u8; 32] = Sha256::digest(secret).into();
        self.0
            .iter()
            .find(|key| bool::from(key.digest.ct_eq(&digest)))
            .map(|key| Arc::clone(&key.name))
    }
}
