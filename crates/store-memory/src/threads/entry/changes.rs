//! Changes of a thread that are no writes to its state, and restorations of checkpoints.

use super::super::answered::{Answered, Packed};
use super::super::living::Living;
use super::super::records::Records;
use super::{Entry, check};
use crate::log::names;
use crate::past::Step;
use threadkeep_domain::{
    CheckpointName, Conditions, Document, EventKind, Life, Refusal, ThreadId, Tombstone, Write,
    Written,
};
use threadkeep_store::{Checkpoint, CheckpointDeleted, CheckpointSaved, Rotate, Rotated, millis};

/// A thread to be changed, or the answer to an earlier request.
enum Opened<'a> {
    Living(&'a mut Living, &'a mut Records<Answered>),
    /// There is no thread.
    Nothing,
    Answered(&'a Answered),
}

impl Entry {
    /// The thread, if there is one, for a change that is no write to its state, if the conditions are met; or the
    /// answer that the same request was given before.
    fn open(
        &mut self,
        conditions: &Conditions,
        step: &mut Step<'_>,
    ) -> Result<Opened<'_>, Refusal> {
        let now_ms = step.now_ms;
        self.sweep(step);
        self.check_access(conditions.access, now_ms)?;
        if let Some(key) = conditions.idempotency
            && self.records.find(key, now_ms)?.is_some()
        {
            // found again, for the borrow of the one above would last
            let first = self.records.find(key, now_ms)?;
            return Ok(Opened::Answered(
                first.ok_or(Refusal::IdempotencyKeyReused)?,
            ));
        }
        if self.is_late(Tombstone::Heeded, now_ms) {
            return Err(Refusal::Destroyed);
        }
        self.check_turn(conditions.turn, now_ms)?;
        check(conditions.precondition, self.stamp(now_ms))?;
        Ok(match &mut self.living {
            Some(living) => Opened::Living(living, &mut self.records),
            None => Opened::Nothing,
        })
    }

    pub(crate) fn save_checkpoint(
        &mut self,
        name: Option<&CheckpointName>,
        conditions: &Conditions,
        step: &mut Step<'_>,
    ) -> Result<CheckpointSaved, Refusal> {
        let now_ms = step.now_ms;
        let (living, records) = match self.open(conditions, step)? {
            Opened::Living(living, records) => (living, records),
            Opened::Nothing => return Err(Refusal::ThreadNotFound),
            Opened::Answered(Answered::Saved(first)) => {
                return Ok(CheckpointSaved {
                    replayed: true,
                    ..first.clone()
                });
            }
            Opened::Answered(_) => return Err(Refusal::IdempotencyKeyReused),
        };
        let saved = CheckpointSaved {
            head: living.save(name.cloned(), now_ms)?,
            stamp: living.stamp,
            replayed: false,
        };
        if let Some(key) = conditions.idempotency {
            let answer = Answered::Saved(saved.clone());
            records.add(key, answer, now_ms, living.expires_ms());
        }
        Ok(saved)
    }

    /// Deletes a checkpoint, which goes into `gone`, to be freed when the lock is released.
    pub(crate) fn delete_checkpoint(
        &mut self,
        number: u32,
        conditions: &Conditions,
        gone: &mut Option<Checkpoint>,
        step: &mut Step<'_>,
    ) -> Result<CheckpointDeleted, Refusal> {
        let now_ms = step.now_ms;
        let (living, records) = match self.open(conditions, step)? {
            Opened::Living(living, records) => (living, records),
            Opened::Nothing => return Err(Refusal::ThreadNotFound),
            Opened::Answered(Answered::Deleted(first)) => {
                return Ok(CheckpointDeleted {
                    replayed: true,
                    ..*first
                });
            }
            Opened::Answered(_) => return Err(Refusal::IdempotencyKeyReused),
        };
        *gone = Some(living.delete_saved(number, now_ms)?);
        let deleted = CheckpointDeleted {
            stamp: living.stamp,
            replayed: false,
        };
        if let Some(key) = conditions.idempotency {
            let answer = Answered::Deleted(deleted);
            records.add(key, answer, now_ms, living.expires_ms());
        }
        Ok(deleted)
    }

    /// Goes back to a checkpoint of that life, whose state was read as that document.
    pub(crate) fn restore_checkpoint(
        &mut self,
        number: u32,
        read: Option<(Life, Document)>,
        write: &Write<'_>,
        step: &mut Step<'_>,
    ) -> Result<Written, Refusal> {
        let now_ms = step.now_ms;
        let conditions = Conditions {
            precondition: write.precondition,
            access: write.access,
            turn: write.turn,
            idempotency: write.idempotency,
        };
        let is_watched = self.watched_until_ms > now_ms || step.past.is_all_watched(now_ms);
        let (living, records) = match self.open(&conditions, step)? {
            Opened::Living(living, records) => (living, records),
            Opened::Nothing => return Err(Refusal::ThreadNotFound),
            Opened::Answered(Answered::Written(first)) => return Ok(first.replay()),
            Opened::Answered(_) => return Err(Refusal::IdempotencyKeyReused),
        };
        let saved = living.saved(number).ok_or(Refusal::CheckpointNotFound)?;
        let metadata = saved.content.metadata.clone();
        let (_, document) = read
            .filter(|(life, _)| *life == living.stamp.life)
            .ok_or(Refusal::Changed)?;
        living.check_place(write)?;
        let (written, before) = living.go_back(document, metadata, write, now_ms);
        if is_watched {
            let now = living.document.iter();
            let keys = before.iter().chain(now).map(|(key, _)| key.clone());
            let kind = EventKind::Updated {
                keys: names::of_keys(&keys.collect()),
                metadata: true,
            };
            step.log(living, kind);
        }
        if let Some(key) = write.idempotency {
            let answer = Answered::Written(Packed::new(written.clone()));
            records.add(key, answer, now_ms, living.expires_ms());
        }
        Ok(written)
    }

    /// Moves the thread to another id: returns the entry that this id gets, if there is a thread, and leaves a
    /// tombstone.
    pub(crate) fn rotate(
        &mut self,
        to: &ThreadId,
        rotate: &Rotate,
        step: &mut Step<'_>,
    ) -> Result<(Rotated, Option<Self>), Refusal> {
        let now_ms = step.now_ms;
        let key = rotate.conditions.idempotency;
        match self.open(&rotate.conditions, step)? {
            Opened::Living(..) | Opened::Nothing => {}
            Opened::Answered(Answered::Rotated(first)) => {
                let again = Rotated {
                    replayed: true,
                    ..first.as_ref().clone()
                };
                return Ok((again, None));
            }
            Opened::Answered(_) => return Err(Refusal::IdempotencyKeyReused),
        }
        let Some(mut living) = self.living.take() else {
            let rotated = Rotated {
                id: *to,
                thread: None,
                replayed: false,
            };
            if let Some(key) = key {
                let answer = Answered::Rotated(Box::new(rotated.clone()));
                self.records.add(key, answer, now_ms, now_ms);
            }
            return Ok((rotated, None));
        };
        living.slide(now_ms);
        step.log(&mut living, EventKind::Rotated { to: *to });
        let rotated = Rotated {
            id: *to,
            thread: Some(living.describe()),
            replayed: false,
        };
        self.tombstone_ends_ms = now_ms.saturating_add(millis(rotate.tombstone));
        self.late_until_ms = self.tombstone_ends_ms;
        self.is_moved = true;
        let mut moved = Self {
            records: std::mem::take(&mut self.records),
            scope_records: self.scope_records.take(),
            watched_until_ms: std::mem::take(&mut self.watched_until_ms),
            ..Self::default()
        };
        if let Some(key) = key {
            let answer = || Answered::Rotated(Box::new(rotated.clone()));
            self.records
                .add(key, answer(), now_ms, self.tombstone_ends_ms);
            moved
                .records
                .add(key, answer(), now_ms, living.expires_ms());
        }
        moved.living = Some(living);
        Ok((rotated, Some(moved)))
    }
}
