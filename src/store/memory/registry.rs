//! Small records of a deployment, which are gone with the process.

use std::collections::{BTreeMap, HashMap};

use async_trait::async_trait;
use bytes::Bytes;

use super::MemoryStore;
use crate::store::{Registry, StoreError};

/// Records by kind and name.
pub(super) type Kinds = HashMap<String, BTreeMap<String, Bytes>>;

#[async_trait]
impl Registry for MemoryStore {
    async fn records(&self, kind: &str) -> Result<Vec<(String, Bytes)>, StoreError> {
        let kinds = super::lock(&self.0.kinds);
        let records = kinds.get(kind).into_iter().flatten();
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
        most: usize,
    ) -> Result<bool, StoreError> {
        let mut kinds = super::lock(&self.0.kinds);
        let records = kinds.entry(kind.to_owned()).or_default();
        let current = records.get(name).map(Bytes::as_ref);
        if current != expected || current.is_none() && records.len() >= most {
            return Ok(false);
        }
        records.insert(name.to_owned(), Bytes::copy_from_slice(new));
        Ok(true)
    }

    async fn delete_record(&self, kind: &str, name: &str) -> Result<bool, StoreError> {
        let mut kinds = super::lock(&self.0.kinds);
        let records = kinds.get_mut(kind);
        Ok(records.is_some_and(|records| records.remove(name).is_some()))
    }
}
