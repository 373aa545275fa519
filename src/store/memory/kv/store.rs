//! Namespaces, all behind one lock: each step under it takes microseconds, and a page of 1,000 entries
//! half a millisecond.

use async_trait::async_trait;
use bytes::Bytes;
use tokio::task::yield_now;

use crate::domain::{EntryKey, Lifetime, Namespace, Precondition};
use crate::store::memory::MemoryStore;
use crate::store::{
    Entry, EntryPage, NamespacePage, NamespacePlace, NamespaceRecord, Namespaces, NewEntry, Put,
    Reading, StoreError, Usage, WriteError,
};

#[async_trait]
impl Namespaces for MemoryStore {
    async fn get_entry(
        &self,
        namespace: &Namespace,
        key: &EntryKey,
        reading: Reading,
    ) -> Result<Option<Entry>, StoreError> {
        // the time after the lock, so that times of one entry never go back
        let mut spaces = self.0.spaces();
        Ok(spaces.read(namespace, key, reading, self.0.clock.now_ms()))
    }

    async fn put_entry(
        &self,
        namespace: &Namespace,
        key: &EntryKey,
        entry: &NewEntry,
        precondition: Option<Precondition>,
    ) -> Result<Put, WriteError> {
        self.0.admit()?;
        // a copy of its own, made before the lock: the body may be a part of something larger
        let entry = NewEntry {
            body: Bytes::copy_from_slice(&entry.body),
            ..entry.clone()
        };
        let mut spaces = self.0.spaces();
        let now_ms = self.0.clock.now_ms();
        Ok(spaces.put(namespace, key, &entry, precondition, now_ms)?)
    }

    async fn delete_entry(
        &self,
        namespace: &Namespace,
        key: &EntryKey,
        precondition: Option<Precondition>,
    ) -> Result<bool, WriteError> {
        let mut spaces = self.0.spaces();
        let now_ms = self.0.clock.now_ms();
        Ok(spaces.delete(namespace, key, precondition, now_ms)?)
    }

    async fn list_entries(
        &self,
        namespace: &Namespace,
        prefix: &str,
        after: Option<&EntryKey>,
        limit: usize,
    ) -> Result<EntryPage, StoreError> {
        let spaces = self.0.spaces();
        let now_ms = self.0.clock.now_ms();
        Ok(spaces.list(namespace, prefix, after, limit, now_ms))
    }

    async fn open_namespace(&self, namespace: &Namespace) -> Result<NamespaceRecord, StoreError> {
        self.0.admit()?;
        let mut spaces = self.0.spaces();
        let now_ms = self.0.clock.now_ms();
        Ok(spaces.open_record(namespace, now_ms))
    }

    async fn set_default_lifetime(
        &self,
        namespace: &Namespace,
        lifetime: Option<Lifetime>,
    ) -> Result<NamespaceRecord, StoreError> {
        self.0.admit()?;
        let mut spaces = self.0.spaces();
        Ok(spaces.set_default(namespace, lifetime, self.0.clock.now_ms()))
    }

    async fn get_namespace(
        &self,
        namespace: &Namespace,
    ) -> Result<Option<NamespaceRecord>, StoreError> {
        Ok(self.0.spaces().record(namespace))
    }

    async fn list_namespaces(
        &self,
        after: Option<&NamespacePlace>,
        limit: usize,
    ) -> Result<NamespacePage, StoreError> {
        Ok(self.0.spaces().list_namespaces(after, limit))
    }

    async fn measure(&self, namespaces: &[Namespace]) -> Result<Vec<Usage>, StoreError> {
        loop {
            if let Some(usages) = self.0.measure(namespaces) {
                return Ok(usages);
            }
            yield_now().await;
        }
    }

    async fn delete_namespace(&self, namespace: &Namespace) -> Result<u64, StoreError> {
        let mut deleted = 0;
        while let Some(some) = self.0.delete_some(namespace) {
            deleted += some;
            yield_now().await;
        }
        Ok(deleted)
    }
}
