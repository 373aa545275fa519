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
    /// What the body is.
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

/// What a read does to an entry.
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
    /// What they are.
    pub content_type: ContentType,
    /// How they are encoded, if at all.
    pub content_encoding: Option<ContentEncoding>,
    /// How long it lives; none: as its namespace says.
    pub lifetime: Option<Lifetime>,
    /// How long it lives if its namespace says nothing.
    pub default_lifetime: Lifetime,
}

/// What a put answers.
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
    /// The key to go on after; none: there are no more.
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
    /// Where to go on; none: there are no more.
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

/// What is in a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Number of entries.
    pub entries: u64,
    /// Bytes of their bodies.
    pub bytes: u64,
    /// When one was last put or used; it may go back when entries end, and there is none without
    /// entries.
    pub last_used_ms: Option<u64>,
}

/// Entries by namespace and key.
///
/// An entry whose time has passed reads as never put and counts for nothing, at the very
/// millisecond. Expiry goes by the store's own clock.
#[async_trait]
pub trait Namespaces: fmt::Debug + Send + Sync {
    /// An entry; none when there is no such entry. What it does beside reading is done in the same
    /// step in which the entry is found to live; a put that comes right after may be what is read.
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

    /// Entries whose keys begin with `prefix`, after a key if one is given, by the bytes of their
    /// keys, at most so many. A page may be shorter than asked for, and even empty, though more
    /// follow. An entry that is there all the while is on just one of the pages, whatever is put
    /// and deleted meanwhile.
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

    /// Namespaces after a place, if one is given, the newest first, at most so many.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn list_namespaces(
        &self,
        after: Option<&NamespacePlace>,
        limit: usize,
    ) -> Result<NamespacePage, StoreError>;

    /// What is in each of these namespaces: exact when nobody writes meanwhile.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn measure(&self, namespaces: &[Namespace]) -> Result<Vec<Usage>, StoreError>;

    /// Deletes a namespace with all its entries, and answers how many there were. It is no single
    /// step: entries go in batches, then the namespace, then what was put meanwhile and found. One
    /// that is put while this runs is deleted, or it stays and makes the namespace anew. When this
    /// fails, or its caller is gone, some entries are left, and doing it again goes on.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn delete_namespace(&self, namespace: &Namespace) -> Result<u64, StoreError>;
}
