use std::fmt;

use async_trait::async_trait;

use crate::StoreError;

/// A list, or one owner's part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Listing<'a> {
    /// The name: 1 to 64 characters of `[A-Za-z0-9._-]`.
    pub name: &'a str,
    /// The owner of the part, in free text; `None` for the whole list.
    pub owner: Option<&'a str>,
}

/// Names in the order in which they were added, whether or not they still exist. Readers check, and remove deleted ones.
#[async_trait]
pub trait Listings: fmt::Debug + Send + Sync {
    /// Adds a member to a list and to its owner's part at `at_ms`, with the next check at `look_ms`, both in Unix
    /// milliseconds. A member that is already listed keeps its position. Idempotent.
    async fn list_add(
        &self,
        listing: &Listing<'_>,
        member: &str,
        at_ms: u64,
        look_ms: u64,
    ) -> Result<(), StoreError>;

    /// Returns up to `limit` members from `offset`, newest first.
    async fn list_page(
        &self,
        listing: &Listing<'_>,
        offset: u64,
        limit: usize,
    ) -> Result<Vec<String>, StoreError>;

    /// Removes members from a list and from their owners' parts.
    async fn list_remove(&self, name: &str, members: &[String]) -> Result<(), StoreError>;

    /// Returns up to `limit` members whose next check was due by `by_ms`, the most overdue first.
    async fn list_due(
        &self,
        name: &str,
        by_ms: u64,
        limit: usize,
    ) -> Result<Vec<String>, StoreError>;

    /// Reschedules the next checks of members that are still listed.
    async fn list_look_again(
        &self,
        name: &str,
        members: &[(String, u64)],
    ) -> Result<(), StoreError>;
}
