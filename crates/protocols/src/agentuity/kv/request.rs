use std::borrow::Cow;

use actix_web::web;

use super::super::{Agentuity, AgentuityError};
use crate::frame::Admitted;
use threadkeep_domain::{EntryKey, EntryKeyError, Lifetime, Namespace, NamespaceError};
use threadkeep_http::{Body, EntryContent, path_part};
use threadkeep_identity::Right;
use threadkeep_service::{EntryDraft, NamespaceService};

const TTL: &str = "the ttl must be a number of seconds, 0 for no end";
const UNREADABLE: &str = "the body could not be read";

pub(super) type KvRequest = Admitted<Agentuity>;

impl KvRequest {
    pub(super) fn namespaces(&self) -> &NamespaceService {
        &self.protocol.namespaces
    }

    /// Returns the namespace service. Fails if the API key may not access all namespaces.
    pub(super) fn all_namespaces(&self) -> Result<&NamespaceService, AgentuityError> {
        self.demand(Right::Kv)?;
        Ok(self.namespaces())
    }

    pub(super) fn query(&self) -> &str {
        self.request.query_string()
    }

    /// Returns the namespace in the path. Fails if the API key may not access the namespace.
    pub(super) fn namespace(&self) -> Result<Namespace, AgentuityError> {
        let text = self.part(0).ok_or(NamespaceError::Utf8)?;
        let namespace = Namespace::new(&text)?;
        self.demand(Right::KvOf(namespace.clone()))?;
        Ok(namespace)
    }

    fn demand(&self, right: Right) -> Result<(), AgentuityError> {
        match self.caller.rights.cover(&right) {
            true => Ok(()),
            false => Err(AgentuityError::Forbidden(right)),
        }
    }

    pub(super) fn key(&self) -> Result<EntryKey, AgentuityError> {
        Ok(EntryKey::new(&self.keyword()?)?)
    }

    /// Returns the path segment after the namespace. The segment need not be a valid key.
    pub(super) fn keyword(&self) -> Result<Cow<'_, str>, AgentuityError> {
        Ok(self.part(1).ok_or(EntryKeyError::Utf8)?)
    }

    pub(super) fn draft(&self) -> Result<EntryDraft, AgentuityError> {
        let lifetime = self.lifetime()?;
        let content = EntryContent::of(self.request.headers())?;
        Ok(EntryDraft {
            body: self.body()?,
            content_type: content.content_type,
            content_encoding: content.content_encoding,
            lifetime,
        })
    }

    pub(super) fn body(&self) -> Result<web::Bytes, AgentuityError> {
        match self.body {
            Body::Whole { ref bytes, .. } => Ok(bytes.clone()),
            Body::TooLarge { limit_bytes, .. } => Err(AgentuityError::BodyTooLarge { limit_bytes }),
            Body::Overloaded => Err(AgentuityError::Overloaded),
            Body::Unreadable => Err(AgentuityError::Invalid(UNREADABLE)),
        }
    }

    /// Parses the optional TTL segment: a number of seconds in JavaScript's number format.
    fn lifetime(&self) -> Result<Option<Lifetime>, AgentuityError> {
        if self.request.match_info().get("ttl").is_none() {
            return Ok(None);
        }
        let seconds = self.part(2).and_then(|text| text.parse().ok());
        let lifetime = seconds.and_then(Lifetime::clamped);
        lifetime.map(Some).ok_or(AgentuityError::Invalid(TTL))
    }

    /// Returns the path segment at `index`, where 0 is the namespace.
    fn part(&self, index: usize) -> Option<Cow<'_, str>> {
        let pattern = self.request.match_pattern().unwrap_or_default();
        let (before, _) = pattern.split_once("{namespace").unwrap_or((&pattern, ""));
        path_part(&self.request, before.matches('/').count() + index)
    }
}
