//! Stores entries in namespaces: application data that outlives threads.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::try_join_all;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};

use crate::ServiceError;
use threadkeep_domain::{
    ContentEncoding, ContentType, EntryKey, EntryPolicy, IdempotencyKey, Lifetime, Namespace,
};
use threadkeep_store::{
    Answered, Entry, EntryPage, EntryRange, EntryTerms, NamespaceChange, NamespacePage,
    NamespacePosition, NamespaceRecord, Namespaces, NewEntry, Put, Reading, StoreError, Usage,
};

/// Number of keys per call during a search.
const KEYS_PER_CALL: usize = 1_000;
/// Maximum number of calls per page of a search.
const CALLS_PER_PAGE_MAX: usize = 4;
/// Number of namespaces whose usage is measured per call. Limited because Redis looks up each namespace in each bucket
/// (store partition): 1,000 namespaces take 200 ms.
const MEASURED_PER_CALL: usize = 250;
/// Maximum number of entries to read concurrently.
const READ_CONCURRENCY: usize = 16;

#[derive(Debug, Clone)]
pub struct NamespaceService {
    pub(super) namespaces: Arc<dyn Namespaces>,
    policy: EntryPolicy,
}

#[derive(Debug, Clone)]
pub struct EntryDraft {
    /// Stored unchanged.
    pub body: Bytes,
    pub content_type: ContentType,
    pub content_encoding: Option<ContentEncoding>,
    /// Default: the namespace's lifetime or, if the namespace has no lifetime, the policy's lifetime.
    pub lifetime: Option<Lifetime>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamespaceView {
    pub record: NamespaceRecord,
    pub usage: Usage,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchPage {
    /// In the byte order of the keys.
    pub entries: Vec<(EntryKey, Entry)>,
    /// The key to continue after; `None` if the search has reached the end.
    pub next: Option<EntryKey>,
}

impl EntryDraft {
    #[must_use]
    pub fn new(content_type: ContentType, body: impl Into<Bytes>) -> Self {
        Self {
            body: body.into(),
            content_type,
            content_encoding: None,
            lifetime: None,
        }
    }
}

impl NamespaceService {
    #[must_use]
    pub fn new(namespaces: Arc<dyn Namespaces>, policy: EntryPolicy) -> Self {
        Self { namespaces, policy }
    }

    /// Returns a copy of this service that uses `policy`. Protocols use such copies to set their own default lifetimes.
    #[must_use]
    pub fn under(&self, policy: EntryPolicy) -> Self {
        Self {
            namespaces: Arc::clone(&self.namespaces),
            policy,
        }
    }

    #[must_use]
    pub fn policy(&self) -> &EntryPolicy {
        &self.policy
    }

    pub async fn get(
        &self,
        namespace: &Namespace,
        key: &EntryKey,
        reading: Reading,
    ) -> Result<Entry, ServiceError> {
        let entry = self.namespaces.get_entry(namespace, key, reading).await?;
        entry.ok_or(ServiceError::EntryNotFound)
    }

    /// Creates or replaces an entry atomically. Creates the namespace if it does not exist.
    ///
    /// # Errors
    /// [`ServiceError::Refused`] as documented at [`Namespaces::put_entry`].
    pub async fn put(
        &self,
        namespace: &Namespace,
        key: &EntryKey,
        draft: EntryDraft,
        terms: EntryTerms,
    ) -> Result<Answered<Put>, ServiceError> {
        let (limit_bytes, attempted_bytes) = (self.policy.max_bytes, draft.body.len() as u64);
        if attempted_bytes > limit_bytes {
            return Err(ServiceError::EntryTooLarge {
                limit_bytes,
                attempted_bytes,
            });
        }
        let entry = NewEntry {
            body: draft.body,
            content_type: draft.content_type,
            content_encoding: draft.content_encoding,
            lifetime: draft.lifetime,
            default_lifetime: self.policy.lifetime,
        };
        let put = self.namespaces.put_entry(namespace, key, &entry, terms);
        Ok(put.await?)
    }

    /// Deletes an entry. Returns whether it existed.
    pub async fn delete(
        &self,
        namespace: &Namespace,
        key: &EntryKey,
        terms: EntryTerms,
    ) -> Result<Answered<bool>, ServiceError> {
        let deleted = self.namespaces.delete_entry(namespace, key, terms);
        Ok(deleted.await?)
    }

    /// Lists up to `limit` entries in `range`. Returns the last key as a cursor if more entries follow. A page may have
    /// fewer than `limit` entries.
    pub async fn list(
        &self,
        namespace: &Namespace,
        range: EntryRange<'_>,
        limit: usize,
    ) -> Result<EntryPage, ServiceError> {
        Ok(self
            .namespaces
            .list_entries(namespace, range, limit)
            .await?)
    }

    /// Finds up to `limit` entries whose keys contain `keyword`, starting after `after`.
    ///
    /// Stops once the bodies found total `max_bytes` or more. Each page examines up to about 4,000 keys, so a page may
    /// be short or empty even if more matching entries follow. Does not extend the entries' lifetimes.
    pub async fn search(
        &self,
        namespace: &Namespace,
        keyword: &str,
        after: Option<&EntryKey>,
        limit: usize,
        max_bytes: u64,
    ) -> Result<SearchPage, ServiceError> {
        let (mut keys, mut bytes): (Vec<EntryKey>, _) = (Vec::new(), 0);
        let mut after = after.cloned();
        let mut calls = 0;
        let next = 'all: loop {
            let range = EntryRange {
                after: after.as_ref(),
                ..EntryRange::default()
            };
            let page = self.list(namespace, range, KEYS_PER_CALL).await?;
            let found = page.entries.into_iter();
            for (key, head) in found.filter(|(key, _)| key.as_str().contains(keyword)) {
                if keys.len() >= limit.max(1) || bytes >= max_bytes.max(1) {
                    break 'all keys.last().cloned();
                }
                bytes += head.size_bytes;
                keys.push(key);
            }
            after = page.next;
            calls += 1;
            if after.is_none() || calls == CALLS_PER_PAGE_MAX {
                break after;
            }
        };
        let read = keys.into_iter().map(async |key| {
            let entry = self.namespaces.get_entry(namespace, &key, Reading::Plain);
            Ok::<_, StoreError>(entry.await?.map(|entry| (key, entry)))
        });
        let read = stream::iter(read).buffered(READ_CONCURRENCY);
        let entries: Vec<_> = read.try_collect().await?;
        Ok(SearchPage {
            // skips entries that were deleted after they were listed
            entries: entries.into_iter().flatten().collect(),
            next,
        })
    }

    /// Returns a namespace, and creates it if it does not exist. An existing namespace remains unchanged.
    pub async fn open(&self, namespace: &Namespace) -> Result<NamespaceRecord, ServiceError> {
        Ok(self.namespaces.open_namespace(namespace).await?)
    }

    /// Changes the settings of a namespace. Creates the namespace if it does not exist.
    pub async fn set_namespace(
        &self,
        namespace: &Namespace,
        change: NamespaceChange,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<Answered<NamespaceView>, ServiceError> {
        let set = self
            .namespaces
            .set_namespace(namespace, change, idempotency);
        let set = set.await?;
        let (record, usage) = set.answer;
        Ok(Answered {
            answer: NamespaceView { record, usage },
            replayed: set.replayed,
        })
    }

    /// Describes the given namespaces, in the given order. Omits namespaces that do not exist.
    pub async fn describe(
        &self,
        namespaces: &[Namespace],
    ) -> Result<Vec<NamespaceView>, ServiceError> {
        let records = namespaces
            .iter()
            .map(|name| self.namespaces.get_namespace(name));
        let records = try_join_all(records).await?;
        self.with_usage(records.into_iter().flatten().collect())
            .await
    }

    /// Lists up to `limit` namespaces with their usage, newest first, starting after `after`. Also returns the cursor
    /// for the next page if more namespaces follow.
    pub async fn list_namespaces(
        &self,
        after: Option<&NamespacePosition>,
        limit: usize,
    ) -> Result<(Vec<NamespaceView>, Option<NamespacePosition>), ServiceError> {
        let page = self.newest(after, limit).await?;
        Ok((self.with_usage(page.records).await?, page.next))
    }

    /// Lists up to `limit` namespaces without their usage, newest first, starting after `after`.
    pub async fn newest(
        &self,
        after: Option<&NamespacePosition>,
        limit: usize,
    ) -> Result<NamespacePage, ServiceError> {
        Ok(self.namespaces.list_namespaces(after, limit).await?)
    }

    pub(super) async fn with_usage(
        &self,
        records: Vec<NamespaceRecord>,
    ) -> Result<Vec<NamespaceView>, ServiceError> {
        let names: Vec<_> = records
            .iter()
            .map(|record| record.namespace.clone())
            .collect();
        let mut usages = Vec::with_capacity(names.len());
        for chunk in names.chunks(MEASURED_PER_CALL) {
            usages.extend(self.namespaces.measure(chunk).await?);
        }
        let views = records.into_iter().zip(usages);
        Ok(views
            .map(|(record, usage)| NamespaceView { record, usage })
            .collect())
    }

    /// Deletes a namespace with all its entries. Returns the number of deleted entries. See
    /// [`Namespaces::delete_namespace`] for concurrent puts and failures.
    pub async fn delete_namespace(
        &self,
        namespace: &Namespace,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<Answered<u64>, ServiceError> {
        let deleted = self.namespaces.delete_namespace(namespace, idempotency);
        Ok(deleted.await?)
    }
}
