use async_trait::async_trait;

use super::held_checkpoints::read_state;
use crate::MemoryStore;
use threadkeep_domain::{
    Access, CheckpointName, Conditions, Document, Life, Refusal, ThreadId, Write, Written,
};
use threadkeep_store::{
    Checkpoint, CheckpointDeleted, CheckpointHead, CheckpointSaved, Checkpoints, Found, StoreError,
    WriteError,
};

#[async_trait]
impl Checkpoints for MemoryStore {
    async fn save_checkpoint(
        &self,
        id: &ThreadId,
        name: Option<&CheckpointName>,
        conditions: &Conditions,
    ) -> Result<CheckpointSaved, WriteError> {
        self.change_in_room(id, conditions.idempotency, |entry, step| {
            entry.save_checkpoint(name, conditions, step)
        })
    }

    async fn list_checkpoints(
        &self,
        id: &ThreadId,
        access: Access,
    ) -> Result<Option<Found<Vec<CheckpointHead>>>, WriteError> {
        self.read(id, access.into(), |living| {
            let saved = living.saved.as_ref();
            let heads = saved.map(|saved| saved.heads().rev().cloned());
            heads.into_iter().flatten().collect()
        })
    }

    async fn get_checkpoint(
        &self,
        id: &ThreadId,
        access: Access,
        number: u32,
    ) -> Result<Option<Found<Checkpoint>>, WriteError> {
        let found = self.read(id, access.into(), |living| living.saved(number).cloned())?;
        Ok(found.and_then(|Found { stamp, content }| {
            let content = content?;
            Some(Found { stamp, content })
        }))
    }

    async fn restore_checkpoint(
        &self,
        id: &ThreadId,
        number: u32,
        write: &Write<'_>,
    ) -> Result<Written, WriteError> {
        let has_room = self.0.has_room();
        loop {
            // safe without the lock, because a checkpoint does not change until the thread ends
            let checkpoint = self.read_saved(id, number)?;
            let mut shard = self.0.of(id);
            let now_ms = self.0.clock.now_ms();
            if !has_room && !shard.has_answered(id, write.conditions.idempotency, now_ms) {
                return Err(self.0.budget.refuse().into());
            }
            let restored = shard.change(id, now_ms, |entry, step| {
                entry.restore_checkpoint(number, checkpoint, write, step)
            });
            // reads the checkpoint again if the thread ended and was created again in the meantime
            if restored != Err(Refusal::Changed) {
                return Ok(restored?);
            }
        }
    }

    async fn delete_checkpoint(
        &self,
        id: &ThreadId,
        number: u32,
        conditions: &Conditions,
    ) -> Result<CheckpointDeleted, WriteError> {
        // declared before the lock is taken, so that it is dropped after the lock is released
        let mut removed = None;
        Ok(self.change(id, |entry, step| {
            entry.delete_checkpoint(number, conditions, &mut removed, step)
        })?)
    }
}

impl MemoryStore {
    fn read_saved(
        &self,
        id: &ThreadId,
        number: u32,
    ) -> Result<Option<(Life, Document)>, StoreError> {
        let shard = self.0.of(id);
        let saved = shard.living(id, self.0.clock.now_ms()).and_then(|living| {
            Some((
                living.stamp.life,
                living.saved(number)?.content.state.clone(),
            ))
        });
        drop(shard);
        let Some((life, state)) = saved else {
            return Ok(None);
        };
        Ok(Some((life, read_state(&state)?)))
    }
}
