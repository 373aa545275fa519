use super::super::answered::{Answered, Packed};
use super::super::held_checkpoints::HeldCheckpoints;
use super::super::live_thread::LiveThread;
use super::Entry;
use crate::log::names;
use crate::past::Step;
use threadkeep_domain::{
    AHEAD_MAX_MS, EndReason, EventKind, Fork, IdempotencyKey, IfExists, Image, Import, Refusal,
    Tombstone, Written,
};
use threadkeep_store::Imported;

impl Entry {
    pub(crate) fn find(
        &self,
        key: Option<IdempotencyKey>,
        now_ms: u64,
    ) -> Result<Option<Written>, Refusal> {
        self.records.replay(key, now_ms, Answered::written)
    }

    pub(crate) fn import(
        &mut self,
        import: &Import<'_>,
        mut new: LiveThread,
        step: &mut Step<'_>,
    ) -> Result<Imported, Refusal> {
        let now_ms = step.now_ms;
        self.sweep(step);
        if let Some(first) = self.find(import.idempotency, now_ms)? {
            return Ok(Imported::Made(first));
        }
        let created_ms = import.image.thread.created_ms;
        if import.origin.is_none() && created_ms > now_ms + AHEAD_MAX_MS {
            return Err(Refusal::CreatedAhead);
        }
        if self.is_late(Tombstone::Enforced, now_ms) {
            return Err(Refusal::Destroyed);
        }
        if let Some(living) = &self.living {
            match import.if_exists {
                IfExists::Fail => return Err(Refusal::ThreadExists),
                IfExists::Skip => return Ok(Imported::Skipped(living.describe())),
                IfExists::Replace => living.check_turn(import.turn, now_ms)?,
            }
        }
        let is_one_more = |owner| {
            !self
                .living
                .as_ref()
                .is_some_and(|old| old.belongs_to(owner))
        };
        if !import.has_reservation && import.image.thread.owner.as_ref().is_some_and(is_one_more) {
            return Err(Refusal::NoReservation);
        }
        if let Some(replaced) = self.living.take() {
            step.end(replaced, EndReason::Destroyed, now_ms);
            self.shorten_answers(now_ms, now_ms);
        }
        new.begin(import, step.past.ended_threads.sequence(step.id), now_ms);
        let kind = EventKind::Created {
            keys: names::of_document(&new.document),
            restored: false,
        };
        step.log(&mut new, kind);
        if let Some(origin) = import.origin {
            let origin = Box::new(origin);
            step.log(&mut new, EventKind::Forked { origin });
        }
        self.tombstone_ends_ms = 0;
        let thread = new.describe();
        let written = Written {
            stamp: thread.stamp,
            size_bytes: thread.size_bytes,
            answers: Vec::new(),
            thread: Some(thread),
            replayed: false,
        };
        self.living = Some(new);
        self.remember(import.idempotency, now_ms, || {
            Answered::Written(Packed::new(written.clone()))
        });
        Ok(Imported::Made(written))
    }

    pub(crate) fn source(
        &mut self,
        fork: &Fork<'_>,
        now_ms: u64,
    ) -> Result<(Image, Option<HeldCheckpoints>), Refusal> {
        let conditions = &fork.conditions;
        self.check_access(conditions.access, now_ms)?;
        if conditions.turn.is_some() {
            self.check_turn(conditions.turn, now_ms)?;
        }
        self.check_precondition(conditions.precondition, now_ms)?;
        let living = self.living_mut(now_ms).ok_or(Refusal::ThreadNotFound)?;
        living.slide(now_ms);
        Ok(living.image(now_ms))
    }
}
