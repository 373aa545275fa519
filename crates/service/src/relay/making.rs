//! Creates objects idempotently.

use bytes::Bytes;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use uuid::{Builder, Uuid};

use crate::ServiceError;
use threadkeep_domain::{Fingerprint, Refusal};
use threadkeep_store::{ScopeView, StoreError};

/// Identity of an object to create. A repeated request has the same identity and gets the same object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Creation {
    /// Random, or derived from the idempotency key.
    pub id: Uuid,
    /// Digest of the request; `None` if repeated requests are not recognized.
    pub request: Option<Fingerprint>,
}

impl Creation {
    #[must_use]
    pub fn new() -> Self {
        Self {
            id: Builder::from_random_bytes(rand::random()).into_uuid(),
            request: None,
        }
    }

    /// Derives the id from `entropy`, so that repeated requests are recognized.
    #[must_use]
    pub fn recognized(entropy: [u8; 16], request: Fingerprint) -> Self {
        Self {
            id: Builder::from_random_bytes(entropy).into_uuid(),
            request: Some(request),
        }
    }

    /// Creates the object unless an earlier attempt has created it, and then reads it. Fails with
    /// [`Refusal::IdempotencyKeyReused`] if a different request created the object.
    pub(crate) async fn once(
        &self,
        find: impl AsyncFn() -> Result<Option<ScopeView>, ServiceError>,
        make: impl AsyncFn() -> Result<(), ServiceError>,
    ) -> Result<ScopeView, ServiceError> {
        if self.request.is_some()
            && let Some(view) = find().await?
        {
            return self.same(view);
        }
        match make().await {
            Ok(()) | Err(ServiceError::Refused(Refusal::ScopeExists)) => {}
            Err(error) => return Err(error),
        }
        // if the object is missing, it has just ended
        let view = find().await?.ok_or(Refusal::ScopeNotFound)?;
        self.same(view)
    }

    /// Returns `view` if this request created it. Fails with [`Refusal::IdempotencyKeyReused`] if a different request
    /// created it.
    pub(crate) fn same(&self, view: ScopeView) -> Result<ScopeView, ServiceError> {
        let made = Record::<IgnoredAny>::read(&view)?.request;
        let request = self.request_text();
        if request.is_some() && made != request {
            return Err(Refusal::IdempotencyKeyReused.into());
        }
        Ok(view)
    }

    fn request_text(&self) -> Option<String> {
        self.request.map(|request| hex::encode(request.0))
    }
}

impl Default for Creation {
    fn default() -> Self {
        Self::new()
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Record<R> {
    format: u8,
    /// Fingerprint of the request that created the scope, in hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    request: Option<String>,
    pub(crate) of: R,
}

const FORMAT: u8 = 1;

impl<R> Record<R> {
    pub(crate) fn new(making: &Creation, of: R) -> Self {
        Self {
            format: FORMAT,
            request: making.request_text(),
            of,
        }
    }
}

impl<R: Serialize> Record<R> {
    pub(super) fn to_bytes(&self) -> Bytes {
        let json = serde_json::to_vec(self).expect("a record has text for keys");
        json.into()
    }
}

impl<R: DeserializeOwned> Record<R> {
    pub(crate) fn read(view: &ScopeView) -> Result<Self, StoreError> {
        let corrupt = StoreError::Corrupt("the record of a scope");
        let Some(bytes) = &view.record else {
            return Err(corrupt);
        };
        match serde_json::from_slice::<Self>(bytes) {
            Ok(record) if record.format == FORMAT => Ok(record),
            _ => Err(corrupt),
        }
    }
}
