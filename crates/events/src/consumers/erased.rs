use std::collections::{HashMap, HashSet};

use bytes::Bytes;

use super::Record;
use threadkeep_domain::{Event, EventId, Life, ThreadId};
use threadkeep_store::{Backend, ErasedLife, StoreError};

const RECORDS_PER_CALL: usize = 200;

/// Erased lives by thread. A life is the time from a thread's creation to its end. `None` means all lives of the
/// thread, because the thread's data was lost.
struct Lives(HashMap<ThreadId, Option<HashSet<Life>>>);

/// Removes the events of erased lives from the ledgers of all consumers. Keeps the events that report the ends of these
/// lives, but removes error messages. Purge the log first, so that no consumer reads the removed events again.
pub(crate) async fn forget_lives(
    backend: &dyn Backend,
    lives: &[ErasedLife],
) -> Result<(), StoreError> {
    let lives = Lives::new(lives);
    for consumer in backend.consumers().await? {
        // even an empty list signals an erasure, so that lease holders drop the events that they read before the purge
        backend.forget_events(&consumer, &[]).await?;
        // remove pending events twice, because a replay can make a parked event pending after the first removal
        lives.forget_pending(backend, &consumer).await?;
        lives.forget_parked(backend, &consumer).await?;
        lives.forget_pending(backend, &consumer).await?;
    }
    Ok(())
}

impl Lives {
    fn new(lives: &[ErasedLife]) -> Self {
        let mut by_thread: HashMap<_, Option<HashSet<_>>> = HashMap::new();
        for ErasedLife { id, life, .. } in lives {
            let erased = by_thread.entry(*id).or_insert_with(|| Some(HashSet::new()));
            match (life, erased) {
                (Some(life), Some(erased)) => drop(erased.insert(*life)),
                (None, erased) => *erased = None,
                (Some(_), None) => {}
            }
        }
        Self(by_thread)
    }

    fn contain(&self, event: &Event) -> bool {
        let lives = event.thread().and_then(|id| self.0.get(id));
        lives.is_some_and(|lives| {
            let lives = lives.as_ref();
            lives.is_none_or(|lives| lives.contains(&event.life))
        })
    }

    async fn forget_pending(
        &self,
        backend: &dyn Backend,
        consumer: &str,
    ) -> Result<(), StoreError> {
        let ledger = backend.load_ledger(consumer).await?;
        let pending = ledger.unwrap_or_default().pending;
        self.rewrite(backend, consumer, &pending).await
    }

    async fn forget_parked(&self, backend: &dyn Backend, consumer: &str) -> Result<(), StoreError> {
        let mut after = None;
        loop {
            let parked = backend.parked(consumer, after, RECORDS_PER_CALL).await?;
            let Some((last, _)) = parked.last() else {
                return Ok(());
            };
            after = Some(*last);
            self.rewrite(backend, consumer, &parked).await?;
        }
    }

    async fn rewrite(
        &self,
        backend: &dyn Backend,
        consumer: &str,
        records: &[(EventId, Bytes)],
    ) -> Result<(), StoreError> {
        let changed = records.iter().filter_map(|(id, record)| {
            let record = Record::read(record)?;
            let is_erased = self.contain(&record.event);
            is_erased.then_some((*id, record))
        });
        let changed = changed.filter(|(_, record)| {
            // the error text of an app's handler may contain any data
            record.event.is_state_change() || record.last_error.is_some()
        });
        let changed: Vec<_> = changed
            .map(|(id, record)| (id, record.erased().map(|record| record.to_bytes())))
            .collect();
        for batch in changed.chunks(RECORDS_PER_CALL) {
            backend.forget_events(consumer, batch).await?;
        }
        Ok(())
    }
}
