//! Threads as a whole.

use async_trait::async_trait;

use super::living::Living;
use crate::domain::{
    Access, Fork, IdempotencyKey, IfExists, Image, Import, Origin, Refusal, ThreadId, Written,
};
use crate::store::memory::MemoryStore;
use crate::store::{Images, Imported, WriteError};

#[async_trait]
impl Images for MemoryStore {
    async fn export(&self, id: &ThreadId, access: Access) -> Result<Option<Image>, WriteError> {
        let mut shard = self.0.of(id);
        let now_ms = self.0.clock.now_ms();
        let Some(living) = shard.look(id, now_ms) else {
            return Ok(None);
        };
        access.check(living.owner_tag())?;
        Ok(Some(living.image(now_ms)))
    }

    async fn import(&self, id: &ThreadId, import: &Import<'_>) -> Result<Imported, WriteError> {
        // what can be large is made before the lock
        let new = Living::of_image(import);
        let has_room = self.0.has_room();
        let mut shard = self.0.of(id);
        let now_ms = self.0.clock.now_ms();
        let knows = |key| {
            shard
                .entry(id)
                .is_some_and(|entry| entry.knows(key, now_ms))
        };
        if !has_room && !import.idempotency.is_some_and(knows) {
            return Err(self.0.budget.refuse().into());
        }
        let imported = shard.change(id, now_ms, |entry, step| entry.import(import, new, step));
        Ok(imported?)
    }

    async fn fork(
        &self,
        source: &ThreadId,
        id: &ThreadId,
        fork: &Fork<'_>,
    ) -> Result<Written, WriteError> {
        if let Some(key) = fork.idempotency
            && let Some(first) = self.answer_to(id, key)?
        {
            return Ok(first);
        }
        let image = self.source(source, fork)?;
        let origin = Origin {
            id: *source,
            version: image.thread.stamp.version,
        };
        let import = Import {
            image: &fork.of(&origin, image),
            origin: Some(origin),
            if_exists: IfExists::Fail,
            turn: None,
            idempotency: fork.idempotency,
            policy: fork.policy,
        };
        match self.import(id, &import).await? {
            Imported::Made(written) => Ok(written),
            Imported::Skipped(_) => Err(Refusal::ThreadExists.into()),
        }
    }
}

impl MemoryStore {
    fn answer_to(&self, id: &ThreadId, key: IdempotencyKey) -> Result<Option<Written>, Refusal> {
        let shard = self.0.of(id);
        let now_ms = self.0.clock.now_ms();
        let entry = shard.entry(id);
        entry.map_or(Ok(None), |entry| entry.find(key, now_ms))
    }

    fn source(&self, id: &ThreadId, fork: &Fork<'_>) -> Result<Image, Refusal> {
        let mut shard = self.0.of(id);
        let now_ms = self.0.clock.now_ms();
        shard.change(id, now_ms, |entry, _| entry.source(fork, now_ms))
    }
}
