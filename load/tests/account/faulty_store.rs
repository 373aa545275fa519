//! A store with rare faults: depending on its [`Fault`], it loses some pushes, stores some pushes twice, or does not
//! confirm some pushes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use threadkeep_domain::{Answer, Key, Operation, Slice, Stamp, Thread, ThreadId, Write, Written};
use threadkeep_store::{
    Destroy, Destroyed, Found, Part, Reader, Rotate, Rotated, Store, StoreError, Whole, WriteError,
};

/// One push in this many fails.
const FAULT_PERIOD: u64 = 1_000;
/// Zero-based index of the first faulty push, for faults that affect one push in a thousand.
const FIRST: u64 = 100;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// Acknowledges a push, but does not store it.
    Drop,
    Double,
    /// Stores a push twice if it creates a thread. Affects one in twenty of these pushes.
    DoubleFirst,
    /// Stores all pushes, but reports a timeout for one push in fifty.
    Mute,
}

/// The faulty store, shared by all workers.
#[derive(Debug)]
pub(crate) struct FaultyStore {
    inner: Arc<dyn Store>,
    fault: Fault,
    pushes: Arc<AtomicU64>,
    faults: Arc<AtomicU64>,
}

impl FaultyStore {
    pub(crate) fn new(inner: Arc<dyn Store>, fault: Fault, faults: Arc<AtomicU64>) -> Self {
        Self {
            inner,
            fault,
            pushes: Arc::default(),
            faults,
        }
    }

    /// Returns whether the fault applies to pushes to thread `id`.
    async fn applies_to(&self, id: &ThreadId) -> Result<bool, WriteError> {
        Ok(self.fault != Fault::DoubleFirst
            || self.inner.get_thread(id, Reader::ALL).await?.is_none())
    }

    fn is_due(&self) -> bool {
        let period = match self.fault {
            Fault::None => return false,
            Fault::Drop | Fault::Double => FAULT_PERIOD,
            Fault::DoubleFirst => FAULT_PERIOD / 50,
            Fault::Mute => FAULT_PERIOD / 20,
        };
        let number = self.pushes.fetch_add(1, Ordering::SeqCst);
        number % period == FIRST % period
    }

    /// Drops the push, but answers as if it had been stored. Computes the size from the content before the push.
    async fn drop_push(
        &self,
        id: &ThreadId,
        write: &Write<'_>,
        index: usize,
    ) -> Result<Written, WriteError> {
        let Operation::Push {
            key,
            value,
            max_records,
            ..
        } = &write.operations[index]
        else {
            unreachable!("it is a push");
        };
        let slice = Some(Slice::Range {
            offset: 0,
            limit: Some(1),
        });
        let found = self.inner.get_value(id, Reader::ALL, key, slice).await?;
        let part = found.and_then(|found| found.content);
        let length = part.as_ref().and_then(|part| part.total).unwrap_or(0);
        let mut bytes = value.as_str().len() as i64;
        let is_full = max_records.is_some_and(|max| length >= max);
        match part {
            // the oldest element is dropped, and `part.json` includes two brackets
            Some(part) if is_full => bytes -= part.json.len() as i64 - 2,
            Some(_) if length > 0 => bytes += 1,
            Some(_) => {}
            // does not count the comma after other keys of the state, so the load test may also find a wrong size
            None => bytes += key.as_str().len() as i64 + 5,
        }
        let mut operations = write.operations.to_vec();
        // replaces the push with the deletion of a missing key, which does not change the state
        operations[index] = Operation::Delete {
            key: Key::new("nothing").unwrap(),
        };
        let mut written = self.inner.write(id, &with(write, &operations)).await?;
        if !written.replayed {
            written.answers[index] = Answer::Length(length + u64::from(!is_full));
            written.size_bytes = written.size_bytes.saturating_add_signed(bytes);
        }
        Ok(written)
    }

