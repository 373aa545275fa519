//! Keys of back ends.

use std::fmt;
use std::sync::Arc;

use actix_web::http::header::HeaderMap;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::bearer::bearer;
use super::rights::Rights;

/// The name and the rights of an API key. Clones share them.
#[derive(Debug, Clone)]
pub struct ApiKey {
    /// The name, for logs and metrics.
    pub name: Arc<str>,
    /// The calls that it may make.
    pub rights: Rights,
}

/// The API keys of a deployment.
#[derive(Debug, Clone, Default)]
pub struct ApiKeys(Arc<[Known]>);

/// A key, by the digest of its secret.
struct Known {
    digest: [u8; 32],
    key: ApiKey,
}

impl fmt::Debug for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.key.fmt(f)
    }
}

impl ApiKey {
    /// The key of that name, with all rights.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self {
            name: name.into(),
            rights: Rights::default(),
        }
    }
}

impl ApiKeys {
    /// These keys, each with its secret.
    #[must_use]
    pub fn new<'a>(keys: impl IntoIterator<Item = (ApiKey, &'a str)>) -> Self {
        let known = |(key, secret): (ApiKey, &str)| Known {
            digest: Sha256::digest(secret).into(),
            key,
        };
        Self(keys.into_iter().map(known).collect())
    }

    /// Whether there are no keys, so that no caller is a back end.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The key in `Authorization: Bearer <api key>`, if it is one of these. Digests are compared, in
    /// constant time, so that neither length nor prefix shows.
    #[must_use]
    pub fn verify(&self, headers: &HeaderMap) -> Option<&ApiKey> {
        self.find(bearer(headers)?.as_bytes())
    }

    /// The key with that secret, compared as in [`Self::verify`].
    #[must_use]
    pub fn find(&self, secret: &[u8]) -> Option<&ApiKey> {
        let digest: [u8; 32] = Sha256::digest(secret).into();
        let known = self
            .0
            .iter()
            .find(|known| bool::from(known.digest.ct_eq(&digest)));
        known.map(|known| &known.key)
    }
}
