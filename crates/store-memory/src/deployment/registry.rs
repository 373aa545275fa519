use std::collections::{BTreeMap, HashMap};

use async_trait::async_trait;
use bytes::Bytes;

use crate::MemoryStore;
use crate::budget::Part;
use threadkeep_domain::heap;
use threadkeep_domain::heap::Heap;
use threadkeep_store::{Registry, StoreError};

#[derive(Debug, Default)]
pub(crate) struct Kinds(HashMap<String, BTreeMap<String, Bytes>>);

/// The size is computed on each call, because operators create only a few hundred records.
impl Heap for Kinds {
    fn heap_bytes(&self) -> u64 {
        let record =
            |(name, record): (&String, &Bytes)| heap::block(name.len()) + heap::block(record.len());
        let kind = |records: &BTreeMap<String, Bytes>| {
            heap::tree::<(String, Bytes)>(records.len()) + records.iter().map(record).sum::<u64>()
        };
        self.0.values().map(kind).sum()
    }
}

impl Part for Kinds {}

#[async_trait]
impl Registry for MemoryStore {
    async fn records(&self, kind: &str) -> Result<Vec<(String, Bytes)>, StoreError> {
        let kinds = self.0.kinds();
        let records = kinds.0.get(kind).into_iter().flatten();
        Ok(records
            .map(|(name, record)| (name.clone(), record.clone()))
            .collect())
    }

    async fn put_record(
        &self,
        kind: &str,
        name: &str,
        expected: Option<&[u8]>,
        new: &[u8],
        limit: usize,
    ) -> Result<bool, StoreError> {
        self.0.admit()?;
        let mut kinds = self.0.kinds();
        let records = kinds.0.entry(kind.to_owned()).or_default();
        let current = records.get(name).map(Bytes::as_ref);
        if current != expected || current.is_none() && records.len() >= limit {
            return Ok(false);
        }
        records.insert(name.to_owned(), Bytes::copy_from_slice(new));
        Ok(true)
    }

    async fn delete_record(&self, kind: &str, name: &str) -> Result<bool, StoreError> {
        let mut kinds = self.0.kinds();
        let records = kinds.0.get_mut(kind);
        Ok(records.is_some_and(|records| records.remove(name).is_some()))
    }
}
