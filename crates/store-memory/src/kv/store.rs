//! Stores namespaces. One lock is enough for all namespaces, because a step holds the lock only for microseconds, and
//! even reading a page of 1,000 entries takes only half a millisecond.

use async_trait::async_trait;
use bytes::Bytes;
use tokio::task::yield_now;

use super::answers::{entry_subject, namespace_subject};
use super::spaces::Spaces;
use crate::MemoryStore;
use crate::budget::Held;
use threadkeep_domain::{EntryKey, Fingerprint, IdempotencyKey, Namespace};
use threadkeep_store::{
    Answered, Entry, EntryHead, EntryPage, EntryRange, EntryTerms, NamespaceChange, NamespacePage,
    NamespacePosition, NamespaceRecord, Namespaces, NewEntry, Put, Reading, StoreError, Usage,
    WriteError,
};

impl MemoryStore {
    /// Locks the namespaces for a write that may add data. A full store accepts only retries. Also returns the time,
    /// which is read after locking, so that the times stored in an entry never go backwards.
    fn lock_spaces_for_write(
        &self,
        subject: Fingerprint,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<(Held<'_, Spaces>, u64), StoreError> {
        let has_room = self.0.has_room();
        let spaces = self.0.spaces();
        let now_ms = self.0.clock.now_ms();
        if !has_room && !spaces.answers.has_answer(subject, idempotency, now_ms) {
            return Err(self.0.budget.refuse());
        }
        Ok((spaces, now_ms))
    }
}

#[async_trait]
impl Namespaces for MemoryStore {
    async fn get_entry(
        &self,
        namespace: &Namespace,
        key: &EntryKey,
        reading: Reading,
    ) -> Result<Option<Entry>, StoreError> {
        let mut spaces = self.0.spaces();
        Ok(spaces.read(namespace, key, reading, self.0.clock.now_ms()))
    }

    async fn get_heads(
        &self,
        namespace: &Namespace,
        keys: &[EntryKey],
    ) -> Result<Vec<Option<EntryHead>>, StoreError> {
        let mut spaces = self.0.spaces();
        Ok(spaces.heads(namespace, keys, self.0.clock.now_ms()))
    }

    async fn put_entry(
        &self,
        namespace: &Namespace,
        key: &EntryKey,
        entry: &NewEntry,
        terms: EntryTerms,
    ) -> Result<Answered<Put>, WriteError> {
        // copies the body, because it may be a slice of a buffer that the entry would keep in memory
        let entry = NewEntry {
            body: Bytes::copy_from_slice(&entry.body),
            ..entry.clone()
        };
        let subject = entry_subject(namespace, key);
        let (mut spaces, now_ms) = self.lock_spaces_for_write(subject, terms.idempotency)?;
        Ok(spaces.put(namespace, key, &entry, terms, now_ms)?)
    }

    async fn delete_entry(
        &self,
        namespace: &Namespace,
        key: &EntryKey,
        terms: EntryTerms,
    ) -> Result<Answered<bool>, WriteError> {
        let mut spaces = self.0.spaces();
        let now_ms = self.0.clock.now_ms();
        Ok(spaces.delete(namespace, key, terms, now_ms)?)
    }

    async fn list_entries(
        &self,
        namespace: &Namespace,
        range: EntryRange<'_>,
        limit: usize,
    ) -> Result<EntryPage, StoreError> {
        let mut spaces = self.0.spaces();
        let now_ms = self.0.clock.now_ms();
        Ok(spaces.list(namespace, range, limit, now_ms))
    }

    async fn open_namespace(&self, namespace: &Namespace) -> Result<NamespaceRecord, StoreError> {
        self.0.admit()?;
        let mut spaces = self.0.spaces();
        let now_ms = self.0.clock.now_ms();
        Ok(spaces.open_record(namespace, now_ms))
    }

    async fn set_namespace(
        &self,
        namespace: &Namespace,
        change: NamespaceChange,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<Answered<(NamespaceRecord, Usage)>, WriteError> {
        // purges first, because expired entries would otherwise be counted
        while self.0.measure(&[]).is_none() {
            yield_now().await;
        }
        let subject = namespace_subject(namespace);
        let (mut spaces, now_ms) = self.lock_spaces_for_write(subject, idempotency)?;
        Ok(spaces.set(namespace, change, idempotency, now_ms)?)
    }

    async fn get_namespace(
        &self,
        namespace: &Namespace,
    ) -> Result<Option<NamespaceRecord>, StoreError> {
        let spaces = self.0.spaces();
        Ok(spaces.record(namespace, self.0.clock.now_ms()))
    }

    async fn list_namespaces(
        &self,
        after: Option<&NamespacePosition>,
        limit: usize,
    ) -> Result<NamespacePage, StoreError> {
        let spaces = self.0.spaces();
        Ok(spaces.list_namespaces(after, limit, self.0.clock.now_ms()))
    }

    async fn measure(&self, namespaces: &[Namespace]) -> Result<Vec<Usage>, StoreError> {
        loop {
            if let Some(usages) = self.0.measure(namespaces) {
                return Ok(usages);
            }
            yield_now().await;
        }
    }

    async fn delete_namespace(
        &self,
        namespace: &Namespace,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<Answered<u64>, WriteError> {
        let now_ms = self.0.clock.now_ms();
        let before = self
            .0
            .spaces()
            .deleted_before(namespace, idempotency, now_ms);
        if let Some(first) = before? {
            return Ok(first);
        }
        let mut deleted = 0;
        while let Some(count) = self.0.delete_batch(namespace) {
            deleted += count;
            yield_now().await;
        }
        let mut spaces = self.0.spaces();
        let now_ms = self.0.clock.now_ms();
        Ok(spaces.remember_deleted(namespace, idempotency, deleted, now_ms))
    }

    async fn begin_writes(
        &self,
        namespace: &Namespace,
        idempotency: IdempotencyKey,
    ) -> Result<bool, WriteError> {
        let subject = namespace_subject(namespace);
        let (mut spaces, now_ms) = self.lock_spaces_for_write(subject, Some(idempotency))?;
        Ok(spaces.begin(namespace, idempotency, now_ms)?)
    }
}
