//! Small records of a deployment, such as its webhook endpoints.

use std::fmt;

use async_trait::async_trait;
use bytes::Bytes;

use crate::StoreError;

/// Named records under a kind. Kind and name have 1 to 64 characters of `[A-Za-z0-9._-]`.
#[async_trait]
pub trait Registry: fmt::Debug + Send + Sync {
    /// All records of a kind, by name.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn records(&self, kind: &str) -> Result<Vec<(String, Bytes)>, StoreError>;

    /// Puts a record in the place of the one that is expected there, or nowhere if none is
    /// expected. False, and nothing is changed, when there is another, or none, or, for a new one,
    /// there are `most` already.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn put_record(
        &self,
        kind: &str,
        name: &str,
        expected: Option<&[u8]>,
        new: &[u8],
        limit: usize,
    ) -> Result<bool, StoreError>;

    /// Deletes a record. Whether there was one.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn delete_record(&self, kind: &str, name: &str) -> Result<bool, StoreError>;
}
