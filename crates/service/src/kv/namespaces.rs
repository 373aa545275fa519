//! Entries in namespaces: data of applications that outlives threads.

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
    NamespacePlace, NamespaceRecord, Namespaces, NewEntry, Put, Reading, StoreError, Usage,
};

/// Entries that are looked through at once.
const LISTED: usize = 1_000;
/// Repeats for one page of a search at most.
const LISTED_TIMES: usize = 4;
/// Namespaces that are measured at once. Each is looked up in each bucket, so that a thousand take a
/// Redis a fifth of a second.
const MEASURED: usize = 250;
/// Entries that are read at once.
const READ_AT_ONCE: usize = 16;

/// The namespaces of a store, and what entries may have.
#[derive(Debug, Clone)]
pub struct NamespaceService {
    pub(super) namespaces: Arc<dyn Namespaces>,
    policy: EntryPolicy,
}

/// An entry as an application hands it over.
#[derive(Debug, Clone)]
pub struct EntryDraft {
    /// The bytes, which are kept as they come.
    pub body: Bytes,
    /// Its type.
    pub content_type: ContentType,
    /// How they are encoded, if at all.
    pub content_encoding: Option<ContentEncoding>,
    /// The lifetime of the entry; by default that of its namespace, or else of the policy.
    pub lifetime: Option<Lifetime>,
}

/// A namespace with its usage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamespaceView {
    /// The namespace.
    pub record: NamespaceRecord,
    /// The number and size of its entries.
    pub usage: Usage,
}

/// A page of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchPage {
    /// By the bytes of their keys.
    pub entries: Vec<(EntryKey, Entry)>,
    /// The last key of the page; none if all were searched.
    pub next: Option<EntryKey>,
}

impl EntryDraft {
    /// Bytes of that type, that live as their namespace says.
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
    /// A service over a store, which bounds its own calls.
    #[must_use]
    pub fn new(namespaces: Arc<dyn Namespaces>, policy: EntryPolicy) -> Self {
        Self { namespaces, policy }
    }

    /// The same namespaces under another policy, such as that of a protocol with another default
    /// lifetime.
    #[must_use]
    pub fn under(&self, policy: EntryPolicy) -> Self {
        Self {
            namespaces: Arc::clone(&self.namespaces),
            policy,
        }
    }

    /// Limits and lifetimes.
    #[must_use]
    pub fn policy(&self) -> &EntryPolicy {
        &self.policy
    }

    /// An entry.
    ///
    /// # Errors
    /// [`ServiceError::EntryNotFound`] or [`ServiceError::Store`].
    pub async fn get(
        &self,
        namespace: &Namespace,
        key: &EntryKey,
        reading: Reading,
    ) -> Result<Entry, ServiceError> {
        let entry = self.namespaces.get_entry(namespace, key, reading).await?;
        entry.ok_or(ServiceError::EntryNotFound)
    }

    /// Puts an entry in the place of another one or of none, whole or not at all. Makes the
    /// namespace.
    ///
    /// # Errors
    /// [`ServiceError::EntryTooLarge`], [`ServiceError::Refused`] as [`Namespaces::put_entry`] says, or
    /// [`ServiceError::Store`].
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

    /// Deletes an entry. Whether there was one.
    ///
    /// # Errors
    /// [`ServiceError::Refused`] as [`Namespaces::put_entry`] says, or [`ServiceError::Store`].
    pub async fn delete(
        &self,
        namespace: &Namespace,
        key: &EntryKey,
        terms: EntryTerms,
    ) -> Result<Answered<bool>, ServiceError> {
        let deleted = self.namespaces.delete_entry(namespace, key, terms);
        Ok(deleted.await?)
    }

    /// Up to `limit` entries in a range, and the last key if there are more. A page may be shorter than `limit`.
    ///
    /// # Errors
    /// [`ServiceError::Store`].
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

