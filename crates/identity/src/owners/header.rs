use actix_web::HttpRequest;
use actix_web::http::header::HeaderName;

use super::{OwnerProvider, parse_owner};
use crate::{ProviderError, TrustedProxies};
use threadkeep_domain::Owner;

/// Uses a header's value as the owner. Accepts the header only from a trusted proxy, because any client could forge it.
#[derive(Debug)]
pub struct HeaderOwner {
    name: HeaderName,
}

impl HeaderOwner {
    /// Reads owners from the header `name`.
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
        parse_owner(text.map_err(|error| ProviderError::Untrusted(Some(error.into())))?).map(Some)
    }
}
