//! Threads that are written to as often as the limits say.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;

use super::{RateGate, RateSubject};
use threadkeep_domain::scope::ScopeId;
use threadkeep_domain::{Key, Slice, Stamp, Thread, ThreadId, Write, Written};
use threadkeep_store::{
    Destroy, Destroyed, Found, Part, Reader, Rotate, Rotated, StateBody, Store, StoreError, Whole,
    WriteError,
};

/// A store behind a gate. Reads bypass it.
#[derive(Debug, Clone)]
pub struct LimitedStore {
    store: Arc<dyn Store>,
    gate: RateGate,
}

impl LimitedStore {
    /// That store behind that gate.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, gate: RateGate) -> Self {
        Self { store, gate }
    }
}

#[async_trait]
impl Store for LimitedStore {
    async fn get_state(
        &self,
        id: &ThreadId,
        reader: Reader,
    ) -> Result<Option<Found<Bytes>>, WriteError> {
        self.store.get_state(id, reader).await
    }

    async fn get_state_body(
        &self,
        id: &ThreadId,
        reader: Reader,
    ) -> Result<Option<Found<StateBody>>, WriteError> {
        self.store.get_state_body(id, reader).await
    }

    fn keep_compressed(&self, id: &ThreadId, text: &Bytes, gzip: Bytes) {
        self.store.keep_compressed(id, text, gzip);
    }

    async fn get_whole(
        &self,
        id: &ThreadId,
        reader: Reader,
    ) -> Result<Option<Found<Whole>>, WriteError> {
        self.store.get_whole(id, reader).await
    }

    async fn get_values(
        &self,
        id: &ThreadId,
        reader: Reader,
        keys: &[Key],
    ) -> Result<Option<Found<Vec<Option<Bytes>>>>, WriteError> {
        self.store.get_values(id, reader, keys).await
    }

    async fn get_value(
        &self,
        id: &ThreadId,
        reader: Reader,
        key: &Key,
        slice: Option<Slice>,
    ) -> Result<Option<Found<Option<Part>>>, WriteError> {
        self.store.get_value(id, reader, key, slice).await
    }

    async fn get_stamp(&self, id: &ThreadId, reader: Reader) -> Result<Option<Stamp>, WriteError> {
        self.store.get_stamp(id, reader).await
    }

    async fn find_key(
        &self,
        id: &ThreadId,
        reader: Reader,
        key: &Key,
    ) -> Result<Option<Found<bool>>, WriteError> {
        self.store.find_key(id, reader, key).await
    }

    async fn get_keys(
        &self,
        id: &ThreadId,
        reader: Reader,
    ) -> Result<Option<Found<Vec<Key>>>, WriteError> {
        self.store.get_keys(id, reader).await
    }

    async fn get_thread(
        &self,
        id: &ThreadId,
        reader: Reader,
    ) -> Result<Option<Thread>, WriteError> {
        self.store.get_thread(id, reader).await
    }

    async fn admit(&self, id: &ThreadId) -> Result<(), WriteError> {
        if !RateSubject::is_known() {
            return Ok(()); // nothing would remember that it was counted
        }
        let scope = ScopeId::Thread(*id);
        self.gate.pass(&scope, true, async { Ok(()) }).await
    }

    async fn write(&self, id: &ThreadId, write: &Write<'_>) -> Result<Written, WriteError> {
        let scope = ScopeId::Thread(*id);
        self.gate
            .pass(&scope, true, self.store.write(id, write))
            .await
    }

    async fn destroy(&self, id: &ThreadId, destroy: &Destroy) -> Result<Destroyed, WriteError> {
        let scope = ScopeId::Thread(*id);
        self.gate
            .pass(&scope, false, self.store.destroy(id, destroy))
            .await
    }

    async fn rotate(&self, id: &ThreadId, rotate: &Rotate) -> Result<Rotated, WriteError> {
        let scope = ScopeId::Thread(*id);
        self.gate
            .pass(&scope, false, self.store.rotate(id, rotate))
            .await
    }

    async fn ping(&self) -> Result<(), StoreError> {
        self.store.ping().await
    }
}
