//! One namespace in a store, and short words for operations on it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use threadkeep::domain::{
    ContentType, EntryKey, Lifetime, Namespace, Precondition, Refusal, Stamp,
};
use threadkeep::store::{Backend, Entry, NewEntry, Put, Reading, Usage, WriteError};

use super::room::Room;

/// A namespace of its own name. A store that fails, other than by refusing, fails the test.
#[derive(Debug, Clone)]
pub(crate) struct Space {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) namespace: Namespace,
}

/// A lifetime of `seconds` seconds.
pub(crate) fn seconds(seconds: u64) -> Option<Lifetime> {
    Some(Lifetime::For(Duration::from_secs(seconds)))
}

pub(crate) fn key(text: &str) -> EntryKey {
    EntryKey::new(text).unwrap()
}

/// Some text that lives for ever, unless its namespace says otherwise.
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

    /// The body as text.
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
        let key = key(name);
        let put = self.backend.put_entry(&self.namespace, &key, entry, None);
        put.await.unwrap()
    }

    pub(crate) async fn put_if(
        &self,
        name: &str,
        body: &str,
        precondition: Precondition,
    ) -> Result<Put, Stamp> {
        let (key, entry) = (key(name), text(body.to_owned()));
        let put = self
            .backend
            .put_entry(&self.namespace, &key, &entry, Some(precondition));
        put.await.map_err(mismatch)
    }

    pub(crate) async fn delete(&self, name: &str) -> bool {
        let key = key(name);
        let deleted = self.backend.delete_entry(&self.namespace, &key, None);
        deleted.await.unwrap()
    }

    pub(crate) async fn delete_if(
        &self,
        name: &str,
        precondition: Precondition,
    ) -> Result<bool, Stamp> {
        let key = key(name);
        let deleted = self
            .backend
            .delete_entry(&self.namespace, &key, Some(precondition));
        deleted.await.map_err(mismatch)
    }

    pub(crate) async fn usage(&self) -> Usage {
        let usages = self.backend.measure(std::slice::from_ref(&self.namespace));
        let usages = usages.await.unwrap();
        assert_eq!(usages.len(), 1);
        usages[0]
    }

    /// Number of entries, and bytes of their bodies.
    pub(crate) async fn counts(&self) -> (u64, u64) {
        let usage = self.usage().await;
        (usage.entries, usage.bytes)
    }

    /// All keys with that prefix, page by page.
    pub(crate) async fn keys(&self, prefix: &str, most: usize) -> Vec<String> {
        let mut keys = Vec::new();
        let mut after = None;
        loop {
            let page = self
                .backend
                .list_entries(&self.namespace, prefix, after.as_ref(), most);
            let page = page.await.unwrap();
            assert!(page.entries.len() <= most);
            let names = page.entries.iter().map(|(key, _)| key.as_str().to_owned());
            keys.extend(names);
            after = page.next;
            if after.is_none() {
                return keys;
            }
        }
    }

    pub(crate) async fn set_default(&self, lifetime: Option<Lifetime>) {
        let set = self.backend.set_default_lifetime(&self.namespace, lifetime);
        let record = set.await.unwrap();
        assert_eq!(record.namespace, self.namespace);
        assert_eq!(record.default_lifetime, lifetime);
    }

    pub(crate) async fn destroy(&self) -> u64 {
        let deleted = self.backend.delete_namespace(&self.namespace);
        deleted.await.unwrap()
    }
}

fn mismatch(error: WriteError) -> Stamp {
    match error {
        WriteError::Refused(Refusal::VersionMismatch { current }) => current,
        error => panic!("{error:?}"),
    }
}