    /// Entries whose keys hold `keyword`, with their bodies, after a key if one is given, at most
    /// `most` of them, and about `most_bytes` of bodies, which at most one goes past. Some thousands
    /// of entries are looked through at once, so a page may be short, and even empty, though more
    /// follow. To be found is no use of an entry.
    ///
    /// # Errors
    /// [`ServiceError::Store`].
    pub async fn search(
        &self,
        namespace: &Namespace,
        keyword: &str,
        after: Option<&EntryKey>,
        limit: usize,
        most_bytes: u64,
    ) -> Result<SearchPage, ServiceError> {
        let (mut keys, mut bytes): (Vec<EntryKey>, _) = (Vec::new(), 0);
        let mut after = after.cloned();
        let mut listed_times = 0;
        let next = 'all: loop {
            let range = EntryRange {
                after: after.as_ref(),
                ..EntryRange::default()
            };
            let page = self.list(namespace, range, LISTED).await?;
            let found = page.entries.into_iter();
            for (key, head) in found.filter(|(key, _)| key.as_str().contains(keyword)) {
                if keys.len() >= limit.max(1) || bytes >= most_bytes.max(1) {
                    break 'all keys.last().cloned();
                }
                bytes += head.size_bytes;
                keys.push(key);
            }
            after = page.next;
            listed_times += 1;
            if after.is_none() || listed_times == LISTED_TIMES {
                break after;
            }
        };
        let read = keys.into_iter().map(async |key| {
            let entry = self.namespaces.get_entry(namespace, &key, Reading::Plain);
            Ok::<_, StoreError>(entry.await?.map(|entry| (key, entry)))
        });
        let read = stream::iter(read).buffered(READ_AT_ONCE);
        let entries: Vec<_> = read.try_collect().await?;
        Ok(SearchPage {
            // without those that were deleted since they were listed
            entries: entries.into_iter().flatten().collect(),
            next,
        })
    }

    /// Makes a namespace, unless there is one, which stays as it is.
    ///
    /// # Errors
    /// [`ServiceError::Store`].
    pub async fn open(&self, namespace: &Namespace) -> Result<NamespaceRecord, ServiceError> {
        Ok(self.namespaces.open_namespace(namespace).await?)
    }

    /// Changes the settings of a namespace. Makes the namespace.
    ///
    /// # Errors
    /// [`ServiceError::Refused`] as [`Namespaces::put_entry`] says, or [`ServiceError::Store`].
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

    /// The namespaces of these names, in that order, without those that do not exist.
    ///
    /// # Errors
    /// [`ServiceError::Store`].
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

    /// Up to `limit` namespaces with their usage, newest first, after a place if one is given, and the place of the
    /// next page if there is one.
    ///
    /// # Errors
    /// [`ServiceError::Store`].
    pub async fn list_namespaces(
        &self,
        after: Option<&NamespacePlace>,
        limit: usize,
    ) -> Result<(Vec<NamespaceView>, Option<NamespacePlace>), ServiceError> {
        let page = self.newest(after, limit).await?;
        Ok((self.with_usage(page.records).await?, page.next))
    }

    /// Up to `limit` namespaces without their usage, newest first, after a place if one is given.
    ///
    /// # Errors
    /// [`ServiceError::Store`].
    pub async fn newest(
        &self,
        after: Option<&NamespacePlace>,
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
        for some in names.chunks(MEASURED) {
            usages.extend(self.namespaces.measure(some).await?);
        }
        let views = records.into_iter().zip(usages);
        Ok(views
            .map(|(record, usage)| NamespaceView { record, usage })
            .collect())
    }

    /// Deletes a namespace with all its entries, and returns their number; see [`Namespaces::delete_namespace`] for
    /// concurrent puts and failures.
    ///
    /// # Errors
    /// [`ServiceError::Refused`] as [`Namespaces::delete_namespace`] says, or [`ServiceError::Store`].
    pub async fn delete_namespace(
        &self,
        namespace: &Namespace,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<Answered<u64>, ServiceError> {
        let deleted = self.namespaces.delete_namespace(namespace, idempotency);
        Ok(deleted.await?)
    }
}
