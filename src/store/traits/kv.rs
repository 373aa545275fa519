//! Entries in namespaces: data of applications that outlives threads.

use std::fmt;

use async_trait::async_trait;
use bytes::Bytes;

use crate::domain::{
    ContentEncoding, ContentType, EntryKey, Lifetime, Namespace, Precondition, Stamp,
};
use crate::store::{StoreError, WriteError};

/// All about an entry but its body and its uses. Times are milliseconds of the Unix epoch, by the
/// store's clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryHead {
    /// Version, which is 1 when the entry is made and +1 for each put, and life, by which the tag of
    /// an entry that was deleted or expired never matches a later one of its key.
    pub stamp: Stamp,
    /// Bytes of the body.
    pub size_bytes: u64,
    /// The type of the body.
    pub content_type: ContentType,
    /// How it is encoded, if at all.
    pub content_encoding: Option<ContentEncoding>,
    /// When its first put came.
    pub created_ms: u64,
    /// When its last put came.
    pub updated_ms: u64,
    /// How long it was to live at its last put.
    pub lifetime: Lifetime,
    /// When it ends, if ever.
    pub expires_ms: Option<u64>,
}

/// An entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// All but the body and the uses.
    pub head: EntryHead,
    /// How often it was read by [`Reading::Use`] since it was made, this time included. A read that
    /// is repeated after a broken connection may count twice.
    pub uses: u64,
    /// When it was last put or used, this time included.
    pub last_used_ms: u64,
    /// The bytes, as they came.
    pub body: Bytes,
}

/// The effect of a read on an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// Nothing.
    Plain,
    /// Counts as a use. When less than half of its lifetime is left, the entry lives for all of it
    /// again.
    Use,
}

/// An entry to be put.
#[derive(Debug, Clone)]
pub struct NewEntry {
    /// The bytes.
    pub body: Bytes,
    /// Its type.
    pub content_type: ContentType,
    /// How they are encoded, if at all.
    pub content_encoding: Option<ContentEncoding>,
    /// The lifetime; by default that of its namespace.
    pub lifetime: Option<Lifetime>,
    /// How long it lives if its namespace says nothing.
    pub default_lifetime: Lifetime,
}

/// The receipt of a put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Put {
    /// Version and life; version 1: there was no such entry.
    pub stamp: Stamp,
    /// When it ends, if ever.
    pub expires_ms: Option<u64>,
}

/// A part of the list of entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryPage {
    /// By the bytes of their keys.
    pub entries: Vec<(EntryKey, EntryHead)>,
    /// The last key of the page; none on the last page.
    pub next: Option<EntryKey>,
}

/// A namespace, as it was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamespaceRecord {
    /// Which.
    pub namespace: Namespace,
    /// When it was made, in milliseconds of the Unix epoch.
    pub created_ms: u64,
    /// The lifetime of entries that are put without one.
    pub default_lifetime: Option<Lifetime>,
}

/// A part of the list of namespaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamespacePage {
    /// The newest first; those of one millisecond by their names, from the last to the first.
    pub records: Vec<NamespaceRecord>,
    /// The place of the next page; none on the last page.
    pub next: Option<NamespacePlace>,
}

/// A place in the list of namespaces.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NamespacePlace {
    /// When it was made.
    pub created_ms: u64,
    /// Which it is.
    pub namespace: Namespace,
}

/// The usage of a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Number of entries.
    pub entries: u64,
    /// Bytes of their bodies.
    pub bytes: u64,
    /// When an entry was last put or used; may go back when entries expire; none without entries.
    pub last_used_ms: Option<u64>,
}

/// Entries by namespace and key.
///
/// From the millisecond at which it expires, an entry reads as never put and counts for nothing. Expiry follows the
/// store's own clock.
#[async_trait]
pub trait Namespaces: fmt::Debug + Send + Sync {
    /// An entry, if it exists. The effect of the read happens in the same step in which the entry is found to exist;
    /// the returned body may be that of a put right after it.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn get_entry(
        &self,
        namespace: &Namespace,
        key: &EntryKey,
        reading: Reading,
    ) -> Result<Option<Entry>, StoreError>;

    /// Puts an entry whole in the place of another one or of none, in one step with what the
    /// namespace's usage and list say. Makes the namespace.
    ///
    /// # Errors
    /// [`WriteError::Refused`] with [`Refusal::VersionMismatch`] when there is not what the
    /// precondition says: nothing has changed. [`WriteError::Store`]: see
    /// [`StoreError::is_ambiguous`].
    ///
    /// [`Refusal::VersionMismatch`]: crate::domain::Refusal::VersionMismatch
    async fn put_entry(
        &self,
        namespace: &Namespace,
        key: &EntryKey,
        entry: &NewEntry,
        precondition: Option<Precondition>,
    ) -> Result<Put, WriteError>;

    /// Deletes an entry, in one step with what the namespace's usage and list say. Whether there was
    /// one.
    ///
    /// # Errors
    /// As [`Self::put_entry`].
    async fn delete_entry(
        &self,
        namespace: &Namespace,
        key: &EntryKey,
        precondition: Option<Precondition>,
    ) -> Result<bool, WriteError>;

    /// Up to `limit` entries whose keys begin with `prefix`, in the order of the bytes of their keys, after a key if
    /// one is given. A page may be shorter, and even empty, although more follow. An entry that exists all the while
    /// is on exactly one page, despite concurrent puts and deletions.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn list_entries(
        &self,
        namespace: &Namespace,
        prefix: &str,
        after: Option<&EntryKey>,
        limit: usize,
    ) -> Result<EntryPage, StoreError>;

    /// Makes a namespace, unless there is one, which stays as it is.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn open_namespace(&self, namespace: &Namespace) -> Result<NamespaceRecord, StoreError>;

    /// Gives a namespace that lifetime for entries put without one from now on, or takes it away,
    /// and makes the namespace.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn set_default_lifetime(
        &self,
        namespace: &Namespace,
        lifetime: Option<Lifetime>,
    ) -> Result<NamespaceRecord, StoreError>;

    /// A namespace; none when nothing was ever put there, or it was deleted since.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn get_namespace(
        &self,
        namespace: &Namespace,
    ) -> Result<Option<NamespaceRecord>, StoreError>;

    /// Up to `limit` namespaces, newest first, after a place if one is given.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn list_namespaces(
        &self,
        after: Option<&NamespacePlace>,
        limit: usize,
    ) -> Result<NamespacePage, StoreError>;

    /// The usage of each of these namespaces, exact without concurrent writes.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn measure(&self, namespaces: &[Namespace]) -> Result<Vec<Usage>, StoreError>;

    /// Deletes a namespace with all its entries, and returns their number. It is not a single step: entries go in
    /// batches, then the namespace, then entries that were put meanwhile. An entry that is put while this runs is
    /// deleted, or it stays and creates the namespace again. If this fails, or its caller is gone, some entries are
    /// left, and a repeat continues.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn delete_namespace(&self, namespace: &Namespace) -> Result<u64, StoreError>;
}
