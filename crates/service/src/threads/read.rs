//! Reads threads. A missing thread reads as empty, at version 0.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::{ServiceError, ThreadService};
use threadkeep_domain::{Key, Slice, Stamp, Thread, ThreadId};
use threadkeep_store::{Found, Part, StateBody, Whole};

fn found_or<T>(found: Option<Found<T>>, absent: impl FnOnce() -> T) -> Found<T> {
    found.unwrap_or_else(|| Found {
        stamp: Stamp::default(),
        content: absent(),
    })
}

impl ThreadService {
    /// Returns the state as a compact JSON object, with keys in byte order.
    pub async fn get_state(&self, id: &ThreadId) -> Result<Found<Bytes>, ServiceError> {
        let found = self.store.get_state(id, self.reader()).await?;
        Ok(found_or(found, || Bytes::from_static(b"{}")))
    }

    /// Like [`get_state`](Self::get_state), but returns the compressed form if the store has it.
    pub async fn get_state_body(&self, id: &ThreadId) -> Result<Found<StateBody>, ServiceError> {
        let found = self.store.get_state_body(id, self.reader()).await?;
        Ok(found_or(found, || {
            StateBody::Text(Bytes::from_static(b"{}"))
        }))
    }

    /// Caches the compressed form of a state that a read returned as [`Compressible`](StateBody::Compressible).
    pub fn keep_compressed(&self, id: &ThreadId, text: &Bytes, gzip: Bytes) {
        self.store.keep_compressed(id, text, gzip);
    }

    /// Returns state and metadata at one version, or `None` if the thread does not exist.
    pub async fn get_content(&self, id: &ThreadId) -> Result<Option<Found<Whole>>, ServiceError> {
        Ok(self.store.get_content(id, self.reader()).await?)
    }

    /// Returns the values of `keys` as a JSON object.
    pub async fn get_values(
        &self,
        id: &ThreadId,
        keys: Vec<Key>,
    ) -> Result<Found<Bytes>, ServiceError> {
        let found = found_or(
            self.store.get_values(id, self.reader(), &keys).await?,
            Vec::new,
        );
        let values: BTreeMap<_, _> = keys
            .iter()
            .zip(&found.content)
            .filter_map(|(key, value)| Some((key, value.as_ref()?)))
            .collect();
        let mut out = vec![b'{'];
        for (key, value) in values {
            if out.len() > 1 {
                out.push(b',');
            }
            key.write_json(&mut out);
            out.push(b':');
            out.extend_from_slice(value);
        }
        out.push(b'}');
        Ok(Found {
            stamp: found.stamp,
            content: out.into(),
        })
    }

    /// Returns a value as compact JSON, or a slice of the value. Fails with [`ServiceError::NotAnArray`] if `slice` is
    /// given and the value is not an array.
    pub async fn get_value(
        &self,
        id: &ThreadId,
        key: &Key,
        slice: Option<Slice>,
    ) -> Result<Found<Part>, ServiceError> {
        let Found { stamp, content } = found_or(
            self.store.get_value(id, self.reader(), key, slice).await?,
            || None,
        );
        let part = content.ok_or(ServiceError::KeyNotFound { stamp })?;
        if slice.is_some() && part.total.is_none() {
            return Err(ServiceError::NotAnArray { stamp });
        }
        Ok(Found {
            stamp,
            content: part,
        })
    }

    pub async fn get_stamp(&self, id: &ThreadId) -> Result<Stamp, ServiceError> {
        let stamp = self.store.get_stamp(id, self.reader()).await?;
        Ok(stamp.unwrap_or_default())
    }

    /// Returns the thread's [`Stamp`]. Fails if there is no value under `key`.
    pub async fn find_key(&self, id: &ThreadId, key: &Key) -> Result<Stamp, ServiceError> {
        let found = self.store.find_key(id, self.reader(), key).await?;
        match found_or(found, || false) {
            Found {
                stamp,
                content: true,
            } => Ok(stamp),
            Found { stamp, .. } => Err(ServiceError::KeyNotFound { stamp }),
        }
    }

    /// Returns the keys of the state in byte order.
    pub async fn get_keys(&self, id: &ThreadId) -> Result<Found<Vec<Key>>, ServiceError> {
        Ok(found_or(
            self.store.get_keys(id, self.reader()).await?,
            Vec::new,
        ))
    }

    /// Returns the thread without its state, or `None` if the thread does not exist.
    pub async fn get_thread(&self, id: &ThreadId) -> Result<Option<Thread>, ServiceError> {
        Ok(self.store.get_thread(id, self.reader()).await?)
    }
}
