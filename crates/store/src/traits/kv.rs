use std::fmt;
use std::time::Duration;

use async_trait::async_trait;

use crate::{Answered, StoreError, WriteError};
pub use threadkeep_domain::kv::entry::{Entry, EntryHead, NewEntry, Put};
pub use threadkeep_domain::kv::space::{IdleEnd, NamespaceChange, NamespacePlace, NamespaceRecord};
use threadkeep_domain::{EntryKey, IdempotencyKey, Namespace, Precondition};

/// How long after its idle time a namespace may end. Each process records at most one use of a namespace per `NOTED`.
pub const NOTED: Duration = Duration::from_secs(2);

/// The effect of a read on an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// No effect.
    Plain,
    /// Counts as a use: an entry with less than half of its lifetime left gets its full lifetime again.
    Use,
}

/// Conditions of a write to an entry.
#[derive(Debug, Clone, Copy, Default)]
pub struct EntryTerms {
    /// The precondition, checked against the entry.
    pub precondition: Option<Precondition>,
    /// The idempotency key, unique within the entry.
    pub idempotency: Option<IdempotencyKey>,
    /// Whether a failed precondition is remembered as the answer. Batch puts set this.
    pub remembers_mismatch: bool,
}

/// The order of listed entries: bytewise by key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KeyOrder {
    /// Smallest key first.
    #[default]
    Ascending,
    /// Largest key first.
    Descending,
}

/// The entries of a namespace to list.
#[derive(Debug, Clone, Copy, Default)]
pub struct EntryRange<'a> {
    /// The prefix that keys must have.
    pub prefix: &'a str,
    /// The key after which the list starts.
    pub after: Option<&'a EntryKey>,
    /// The sort order.
    pub order: KeyOrder,
}

/// One page of entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryPage {
    /// Keys and heads, sorted.
    pub entries: Vec<(EntryKey, EntryHead)>,
    /// The last key of this page; `None` on the last page.
    pub next: Option<EntryKey>,
}

/// One page of namespaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamespacePage {
    /// Newest first. Namespaces created in the same millisecond are in descending order of their names.
    pub records: Vec<NamespaceRecord>,
    /// The cursor of the next page; `None` on the last page.
    pub next: Option<NamespacePlace>,
}

/// The usage of a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Number of entries.
    pub entries: u64,
    /// Total size of the bodies in bytes.
    pub bytes: u64,
    /// When an entry was last put or used. May decrease when entries expire; `None` without entries.
    pub last_used_ms: Option<u64>,
}

/// Entries by namespace and key.
///
/// An entry that expires reads as never put and is not counted from that millisecond on, by the store's clock.
///
/// A namespace with an idle time ends once none of its entries was read, listed, put or deleted during it: never earlier, up
/// to [`NOTED`] later. It then reads as never created. The next put creates a namespace with default settings.
#[async_trait]
pub trait Namespaces: fmt::Debug + Send + Sync {
    /// Returns an entry. `reading` takes effect atomically with the check that the entry exists; the body may be newer.
    async fn get_entry(
        &self,
        namespace: &Namespace,
        key: &EntryKey,
        reading: Reading,
    ) -> Result<Option<Entry>, StoreError>;

    /// Returns the heads of entries in the order of `keys`; `None` for an entry that does not exist.
    async fn get_heads(
        &self,
        namespace: &Namespace,
        keys: &[EntryKey],
    ) -> Result<Vec<Option<EntryHead>>, StoreError>;

    /// Creates or replaces an entry, and creates its namespace. Checks the idempotency key, then the precondition, and
    /// updates the namespace's usage and list, all atomically.
    async fn put_entry(
        &self,
        namespace: &Namespace,
        key: &EntryKey,
        entry: &NewEntry,
        terms: EntryTerms,
    ) -> Result<Answered<Put>, WriteError>;

    /// Deletes an entry, with the same checks and atomicity as [`Self::put_entry`]. Returns whether it existed.
    async fn delete_entry(
        &self,
        namespace: &Namespace,
        key: &EntryKey,
        terms: EntryTerms,
    ) -> Result<Answered<bool>, WriteError>;

    /// Returns up to `limit` entries of `range`. A page may be short or empty before the end of the list. An entry that
    /// exists throughout appears on exactly one page, despite concurrent puts and deletions.
    async fn list_entries(
        &self,
        namespace: &Namespace,
        range: EntryRange<'_>,
        limit: usize,
    ) -> Result<EntryPage, StoreError>;

    /// Creates a namespace unless it exists, and returns its record.
    async fn open_namespace(&self, namespace: &Namespace) -> Result<NamespaceRecord, StoreError>;

    /// Changes the settings of a namespace, creating it if necessary. Checks the idempotency key first, atomically. A new
    /// idle time starts now. Also returns the usage immediately before the change.
    async fn set_namespace(
        &self,
        namespace: &Namespace,
        change: NamespaceChange,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<Answered<(NamespaceRecord, Usage)>, WriteError>;

    /// Returns a namespace; `None` if it was never created, was deleted or has ended.
    async fn get_namespace(
        &self,
        namespace: &Namespace,
    ) -> Result<Option<NamespaceRecord>, StoreError>;

    /// Returns up to `limit` namespaces after the cursor `after`, newest first.
    async fn list_namespaces(
        &self,
        after: Option<&NamespacePlace>,
        limit: usize,
    ) -> Result<NamespacePage, StoreError>;

    /// Returns the usage of each namespace. The numbers are exact unless writes run concurrently.
    async fn measure(&self, namespaces: &[Namespace]) -> Result<Vec<Usage>, StoreError>;

    /// Deletes a namespace and returns the number of deleted entries. Not atomic: deletes entries in batches, then the
    /// namespace, then entries that were put meanwhile; an entry put during the call may also stay and create the namespace
    /// again.
    ///
    /// If the call fails or is dropped, a repeat continues. The idempotency key is checked first and the answer is
    /// remembered at the end, so a later repeat does not delete newer entries.
    async fn delete_namespace(
        &self,
        namespace: &Namespace,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<Answered<u64>, WriteError>;

    /// Records the start of a batch whose writes have idempotency keys of their own. Returns whether it started before.
    async fn begin_writes(
        &self,
        namespace: &Namespace,
        idempotency: IdempotencyKey,
    ) -> Result<bool, WriteError>;
}
