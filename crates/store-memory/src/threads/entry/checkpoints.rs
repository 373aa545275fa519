use super::super::answered::{Answered, Packed};
use super::Entry;
use crate::log::names;
use crate::past::Step;
use threadkeep_domain::{
    CheckpointName, Conditions, Document, EventKind, Life, Refusal, Tombstone, Write, Written,
};
use threadkeep_store::{Checkpoint, CheckpointDeleted, CheckpointSaved};

const HEEDED: Option<Tombstone> = Some(Tombstone::Enforced);

impl Entry {
    pub(crate) fn save_checkpoint(
        &mut self,
        name: Option<&CheckpointName>,
        conditions: &Conditions,
        step: &mut Step<'_>,
    ) -> Result<CheckpointSaved, Refusal> {
        if let Some(first) = self.open(conditions, HEEDED, step, Answered::saved)? {
            return Ok(first);
        }
        let living = self.living.as_mut().ok_or(Refusal::ThreadNotFound)?;
        let saved = CheckpointSaved {
            head: living.save(name.cloned(), step.now_ms)?,
            stamp: living.stamp,
            replayed: false,
        };
        self.remember(conditions.idempotency, step.now_ms, || {
            Answered::Saved(saved.clone())
        });
        Ok(saved)
    }

    /// Deletes a checkpoint. Moves it into `removed`; the caller frees it after releasing the lock.
    pub(crate) fn delete_checkpoint(
        &mut self,
        number: u32,
        conditions: &Conditions,
        removed: &mut Option<Checkpoint>,
        step: &mut Step<'_>,
    ) -> Result<CheckpointDeleted, Refusal> {
        if let Some(first) = self.open(conditions, HEEDED, step, Answered::deleted)? {
            return Ok(first);
        }
        let living = self.living.as_mut().ok_or(Refusal::ThreadNotFound)?;
        *removed = Some(living.delete_saved(number, step.now_ms)?);
        let deleted = CheckpointDeleted {
            stamp: living.stamp,
            replayed: false,
        };
        self.remember(conditions.idempotency, step.now_ms, || {
            Answered::Deleted(deleted)
        });
        Ok(deleted)
    }

    /// Restores a checkpoint. `read` contains the thread's life when the checkpoint was read, and the parsed state.
    pub(crate) fn restore_checkpoint(
        &mut self,
        number: u32,
        read: Option<(Life, Document)>,
        write: &Write<'_>,
        step: &mut Step<'_>,
    ) -> Result<Written, Refusal> {
        let now_ms = step.now_ms;
        if let Some(first) = self.open(&write.conditions, HEEDED, step, Answered::written)? {
            return Ok(first);
        }
        let is_watched = self.is_watched(step);
        let living = self.living.as_mut().ok_or(Refusal::ThreadNotFound)?;
        let saved = living.saved(number).ok_or(Refusal::CheckpointNotFound)?;
        let metadata = saved.content.metadata.clone();
        let (_, document) = read
            .filter(|(life, _)| *life == living.stamp.life)
            .ok_or(Refusal::Changed)?;
        living.check_reservation(write)?;
        let (written, before) = living.restore_content(document, metadata, write, now_ms);
        if is_watched {
            let now = living.document.iter();
            let keys = before.iter().chain(now).map(|(key, _)| key.clone());
            let kind = EventKind::Updated {
                keys: names::of_keys(&keys.collect()),
                metadata: true,
            };
            step.log(living, kind);
        }
        self.remember(write.conditions.idempotency, now_ms, || {
            Answered::Written(Packed::new(written.clone()))
        });
        Ok(written)
    }
}
