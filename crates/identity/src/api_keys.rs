use std::fmt;
use std::sync::Arc;

use actix_web::http::header::HeaderMap;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::bearer::bearer;
use super::rights::Rights;

/// The name and rights of an API key. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ApiKey {
    /// Name in logs and metrics.
    pub name: Arc<str>,
    /// Allowed calls.
    pub rights: Rights,
}

/// The API keys of a deployment.
#[derive(Debug, Clone, Default)]
pub struct ApiKeys(Arc<[StoredKey]>);

struct StoredKey {
    digest: [u8; 32],
    key: ApiKey,
}

impl fmt::Debug for StoredKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.key.fmt(f)
    }
}

impl ApiKey {
    /// Creates a key with all rights.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self {
            name: name.into(),
            rights: Rights::default(),
        }
    }
}

impl ApiKeys {
    /// Builds the set from keys and their secrets.
    #[must_use]
    pub fn new<'a>(keys: impl IntoIterator<Item = (ApiKey, &'a str)>) -> Self {
        let stored = |(key, secret): (ApiKey, &str)| StoredKey {
            digest: Sha256::digest(secret).into(),
            key,
        };
        Self(keys.into_iter().map(stored).collect())
    }

    /// Returns whether no API keys are configured. If so, callers are never treated as back ends.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the API key that matches the bearer credential. Compares digests in constant time to prevent timing
    /// attacks.
    #[must_use]
    pub fn verify(&self, headers: &HeaderMap) -> Option<&ApiKey> {
        self.find(bearer(headers)?.as_bytes())
    }

    /// Returns the key with the secret `secret`. Compares digests in constant time.
    #[must_use]
    pub fn find(&self, secret: &[u8]) -> Option<&ApiKey> {
        let digest: [u8; 32] = Sha256::digest(secret).into();
        let stored = self
            .0
            .iter()
            .find(|stored| bool::from(stored.digest.ct_eq(&digest)));
        stored.map(|stored| &stored.key)
    }
}
