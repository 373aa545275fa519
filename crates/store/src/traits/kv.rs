use std::fmt;
use std::time::Duration;

use async_trait::async_trait;

use crate::{Answered, StoreError, WriteError};
pub use threadkeep_domain::kv::entry::{Entry, EntryHead, NewEntry, Put};
pub use threadkeep_domain::kv::space::{
    IdleEnd, NamespaceChange, NamespacePosition, NamespaceRecord,
};
use threadkeep_domain::{EntryKey, IdempotencyKey, Namespace, Precondition};

/// Interval at which a process records uses of a namespace. Because not every use is recorded, a namespace ends up to
/// `USE_RECORDED_EVERY` late, so that it never ends early.
pub const USE_RECORDED_EVERY: Duration = Duration::from_secs(2);

/// The effect of a read on an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// No effect.
    Plain,
    /// The read counts as a use. If less than half of the lifetime remains, the entry gets its full lifetime again.
    Use,
}

/// Conditions of a write to an entry.
#[derive(Debug, Clone, Copy, Default)]
pub struct EntryTerms {
    /// The precondition that the entry must meet.
    pub precondition: Option<Precondition>,
    /// The idempotency key, unique within the entry.
    pub idempotency: Option<IdempotencyKey>,
    /// True if a failed precondition is stored as the answer under the idempotency key. Set for puts in a batch.
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
    /// The namespaces, newest first. Namespaces that were created at the same time are in descending order by name.
    pub records: Vec<NamespaceRecord>,
    /// The cursor of the next page; `None` on the last page.
    pub next: Option<NamespacePosition>,
}

/// The usage of a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Number of entries.
    pub entries: u64,
    /// Total size of the bodies in bytes.
    pub bytes: u64,
    /// Time at which an entry was last put or used, in Unix milliseconds; `None` if there are no entries. The time can
    /// decrease, because expired entries no longer count.
    pub last_used_ms: Option<u64>,
}

/// Stores entries by namespace and key.
///
/// Once an entry has expired by the store's clock, it appears as if it had never been put, and is no longer counted.
///
/// A namespace ends when no entry has been read, listed, put or deleted during its idle time. It never ends early, but
/// its end can be delayed by up to [`USE_RECORDED_EVERY`]. A namespace that has ended appears as if it had never been
/// created. The next put creates it with default settings.
#[async_trait]
pub trait Namespaces: fmt::Debug + Send + Sync {
    /// Returns an entry. A single atomic step checks that the entry exists and applies `reading`. The returned body may
    /// be newer than that step.
    async fn get_entry(
        &self,
        namespace: &Namespace,
        key: &EntryKey,
        reading: Reading,
    ) -> Result<Option<Entry>, StoreError>;

    /// Returns entries without their bodies, in the order of `keys`, with `None` for each entry that does not exist.
    async fn get_heads(
        &self,
        namespace: &Namespace,
        keys: &[EntryKey],
    ) -> Result<Vec<Option<EntryHead>>, StoreError>;

    /// Creates or replaces an entry, and creates its namespace if necessary. The same atomic step first checks the
    /// idempotency key, then the precondition, and updates the namespace's usage and entry list.
    async fn put_entry(
        &self,
        namespace: &Namespace,
        key: &EntryKey,
        entry: &NewEntry,
        terms: EntryTerms,
    ) -> Result<Answered<Put>, WriteError>;

    /// Deletes an entry, with the same checks and atomicity as [`Self::put_entry`]. Returns whether the entry existed.
    async fn delete_entry(
        &self,
        namespace: &Namespace,
        key: &EntryKey,
        terms: EntryTerms,
    ) -> Result<Answered<bool>, WriteError>;

    /// Returns up to `limit` entries in `range`. A page may be short or empty even if more pages follow. An entry that
    /// exists during the whole listing appears on exactly one page, despite concurrent puts and deletions.
    async fn list_entries(
        &self,
        namespace: &Namespace,
        range: EntryRange<'_>,
        limit: usize,
    ) -> Result<EntryPage, StoreError>;

    /// Creates a namespace unless it exists, and returns its record.
    async fn open_namespace(&self, namespace: &Namespace) -> Result<NamespaceRecord, StoreError>;

    /// Changes the settings of a namespace, and creates the namespace if necessary. The same atomic step first checks
    /// the idempotency key. A new idle time is counted from this call. Also returns the usage just before the change.
    async fn set_namespace(
        &self,
        namespace: &Namespace,
        change: NamespaceChange,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<Answered<(NamespaceRecord, Usage)>, WriteError>;

    /// Returns a namespace, or `None` if it was never created, was deleted, or has ended.
    async fn get_namespace(
        &self,
        namespace: &Namespace,
    ) -> Result<Option<NamespaceRecord>, StoreError>;

    /// Returns up to `limit` namespaces after the cursor `after`, newest first.
    async fn list_namespaces(
        &self,
        after: Option<&NamespacePosition>,
        limit: usize,
    ) -> Result<NamespacePage, StoreError>;

    /// Returns the usage of each namespace. The numbers are exact unless there are concurrent writes.
    async fn measure(&self, namespaces: &[Namespace]) -> Result<Vec<Usage>, StoreError>;

    /// Deletes a namespace and returns the number of deleted entries.
    ///
    /// The deletion is not atomic. The call deletes entries in batches, then the namespace, then entries that were put
    /// in the meantime. An entry that is put during the call may survive, and may create the namespace again.
    ///
    /// If the call fails or is dropped, repeating it resumes the deletion. The idempotency key is checked first, and
    /// the answer is remembered at the end, so repeating a completed deletion does not delete newer entries.
    async fn delete_namespace(
        &self,
        namespace: &Namespace,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<Answered<u64>, WriteError>;

    /// Records the start of a batch of writes that each have their own idempotency key. Returns whether the batch had
    /// already started.
    async fn begin_writes(
        &self,
        namespace: &Namespace,
        idempotency: IdempotencyKey,
    ) -> Result<bool, WriteError>;
}
