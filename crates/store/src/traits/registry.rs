use std::fmt;

use async_trait::async_trait;
use bytes::Bytes;

use crate::StoreError;

/// Named records of a deployment, such as webhook endpoints. A kind or name consists of 1 to 64 characters from
/// `[A-Za-z0-9._-]`.
#[async_trait]
pub trait Registry: fmt::Debug + Send + Sync {
    /// Returns all records of a kind, sorted by name.
    async fn records(&self, kind: &str) -> Result<Vec<(String, Bytes)>, StoreError>;

    /// Replaces the record if it equals `expected`, or creates a record if `expected` is `None`. Returns false and
    /// changes nothing if the stored record differs, or if there would be more than `limit` records of this kind.
    async fn put_record(
        &self,
        kind: &str,
        name: &str,
        expected: Option<&[u8]>,
        new: &[u8],
        limit: usize,
    ) -> Result<bool, StoreError>;

    /// Deletes a record. Returns whether it existed.
    async fn delete_record(&self, kind: &str, name: &str) -> Result<bool, StoreError>;
}
