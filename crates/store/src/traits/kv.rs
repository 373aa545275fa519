//! Entries in namespaces: data of applications that outlives threads.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;

use crate::{Answered, StoreError, WriteError};
pub use threadkeep_domain::kv::entry::{Entry, EntryHead, NewEntry, Put};
pub use threadkeep_domain::kv::space::{IdleEnd, NamespaceChange, NamespacePlace, NamespaceRecord};
use threadkeep_domain::{EntryKey, IdempotencyKey, Namespace, Precondition};

/// For how long a use of a namespace that ends when it is idle may count without being noted: so much later than its
/// idle time it may end. Each process notes one use in that time, however many there are.
pub const NOTED: Duration = Duration::from_secs(2);

/// The effect of a read on an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// Nothing.
    Plain,
    /// Counts as a use. When less than half of its lifetime is left, the entry lives for all of it
    /// again.
    Use,
}

/// Conditions of a write to an entry.
#[derive(Debug, Clone, Copy, Default)]
pub struct EntryTerms {
    /// The condition on the entry.
    pub precondition: Option<Precondition>,
    /// The identity of a repeat, within the entry.
    pub idempotency: Option<IdempotencyKey>,
    /// Whether a put that finds its precondition unmet is remembered, too: in a request of several puts, that is an
    /// answer like any other.
    pub remembers_mismatch: bool,
}

/// The order of a list of entries, by the bytes of their keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KeyOrder {
    /// The first key first.
    #[default]
    Ascending,
    /// The last key first.
    Descending,
}

/// Which entries of a namespace are listed.
#[derive(Debug, Clone, Copy, Default)]
pub struct EntryRange<'a> {
    /// Their keys begin with this.
    pub prefix: &'a str,
    /// They come after this key, in the order of the list.
    pub after: Option<&'a EntryKey>,
    /// The order of the list.
    pub order: KeyOrder,
}

/// A part of the list of entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryPage {
    /// In the order of the list.
    pub entries: Vec<(EntryKey, EntryHead)>,
    /// The last key of the page; none on the last page.
    pub next: Option<EntryKey>,
}

/// A part of the list of namespaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamespacePage {
    /// The newest first; those of one millisecond by their names, from the last to the first.
    pub records: Vec<NamespaceRecord>,
    /// The place of the next page; none on the last page.
    pub next: Option<NamespacePlace>,
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
///
/// A namespace with an idle time ends when none of its entries was read, listed, put or deleted for that long, or up to
/// [`NOTED`] later, and never earlier. From that moment on it reads as never made, with all that is in it. The next put
/// makes a new namespace, without the settings of the old one.
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

    /// The heads of these entries, in that order; none for one that does not exist.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn get_heads(
        &self,
        namespace: &Namespace,
        keys: &[EntryKey],
    ) -> Result<Vec<Option<EntryHead>>, StoreError>;

    /// Puts an entry whole in the place of another one or of none, in one step with what the
    /// namespace's usage and list say, and with the check of the idempotency key, which comes first. Makes the
    /// namespace.
    ///
    /// # Errors
    /// [`WriteError::Refused`] with [`Refusal::VersionMismatch`] when there is not what the
    /// precondition says, or with [`Refusal::IdempotencyKeyReused`] or [`Refusal::TooManyIdempotencyKeys`]: nothing has
    /// changed. [`WriteError::Store`]: see [`StoreError::is_ambiguous`].
    ///
    /// [`Refusal::VersionMismatch`]: threadkeep_domain::Refusal::VersionMismatch
    /// [`Refusal::IdempotencyKeyReused`]: threadkeep_domain::Refusal::IdempotencyKeyReused
    /// [`Refusal::TooManyIdempotencyKeys`]: threadkeep_domain::Refusal::TooManyIdempotencyKeys
    async fn put_entry(
        &self,
        namespace: &Namespace,
        key: &EntryKey,
        entry: &NewEntry,
        terms: EntryTerms,
    ) -> Result<Answered<Put>, WriteError>;

    /// Deletes an entry, in one step with what the namespace's usage and list say, and with the check of the
    /// idempotency key, which comes first. Whether there was one.
    ///
    /// # Errors
    /// As [`Self::put_entry`].
    async fn delete_entry(
        &self,
        namespace: &Namespace,
        key: &EntryKey,
        terms: EntryTerms,
    ) -> Result<Answered<bool>, WriteError>;

    /// Up to `limit` entries in a range. A page may be shorter, and even empty, although more follow. An entry that
    /// exists all the while is on exactly one page, despite concurrent puts and deletions.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn list_entries(
        &self,
        namespace: &Namespace,
        range: EntryRange<'_>,
        limit: usize,
    ) -> Result<EntryPage, StoreError>;

    /// Makes a namespace, unless there is one, which stays as it is.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn open_namespace(&self, namespace: &Namespace) -> Result<NamespaceRecord, StoreError>;

    /// Changes the settings of a namespace, and makes it, in one step with the check of the idempotency key, which comes
    /// first. An idle time counts from this moment on. Returns the usage, too, as it was right before.
    ///
    /// # Errors
    /// As [`Self::put_entry`].
    async fn set_namespace(
        &self,
        namespace: &Namespace,
        change: NamespaceChange,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<Answered<(NamespaceRecord, Usage)>, WriteError>;

    /// A namespace; none when nothing was ever put there, or it was deleted since, or ended.
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
    /// left, and a repeat continues. The idempotency key is checked first, and the answer is remembered at the end: a
    /// repeat after that deletes nothing that was put since.
    ///
    /// # Errors
    /// [`WriteError::Refused`] with [`Refusal::IdempotencyKeyReused`] or [`Refusal::TooManyIdempotencyKeys`], or
    /// [`WriteError::Store`].
    ///
    /// [`Refusal::IdempotencyKeyReused`]: threadkeep_domain::Refusal::IdempotencyKeyReused
    /// [`Refusal::TooManyIdempotencyKeys`]: threadkeep_domain::Refusal::TooManyIdempotencyKeys
    async fn delete_namespace(
        &self,
        namespace: &Namespace,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<Answered<u64>, WriteError>;

    /// Notes that a request of several writes to a namespace begins, each of which has its own identity of a repeat.
    /// Whether it began before.
    ///
    /// # Errors
    /// As [`Self::delete_namespace`].
    async fn begin_writes(
        &self,
        namespace: &Namespace,
        idempotency: IdempotencyKey,
    ) -> Result<bool, WriteError>;
}
