use actix_web::HttpRequest;
use actix_web::http::header::HeaderName;

use super::{ProviderError, ThreadIdProvider, TrustedProxies};
use threadkeep_domain::{KeyRing, SigningKey, ThreadId};

/// Derives thread ids from a header's value with a keyed hash. Accepts the header only from a trusted proxy.
#[derive(Debug)]
pub struct TrustedHeader {
    name: HeaderName,
    ring: KeyRing,
}

impl TrustedHeader {
    /// Creates a provider. `secret` must not be a signing key: signing keys rotate, but a new secret changes every
    /// caller's thread.
    #[must_use]
    pub fn new(name: HeaderName, secret: &[u8]) -> Self {
        let key = SigningKey::new("identity", secret);
        Self {
            name,
            ring: KeyRing::new(vec![key]).expect("the ring has a key"),
        }
    }
}

impl ThreadIdProvider for TrustedHeader {
    fn thread_id(
        &self,
        request: &HttpRequest,
        proxies: &TrustedProxies,
    ) -> Result<ThreadId, ProviderError> {
        if !proxies.has_sent(request) {
            return Err(ProviderError::Untrusted(None));
        }
        let mut values = request.headers().get_all(&self.name);
        match (values.next(), values.next()) {
            (Some(value), None) if !value.is_empty() => {
                Ok(self.ring.derive("header", &[value.as_bytes()]))
            }
            (Some(value), None) if value.is_empty() => Err(ProviderError::Missing),
            (None, _) => Err(ProviderError::Missing),
            _ => Err(ProviderError::Untrusted(None)),
        }
    }
}
