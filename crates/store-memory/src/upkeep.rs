use async_trait::async_trait;
use tokio::task::yield_now;

use super::MemoryStore;
use threadkeep_domain::{Position, ThreadId};
use threadkeep_store::{Due, Reaped, StoreError, Upkeep};

#[async_trait]
impl Upkeep for MemoryStore {
    async fn due(&self, buckets: &[u16], limit: usize) -> Result<Due, StoreError> {
        let due = |bucket: &u16| match self.0.bucket(*bucket) {
            Some(shard) => shard.due(self.0.clock.now_ms(), limit),
            None => Vec::new(),
        };
        Ok(Due {
            skew_ms: 0,
            ids: buckets.iter().map(due).collect(),
        })
    }

    async fn end_due(&self, bucket: u16, ids: &[ThreadId]) -> Result<Reaped, StoreError> {
        let Some(mut shard) = self.0.bucket(bucket) else {
            return Ok(Reaped::default());
        };
        Ok(shard.end_due(ids, self.0.clock.now_ms()))
    }

    async fn tidy(&self, buckets: &[u16], slowest: &[Option<Position>]) -> Result<(), StoreError> {
        for (bucket, slowest) in buckets.iter().zip(slowest) {
            while self.0.tidy(*bucket, *slowest, self.0.clock.now_ms()) {
                yield_now().await;
            }
        }
        while self.0.purge(self.0.clock.now_ms()) {
            yield_now().await;
        }
        Ok(())
    }
}
