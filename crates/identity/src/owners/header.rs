//! Owners from a header that a trusted proxy sets.

use actix_web::HttpRequest;
use actix_web::http::header::HeaderName;

use super::{OwnerProvider, named};
use crate::{ProviderError, TrustedProxies};
use threadkeep_domain::Owner;

/// The value of a header as the owner. Only a trusted proxy's header counts, since anyone can send one.
#[derive(Debug)]
pub struct HeaderOwner {
    name: HeaderName,
}

impl HeaderOwner {
    /// Owners from that header.
    #[must_use]
    pub fn new(name: HeaderName) -> Self {
        Self { name }
    }
}

impl OwnerProvider for HeaderOwner {
    fn owner(
        &self,
        request: &HttpRequest,
        proxies: &TrustedProxies,
    ) -> Result<Option<Owner>, ProviderError> {
        let mut values = request.headers().get_all(&self.name);
        let value = match (values.next(), values.next()) {
            (None, _) => return Ok(None),
            (Some(value), None) if proxies.has_sent(request) => value,
            _ => return Err(ProviderError::Untrusted(None)),
        };
        if value.is_empty() {
            return Ok(None);
        }
        let text = str::from_utf8(value.as_bytes());
        named(text.map_err(|error| ProviderError::Untrusted(Some(error.into())))?).map(Some)
    }
}