    /// Stores the push twice, but returns only one result for it. The size in the answer includes both copies.
    async fn double_push(
        &self,
        id: &ThreadId,
        write: &Write<'_>,
        index: usize,
    ) -> Result<Written, WriteError> {
        let mut operations = write.operations.to_vec();
        operations.insert(index, operations[index].clone());
        let mut written = self.inner.write(id, &with(write, &operations)).await?;
        if !written.replayed {
            written.answers.remove(index + 1);
        }
        Ok(written)
    }
}

fn with<'a>(write: &Write<'a>, operations: &'a [Operation]) -> Write<'a> {
    Write {
        operations,
        ..*write
    }
}

#[async_trait]
impl Store for FaultyStore {
    async fn get_state(
        &self,
        id: &ThreadId,
        reader: Reader,
    ) -> Result<Option<Found<Bytes>>, WriteError> {
        self.inner.get_state(id, reader).await
    }

    async fn get_content(
        &self,
        id: &ThreadId,
        reader: Reader,
    ) -> Result<Option<Found<Whole>>, WriteError> {
        self.inner.get_content(id, reader).await
    }

    async fn get_values(
        &self,
        id: &ThreadId,
        reader: Reader,
        keys: &[Key],
    ) -> Result<Option<Found<Vec<Option<Bytes>>>>, WriteError> {
        self.inner.get_values(id, reader, keys).await
    }

    async fn get_value(
        &self,
        id: &ThreadId,
        reader: Reader,
        key: &Key,
        slice: Option<Slice>,
    ) -> Result<Option<Found<Option<Part>>>, WriteError> {
        self.inner.get_value(id, reader, key, slice).await
    }

    async fn get_stamp(&self, id: &ThreadId, reader: Reader) -> Result<Option<Stamp>, WriteError> {
        self.inner.get_stamp(id, reader).await
    }

    async fn find_key(
        &self,
        id: &ThreadId,
        reader: Reader,
        key: &Key,
    ) -> Result<Option<Found<bool>>, WriteError> {
        self.inner.find_key(id, reader, key).await
    }

    async fn get_keys(
        &self,
        id: &ThreadId,
        reader: Reader,
    ) -> Result<Option<Found<Vec<Key>>>, WriteError> {
        self.inner.get_keys(id, reader).await
    }

    async fn get_thread(
        &self,
        id: &ThreadId,
        reader: Reader,
    ) -> Result<Option<Thread>, WriteError> {
        self.inner.get_thread(id, reader).await
    }

    async fn write(&self, id: &ThreadId, write: &Write<'_>) -> Result<Written, WriteError> {
        let is_push = |operation: &Operation| matches!(operation, Operation::Push { .. });
        let index = write.operations.iter().position(is_push);
        let Some(index) = index else {
            return self.inner.write(id, write).await;
        };
        if !self.applies_to(id).await? || !self.is_due() {
            return self.inner.write(id, write).await;
        }
        let written = match self.fault {
            Fault::None => self.inner.write(id, write).await,
            Fault::Drop => self.drop_push(id, write, index).await,
            Fault::Double | Fault::DoubleFirst => self.double_push(id, write, index).await,
            Fault::Mute => {
                self.inner.write(id, write).await?;
                self.faults.fetch_add(1, Ordering::SeqCst);
                return Err(StoreError::Timeout(2_000).into());
            }
        }?;
        // a replay stores nothing, so no fault occurred
        if !written.replayed {
            self.faults.fetch_add(1, Ordering::SeqCst);
        }
        Ok(written)
    }

    async fn destroy(&self, id: &ThreadId, destroy: &Destroy) -> Result<Destroyed, WriteError> {
        self.inner.destroy(id, destroy).await
    }

    async fn rotate(&self, id: &ThreadId, rotate: &Rotate) -> Result<Rotated, WriteError> {
        self.inner.rotate(id, rotate).await
    }

    async fn ping(&self) -> Result<(), StoreError> {
        self.inner.ping().await
    }
}
