use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use threadkeep_domain::{
    ContentType, EntryKey, IdempotencyKey, Lifetime, Namespace, Precondition, Refusal, Stamp,
};
use threadkeep_store::{
    Answered, Backend, Entry, EntryPage, EntryRange, EntryTerms, KeyOrder, NamespaceChange,
    NamespaceRecord, NewEntry, Put, Reading, Usage, WriteError,
};

use super::room::Room;

/// A namespace with a unique name. Store errors other than refusals fail the test.
#[derive(Debug, Clone)]
pub(crate) struct Space {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) namespace: Namespace,
}

pub(crate) fn seconds(seconds: u64) -> Option<Lifetime> {
    Some(Lifetime::For(Duration::from_secs(seconds)))
}

pub(crate) fn key(text: &str) -> EntryKey {
    EntryKey::new(text).unwrap()
}

/// Returns an entry that does not expire, unless its namespace has a default lifetime.
pub(crate) fn text(body: impl Into<Bytes>) -> NewEntry {
    NewEntry {
        body: body.into(),
        content_type: ContentType::new("text/plain").unwrap(),
        content_encoding: None,
        lifetime: None,
        default_lifetime: Lifetime::Forever,
    }
}

impl Room {
    pub(crate) fn space(&self, name: &str) -> Space {
        Space {
            backend: Arc::clone(&self.backend),
            namespace: Namespace::new(name).unwrap(),
        }
    }
}

impl Space {
    pub(crate) async fn get(&self, name: &str) -> Option<Entry> {
        self.read(name, Reading::Plain).await
    }

    pub(crate) async fn read(&self, name: &str, reading: Reading) -> Option<Entry> {
        let key = key(name);
        let entry = self.backend.get_entry(&self.namespace, &key, reading);
        entry.await.unwrap()
    }

    pub(crate) async fn body(&self, name: &str) -> Option<String> {
        let entry = self.get(name).await?;
        Some(String::from_utf8(entry.body.to_vec()).unwrap())
    }

    pub(crate) async fn put(&self, name: &str, body: &str) -> Put {
        self.put_for(name, body, None).await
    }

    pub(crate) async fn put_for(&self, name: &str, body: &str, lifetime: Option<Lifetime>) -> Put {
        let entry = NewEntry {
            lifetime,
            ..text(body.to_owned())
        };
        self.put_entry(name, &entry).await
    }

    pub(crate) async fn put_entry(&self, name: &str, entry: &NewEntry) -> Put {
        let put = self.put_by(name, entry, EntryTerms::default()).await;
        put.unwrap().answer
    }

    pub(crate) async fn put_by(
        &self,
        name: &str,
        entry: &NewEntry,
        terms: EntryTerms,
    ) -> Result<Answered<Put>, Refusal> {
        let key = key(name);
        let put = self.backend.put_entry(&self.namespace, &key, entry, terms);
        put.await.map_err(refusal)
    }

    pub(crate) async fn delete_by(
        &self,
        name: &str,
        terms: EntryTerms,
    ) -> Result<Answered<bool>, Refusal> {
        let key = key(name);
        let deleted = self.backend.delete_entry(&self.namespace, &key, terms);
        deleted.await.map_err(refusal)
    }

    pub(crate) async fn put_if(
        &self,
        name: &str,
        body: &str,
        precondition: Precondition,
    ) -> Result<Put, Stamp> {
        let entry = text(body.to_owned());
        let put = self
            .put_by(name, &entry, with_precondition(precondition))
            .await;
        put.map(|put| put.answer).map_err(mismatch)
    }

    pub(crate) async fn delete(&self, name: &str) -> bool {
        let deleted = self.delete_by(name, EntryTerms::default()).await;
        deleted.unwrap().answer
    }

    pub(crate) async fn delete_if(
        &self,
        name: &str,
        precondition: Precondition,
    ) -> Result<bool, Stamp> {
        let deleted = self.delete_by(name, with_precondition(precondition)).await;
        deleted.map(|deleted| deleted.answer).map_err(mismatch)
    }

    pub(crate) async fn usage(&self) -> Usage {
        let usages = self.backend.measure(std::slice::from_ref(&self.namespace));
        let usages = usages.await.unwrap();
        assert_eq!(usages.len(), 1);
        usages[0]
    }

    pub(crate) async fn counts(&self) -> (u64, u64) {
        let usage = self.usage().await;
        (usage.entries, usage.bytes)
    }

    pub(crate) async fn keys(&self, prefix: &str, limit: usize) -> Vec<String> {
        self.keys_in(prefix, KeyOrder::Ascending, limit).await
    }

    pub(crate) async fn keys_in(&self, prefix: &str, order: KeyOrder, limit: usize) -> Vec<String> {
        let mut keys = Vec::new();
        let mut after = None;
        loop {
            let page = self.page(prefix, after.as_ref(), order, limit).await;
            assert!(page.entries.len() <= limit);
            let names = page.entries.iter().map(|(key, _)| key.as_str().to_owned());
            keys.extend(names);
            after = page.next;
            if after.is_none() {
                return keys;
            }
        }
    }

    pub(crate) async fn page(
        &self,
        prefix: &str,
        after: Option<&EntryKey>,
        order: KeyOrder,
        limit: usize,
    ) -> EntryPage {
        let range = EntryRange {
            prefix,
            after,
            order,
        };
        let page = self.backend.list_entries(&self.namespace, range, limit);
        page.await.unwrap()
    }

    pub(crate) async fn set_default(&self, lifetime: Option<Lifetime>) {
        let change = NamespaceChange {
            default_lifetime: Some(lifetime),
            idle_ttl: None,
        };
        let record = self.set(change).await;
        assert_eq!(record.namespace, self.namespace);
        assert_eq!(record.default_lifetime, lifetime);
    }

    pub(crate) async fn set_idle(&self, ttl: Option<Duration>) -> NamespaceRecord {
        let change = NamespaceChange {
            default_lifetime: None,
            idle_ttl: Some(ttl),
        };
        self.set(change).await
    }

    async fn set(&self, change: NamespaceChange) -> NamespaceRecord {
        self.set_by(change, None).await.unwrap().answer.0
    }

    pub(crate) async fn set_by(
        &self,
        change: NamespaceChange,
        key: Option<IdempotencyKey>,
    ) -> Result<Answered<(NamespaceRecord, Usage)>, Refusal> {
        let set = self.backend.set_namespace(&self.namespace, change, key);
        set.await.map_err(refusal)
    }

    pub(crate) async fn record(&self) -> Option<NamespaceRecord> {
        let record = self.backend.get_namespace(&self.namespace);
        record.await.unwrap()
    }

    pub(crate) async fn destroy(&self) -> u64 {
        self.destroy_by(None).await.unwrap().answer
    }

    pub(crate) async fn destroy_by(
        &self,
        key: Option<IdempotencyKey>,
    ) -> Result<Answered<u64>, Refusal> {
        let deleted = self.backend.delete_namespace(&self.namespace, key);
        deleted.await.map_err(refusal)
    }
}

fn with_precondition(precondition: Precondition) -> EntryTerms {
    EntryTerms {
        precondition: Some(precondition),
        ..EntryTerms::default()
    }
}

fn refusal(error: WriteError) -> Refusal {
    match error {
        WriteError::Refused(refusal) => refusal,
        WriteError::Store(error) => panic!("the store failed: {error:?}"),
    }
}

fn mismatch(refusal: Refusal) -> Stamp {
    match refusal {
        Refusal::VersionMismatch { current } => current,
        refusal => panic!("{refusal:?}"),
    }
}
