use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::CurrentThread;
use threadkeep_domain::{Document, Json, Key, Mismatch, Operation, Value};
use threadkeep_web::ApiError;

/// The state of a [`Thread`](super::Thread).
///
/// The first read fetches the state. Reads see the state with the queued writes applied. Writes are queued and return
/// immediately, so the store checks the writes and the limits only when the queue is flushed. However, a read before
/// the flush reports errors such as [`not_an_array`](threadkeep_domain::Refusal::NotAnArray).
///
/// Values can be any serde type. Numbers of more than 64 bits, repeated keys, and values nested deeper than 128 levels
/// are preserved only in values of type `Box<serde_json::value::RawValue>`.
#[derive(Clone)]
pub struct ThreadState(pub(super) Arc<CurrentThread>);

impl ThreadState {
    /// Returns the value of a key.
    ///
    /// # Errors
    /// [`ApiError::Internal`] if the value cannot be deserialized as `T`; [`ApiError::Service`] if the state cannot be
    /// fetched, or if a queued write cannot be applied to the state.
    pub async fn get<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, ApiError> {
        let key = to_key(key)?;
        let json = self
            .0
            .read(|document| document.get(&key).map(Value::to_json))
            .await?;
        json.map(|json| from_json(&json)).transpose()
    }

    /// Returns whether the key exists.
    pub async fn has(&self, key: &str) -> Result<bool, ApiError> {
        let key = to_key(key)?;
        let has = |document: &Document| document.get(&key).is_some();
        Ok(self.0.read(has).await?)
    }

    /// Returns the keys, in byte order.
    pub async fn keys(&self) -> Result<Vec<String>, ApiError> {
        let keys = |document: &Document| {
            let keys = document.iter().map(|(key, _)| key.as_str().to_owned());
            keys.collect()
        };
        Ok(self.0.read(keys).await?)
    }

    /// Returns the values, in the order of their keys.
    pub async fn values<T: DeserializeOwned>(&self) -> Result<Vec<T>, ApiError> {
        let entries = self.entries().await?;
        Ok(entries.into_iter().map(|(_, value)| value).collect())
    }

    /// Returns all keys with their values, sorted by the bytes of the keys.
    pub async fn entries<T: DeserializeOwned>(&self) -> Result<Vec<(String, T)>, ApiError> {
        let entry = |(key, value): (&Key, &Value)| (key.as_str().to_owned(), value.to_json());
        let entries = |document: &Document| document.iter().map(entry).collect::<Vec<_>>();
        let entries = self.0.read(entries).await?;
        entries
            .into_iter()
            .map(|(key, json)| Ok((key, from_json(&json)?)))
            .collect()
    }

    /// Returns the number of keys.
    pub async fn size(&self) -> Result<usize, ApiError> {
        Ok(self.0.read(|document| document.len() as usize).await?)
    }

    /// Returns whether the state has been fetched.
    #[must_use]
    pub fn is_loaded(&self) -> bool {
        self.0.pending().is_loaded()
    }

    /// Returns whether writes to the state are queued.
    #[must_use]
    pub fn is_dirty(&self) -> bool {
        self.0.pending().has_queued_operations()
    }

    /// Queues a new value for a key.
    pub fn set(&self, key: &str, value: impl Serialize) -> Result<(), ApiError> {
        let key = to_key(key)?;
        let value = Value::parse(&to_json(&value)?).map_err(ApiError::InvalidJson)?;
        self.0.queue(Operation::Set { key, value });
        Ok(())
    }

    /// Queues the deletion of a key. Deleting a missing key is not an error.
    pub fn delete(&self, key: &str) -> Result<(), ApiError> {
        let key = to_key(key)?;
        self.0.queue(Operation::Delete { key });
        Ok(())
    }

    /// Queues the deletion of all keys.
    pub fn clear(&self) {
        self.0.queue(Operation::Clear);
    }

    /// Queues an append to an array. Creates the array if the key does not exist.
    pub fn push(&self, key: &str, value: impl Serialize) -> Result<(), ApiError> {
        self.queue_push(key, &value, None)
    }

    /// Like [`Self::push`], but keeps only the newest `max_records` elements of the array. The minimum is 1.
    pub fn push_window(
        &self,
        key: &str,
        value: impl Serialize,
        max_records: u64,
    ) -> Result<(), ApiError> {
        if max_records == 0 {
            return Err(ApiError::InvalidOperation {
                detail: "a window must keep at least 1 element".into(),
                operation: None,
            });
        }
        self.queue_push(key, &value, Some(max_records))
    }

    /// Queues an addition to a key, which must have a signed 64-bit integer as its value. A missing key counts as 0.
    pub fn increment(&self, key: &str, by: i64) -> Result<(), ApiError> {
        let key = to_key(key)?;
        self.0.queue(Operation::Increment { key, by });
        Ok(())
    }

    fn queue_push(
        &self,
        key: &str,
        value: &impl Serialize,
        max_records: Option<u64>,
    ) -> Result<(), ApiError> {
        let key = to_key(key)?;
        let value = Json::parse(&to_json(value)?).map_err(ApiError::InvalidJson)?;
        self.0.queue(Operation::Push {
            key,
            value,
            max_records,
            mismatch: Mismatch::Refuse,
        });
        Ok(())
    }
}

impl fmt::Debug for ThreadState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ThreadState").field(&self.0.id()).finish()
    }
}

fn to_key(text: &str) -> Result<Key, ApiError> {
    Key::new(text).map_err(|error| ApiError::InvalidKey {
        error,
        operation: None,
    })
}

pub(super) fn to_json(value: &impl Serialize) -> Result<String, ApiError> {
    serde_json::to_string(value).map_err(|error| ApiError::Internal {
        what: "a value of the app cannot be serialized as JSON",
        source: Some(error),
    })
}

pub(super) fn from_json<T: DeserializeOwned>(json: &[u8]) -> Result<T, ApiError> {
    serde_json::from_slice(json).map_err(|error| ApiError::Internal {
        what: "a stored value does not have the type that the app requested",
        source: Some(error),
    })
}
