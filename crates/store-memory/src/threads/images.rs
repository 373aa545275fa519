use async_trait::async_trait;

use super::held_checkpoints::HeldCheckpoints;
use super::live_thread::LiveThread;
use crate::MemoryStore;
use threadkeep_domain::{Access, Fork, IdempotencyKey, Image, Import, Refusal, ThreadId, Written};
use threadkeep_store::{Images, Imported, StoreError, WriteError};

#[async_trait]
impl Images for MemoryStore {
    async fn export(&self, id: &ThreadId, access: Access) -> Result<Option<Image>, WriteError> {
        let mut shard = self.0.of(id);
        let now_ms = self.0.clock.now_ms();
        let Some(living) = shard.living_mut(id, now_ms) else {
            return Ok(None);
        };
        access.check(living.owner_tag())?;
        let exported = living.image(now_ms);
        drop(shard);
        Ok(Some(with_checkpoints(exported)?))
    }

    async fn import(&self, id: &ThreadId, import: &Import<'_>) -> Result<Imported, WriteError> {
        // large values are built before the lock is taken
        let new = LiveThread::of_image(import);
        self.change_in_room(id, import.idempotency, |entry, step| {
            entry.import(import, new, step)
        })
    }

    async fn fork(
        &self,
        source: &ThreadId,
        id: &ThreadId,
        fork: &Fork<'_>,
    ) -> Result<Written, WriteError> {
        if let Some(first) = self.answer_to(id, fork.conditions.idempotency)? {
            return Ok(first);
        }
        let (image, saved) = self.change(source, |entry, step| entry.source(fork, step.now_ms))?;
        let saved = saved.zip(fork.checkpoint);
        let saved = saved.map(|(saved, number)| saved.only(number));
        let image = with_checkpoints((image, saved))?;
        let (origin, image) = fork.of(source, image)?;
        let imported = self.import(id, &fork.import(origin, &image)).await?;
        Ok(imported.made()?)
    }
}

impl MemoryStore {
    fn answer_to(
        &self,
        id: &ThreadId,
        key: Option<IdempotencyKey>,
    ) -> Result<Option<Written>, Refusal> {
        let shard = self.0.of(id);
        let now_ms = self.0.clock.now_ms();
        let entry = shard.entry(id);
        entry.map_or(Ok(None), |entry| entry.find(key, now_ms))
    }
}

/// Adds the checkpoints to an image. Parses them, which is slow, so do not call this under a lock.
fn with_checkpoints((image, saved): (Image, Option<HeldCheckpoints>)) -> Result<Image, StoreError> {
    let Some(saved) = saved else {
        return Ok(image);
    };
    Ok(Image {
        checkpoints: saved.image()?,
        ..image
    })
}
