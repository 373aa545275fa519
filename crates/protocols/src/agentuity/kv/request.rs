//! A request with an API key, and its subject.

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

/// A request.
pub(super) type KvRequest = Admitted<Agentuity>;

impl KvRequest {
    pub(super) fn namespaces(&self) -> &NamespaceService {
        &self.protocol.namespaces
    }

    /// The same for a request about all namespaces.
    ///
    /// # Errors
    /// [`AgentuityError::Forbidden`] if the API key has not the right to all of them.
    pub(super) fn all_namespaces(&self) -> Result<&NamespaceService, AgentuityError> {
        self.demand(Right::Kv)?;
        Ok(self.namespaces())
    }

    pub(super) fn query(&self) -> &str {
        self.request.query_string()
    }

    /// The namespace in the path.
    ///
    /// # Errors
    /// [`AgentuityError::Namespace`], or [`AgentuityError::Forbidden`] if the API key has not the right to it.
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

    /// The key after the namespace.
    ///
    /// # Errors
    /// [`AgentuityError::Key`].
    pub(super) fn key(&self) -> Result<EntryKey, AgentuityError> {
        Ok(EntryKey::new(&self.keyword()?)?)
    }

    /// The part of the path in the place of a key, which need not be one.
    ///
    /// # Errors
    /// [`AgentuityError::Key`] if it is not UTF-8.
    pub(super) fn keyword(&self) -> Result<Cow<'_, str>, AgentuityError> {
        Ok(self.part(1).ok_or(EntryKeyError::Utf8)?)
    }

    /// The entry to put.
    ///
    /// # Errors
    /// [`AgentuityError`] of the ttl, the headers or the body.
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

    /// The body.
    ///
    /// # Errors
    /// [`AgentuityError::BodyTooLarge`], [`AgentuityError::Overloaded`], or [`AgentuityError::Invalid`]
    /// when it did not arrive whole.
    pub(super) fn body(&self) -> Result<web::Bytes, AgentuityError> {
        match self.body {
            Body::Whole { ref bytes, .. } => Ok(bytes.clone()),
            Body::TooLarge { limit_bytes, .. } => Err(AgentuityError::BodyTooLarge { limit_bytes }),
            Body::Overloaded => Err(AgentuityError::Overloaded),
            Body::Unreadable => Err(AgentuityError::Invalid(UNREADABLE)),
        }
    }

    /// The seconds after the key, a number as JavaScript writes it, if given.
    fn lifetime(&self) -> Result<Option<Lifetime>, AgentuityError> {
        if self.request.match_info().get("ttl").is_none() {
            return Ok(None);
        }
        let seconds = self.part(2).and_then(|text| text.parse().ok());
        let lifetime = seconds.and_then(Lifetime::clamped);
        lifetime.map(Some).ok_or(AgentuityError::Invalid(TTL))
    }

    /// A part of the path, that of the namespace being 0.
    fn part(&self, index: usize) -> Option<Cow<'_, str>> {
        let pattern = self.request.match_pattern().unwrap_or_default();
        let (before, _) = pattern.split_once("{namespace").unwrap_or((&pattern, ""));
        path_part(&self.request, before.matches('/').count() + index)
    }
}
