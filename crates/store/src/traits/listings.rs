//! Lists of created objects, for paging through them.

use std::fmt;

use async_trait::async_trait;

use crate::StoreError;

/// A list, or the part of one owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Listing<'a> {
    /// Its name: 1 to 64 characters of `[A-Za-z0-9._-]`.
    pub name: &'a str,
    /// The owner of the part, in free text; none for the whole list.
    pub owner: Option<&'a str>,
}

/// Names in the order in which they were added. A list says what was created, not that it still exists: readers check,
/// and remove deleted objects.
#[async_trait]
pub trait Listings: fmt::Debug + Send + Sync {
    /// Adds a member to a list, and to the part of its owner, as of a time, to be looked at again
    /// by another time; both in milliseconds of the Unix epoch. One that is there keeps its place.
    ///
    /// # Errors
    /// [`StoreError`]; see [`StoreError::is_ambiguous`]. Doing the same again changes nothing.
    async fn list_add(
        &self,
        listing: &Listing<'_>,
        member: &str,
        at_ms: u64,
        look_ms: u64,
    ) -> Result<(), StoreError>;

    /// Up to `limit` members from an offset on, newest first.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn list_page(
        &self,
        listing: &Listing<'_>,
        offset: u64,
        limit: usize,
    ) -> Result<Vec<String>, StoreError>;

    /// Removes members from a list and from the parts of their owners.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn list_remove(&self, name: &str, members: &[String]) -> Result<(), StoreError>;

    /// Up to `limit` members whose next check was due by a time, the most overdue first.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn list_due(
        &self,
        name: &str,
        by_ms: u64,
        limit: usize,
    ) -> Result<Vec<String>, StoreError>;

    /// Has members that are still on the list looked at again by other times.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn list_look_again(
        &self,
        name: &str,
        members: &[(String, u64)],
    ) -> Result<(), StoreError>;
}
