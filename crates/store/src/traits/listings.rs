use std::fmt;

use async_trait::async_trait;

use crate::StoreError;

/// A list of names, or the part of the list that belongs to one owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Listing<'a> {
    /// The name: 1 to 64 characters from `[A-Za-z0-9._-]`.
    pub name: &'a str,
    /// The owner of the part, as free text; `None` for the whole list.
    pub owner: Option<&'a str>,
}

/// Lists of names, in the order in which they were added. A listed object may no longer exist, so readers must check
/// each object, and remove the names of deleted objects.
#[async_trait]
pub trait Listings: fmt::Debug + Send + Sync {
    /// Adds a member to a list and to its owner's part. `at_ms` is the time of the addition and `check_ms` is the time
    /// of the next check, both in Unix milliseconds. A member that is already listed keeps its position. Idempotent.
    async fn list_add(
        &self,
        listing: &Listing<'_>,
        member: &str,
        at_ms: u64,
        check_ms: u64,
    ) -> Result<(), StoreError>;

    /// Returns up to `limit` members from `offset`, newest first.
    async fn list_page(
        &self,
        listing: &Listing<'_>,
        offset: u64,
        limit: usize,
    ) -> Result<Vec<String>, StoreError>;

    /// Removes members from a list and from the parts of their owners.
    async fn list_remove(&self, name: &str, members: &[String]) -> Result<(), StoreError>;

    /// Returns up to `limit` members whose next check was due at `by_ms` or earlier, most overdue first.
    async fn list_due(
        &self,
        name: &str,
        by_ms: u64,
        limit: usize,
    ) -> Result<Vec<String>, StoreError>;

    /// Reschedules the next checks of those members that are still listed.
    async fn list_reschedule(
        &self,
        name: &str,
        members: &[(String, u64)],
    ) -> Result<(), StoreError>;
}
