//! A store that counts calls, and fails on demand.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use actix_web::web::Bytes;
use async_trait::async_trait;
use threadkeep_domain::{Key, Slice, Stamp, Thread, ThreadId, Write, Written};
use threadkeep_store::{
    Destroy, Destroyed, Found, Part, Reader, Rotate, Rotated, StateBody, Store, StoreError, Whole,
    WriteError,
};

#[derive(Debug)]
pub(super) struct CountingStore {
    inner: Arc<dyn Store>,
    pub(super) calls: Arc<Calls>,
}

#[derive(Debug, Default)]
pub(super) struct Calls {
    reads: AtomicU32,
    writes: AtomicU32,
    is_down: AtomicBool,
    /// If true, writes take effect but are never answered.
    drops_answers: AtomicBool,
}

impl CountingStore {
    pub(super) fn around(inner: Arc<dyn Store>) -> Self {
        Self {
            inner,
            calls: Arc::default(),
        }
    }
}

impl Calls {
    pub(super) fn take(&self) -> (u32, u32) {
        (
            self.reads.swap(0, Ordering::SeqCst),
            self.writes.swap(0, Ordering::SeqCst),
        )
    }

    pub(super) fn set_down(&self, is_down: bool) {
        self.is_down.store(is_down, Ordering::SeqCst);
    }

    pub(super) fn set_drops_answers(&self, drops_answers: bool) {
        self.drops_answers.store(drops_answers, Ordering::SeqCst);
    }

    fn read(&self) -> Result<(), StoreError> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        self.fail()
    }

    fn write(&self) -> Result<(), StoreError> {
        self.writes.fetch_add(1, Ordering::SeqCst);
        self.fail()
    }

    fn fail(&self) -> Result<(), StoreError> {
        if self.is_down.load(Ordering::SeqCst) {
            return Err(StoreError::Unavailable("it is down".into()));
        }
        Ok(())
    }
}

#[async_trait]
impl Store for CountingStore {
    async fn get_state(
        &self,
        id: &ThreadId,
        reader: Reader,
    ) -> Result<Option<Found<Bytes>>, WriteError> {
        self.calls.read()?;
        self.inner.get_state(id, reader).await
    }

    async fn get_state_body(
        &self,
        id: &ThreadId,
        reader: Reader,
    ) -> Result<Option<Found<StateBody>>, WriteError> {
        self.calls.read()?;
        self.inner.get_state_body(id, reader).await
    }

    fn keep_compressed(&self, id: &ThreadId, text: &Bytes, gzip: Bytes) {
        self.inner.keep_compressed(id, text, gzip);
    }

    async fn get_content(
        &self,
        id: &ThreadId,
        reader: Reader,
    ) -> Result<Option<Found<Whole>>, WriteError> {
        self.calls.read()?;
        self.inner.get_content(id, reader).await
    }

    async fn get_values(
        &self,
        id: &ThreadId,
        reader: Reader,
        keys: &[Key],
    ) -> Result<Option<Found<Vec<Option<Bytes>>>>, WriteError> {
        self.calls.read()?;
        self.inner.get_values(id, reader, keys).await
    }

    async fn get_value(
        &self,
        id: &ThreadId,
        reader: Reader,
        key: &Key,
        slice: Option<Slice>,
    ) -> Result<Option<Found<Option<Part>>>, WriteError> {
        self.calls.read()?;
        self.inner.get_value(id, reader, key, slice).await
    }

    async fn get_stamp(&self, id: &ThreadId, reader: Reader) -> Result<Option<Stamp>, WriteError> {
        self.calls.read()?;
        self.inner.get_stamp(id, reader).await
    }

    async fn find_key(
        &self,
        id: &ThreadId,
        reader: Reader,
        key: &Key,
    ) -> Result<Option<Found<bool>>, WriteError> {
        self.calls.read()?;
        self.inner.find_key(id, reader, key).await
    }

    async fn get_keys(
        &self,
        id: &ThreadId,
        reader: Reader,
    ) -> Result<Option<Found<Vec<Key>>>, WriteError> {
        self.calls.read()?;
        self.inner.get_keys(id, reader).await
    }

    async fn get_thread(
        &self,
        id: &ThreadId,
        reader: Reader,
    ) -> Result<Option<Thread>, WriteError> {
        self.calls.read()?;
        self.inner.get_thread(id, reader).await
    }

    async fn write(&self, id: &ThreadId, write: &Write<'_>) -> Result<Written, WriteError> {
        self.calls.write()?;
        let written = self.inner.write(id, write).await;
        if self.calls.drops_answers.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        written
    }

    async fn destroy(&self, id: &ThreadId, destroy: &Destroy) -> Result<Destroyed, WriteError> {
        self.calls.write()?;
        self.inner.destroy(id, destroy).await
    }

    async fn rotate(&self, id: &ThreadId, rotate: &Rotate) -> Result<Rotated, WriteError> {
        self.calls.write()?;
        self.inner.rotate(id, rotate).await
    }

    async fn ping(&self) -> Result<(), StoreError> {
        self.calls.fail()
    }
}
