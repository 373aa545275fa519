use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::{MemoryStore, SHARDS};
use threadkeep_domain::{Completed, Event, Key, Position, Stamp, ThreadId, Value};
use threadkeep_store::parts::json;
use threadkeep_store::{EventLog, Heads, StoreError, Watched, millis};

#[async_trait]
impl EventLog for MemoryStore {
    fn buckets(&self) -> u16 {
        SHARDS as u16
    }

    fn bucket_of(&self, id: &ThreadId) -> u16 {
        self.0.index_of(id) as u16
    }

    async fn read_log(
        &self,
        after: &[(u16, Position)],
        limit: usize,
    ) -> Result<Vec<Vec<Event>>, StoreError> {
        let read = |(bucket, position): &(u16, Position)| match self.0.bucket(*bucket) {
            Some(shard) => shard.past.log.read(*position, limit),
            None => Vec::new(),
        };
        Ok(after.iter().map(read).collect())
    }

    async fn log_heads(&self) -> Result<Heads, StoreError> {
        let now_ms = self.0.clock.now_ms();
        let positions = self.0.each().map(|shard| shard.past.log.last());
        Ok(Heads {
            now_ms,
            positions: positions.collect(),
        })
    }

    async fn log_horizons(&self, buckets: &[u16]) -> Result<Vec<Position>, StoreError> {
        let horizon = |bucket: &u16| match self.0.bucket(*bucket) {
            Some(shard) => shard.past.log.horizon(),
            None => Position::default(),
        };
        Ok(buckets.iter().map(horizon).collect())
    }

    async fn log_completed(&self, id: &ThreadId, completed: &Completed) -> Result<(), StoreError> {
        // Frees memory if necessary. The event is logged even if the store stays full, because it can be evicted later.
        self.0.has_room();
        self.change(id, |entry, step| entry.complete(completed, step));
        Ok(())
    }

    async fn watch(&self, ids: &[ThreadId], ttl: Duration) -> Result<Vec<Watched>, StoreError> {
        let has_room = self.0.has_room();
        let watch = |id: &ThreadId| {
            let mut shard = self.0.of(id);
            if !has_room && !shard.has_entry(id) {
                return Err(self.0.budget.refuse());
            }
            let now_ms = self.0.clock.now_ms();
            Ok(shard.watch(id, now_ms.saturating_add(millis(ttl)), now_ms))
        };
        ids.iter().map(watch).collect()
    }

    async fn values_at(
        &self,
        id: &ThreadId,
        at: Stamp,
        keys: &[Key],
        max_bytes: u64,
    ) -> Result<Option<Vec<Option<Bytes>>>, StoreError> {
        let shard = self.0.of(id);
        let living = shard.living(id, self.0.clock.now_ms());
        let Some(living) = living.filter(|living| living.stamp == at) else {
            return Ok(None);
        };
        let values = || keys.iter().map(|key| living.document.get(key));
        let bytes: usize = values().flatten().map(Value::json_bytes).sum();
        if bytes as u64 > max_bytes {
            return Ok(None);
        }
        Ok(Some(values().map(|value| value.map(json)).collect()))
    }

    async fn watch_all(&self, ttl: Duration) -> Result<u64, StoreError> {
        let since = self.0.each().map(|mut shard| {
            let now_ms = self.0.clock.now_ms();
            let until_ms = now_ms.saturating_add(millis(ttl));
            shard.past.watch_all(until_ms, now_ms)
        });
        Ok(since.max().unwrap_or_default())
    }
}
