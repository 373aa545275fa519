use super::super::answered::ScopeAnswered;
use super::Entry;
use crate::past::Step;
use threadkeep_domain::scope::{Compacted, Compaction, ScopeWrite, ScopeWritten};
use threadkeep_domain::{Access, IdempotencyKey, Life, Refusal, TurnToken};
use threadkeep_store::held_scope::{HeldScope, check_version};
use threadkeep_store::{Answered, ScopeEnd};

impl Entry {
    /// Writes to the thread's scope. If there is no thread, refuses a valid write with `NoThread`, and an invalid write
    /// with the refusal for its error.
    pub(crate) fn write_scope(
        &mut self,
        write: &ScopeWrite<'_>,
        step: &mut Step<'_>,
    ) -> Result<ScopeWritten, Refusal> {
        let (now_ms, key) = (step.now_ms, write.conditions.idempotency);
        let (access, turn) = (write.conditions.access, write.conditions.turn);
        if let Some(first) = self.open_scope((access, turn), key, step, ScopeAnswered::written)? {
            return Ok(first);
        }
        if self.is_unbound(access, now_ms) {
            return Err(Refusal::NoThread);
        }
        let is_watched = self.is_watched(step);
        let Some(living) = &mut self.living else {
            HeldScope::new(Life::default(), now_ms).write(write, now_ms)?;
            return Err(Refusal::NoThread);
        };
        let done = living.write_scope(write, now_ms)?;
        step.log_scope(living, &done, is_watched);
        let (written, ends_ms) = (done.written, living.expires_ms());
        self.remember_of_scope(key, now_ms, ends_ms, || {
            ScopeAnswered::Written(written.clone())
        });
        Ok(written)
    }

    pub(crate) fn compact(
        &mut self,
        compaction: &Compaction<'_>,
        step: &mut Step<'_>,
    ) -> Result<Compacted, Refusal> {
        let (now_ms, key) = (step.now_ms, compaction.idempotency);
        let caller = (compaction.access, compaction.turn);
        if let Some(first) = self.open_scope(caller, key, step, ScopeAnswered::compacted)? {
            return Ok(first);
        }
        if self.is_unbound(compaction.access, now_ms) {
            return Err(Refusal::NoThread);
        }
        let living = self.living.as_mut().ok_or(Refusal::NoThread)?;
        let compacted = match &mut living.scope {
            Some(scope) => scope.compact(compaction, now_ms)?,
            None => return Err(Refusal::PrefixChanged { count: 0 }),
        };
        living.slide(now_ms);
        let ends_ms = living.expires_ms();
        self.remember_of_scope(key, now_ms, ends_ms, || ScopeAnswered::Compacted(compacted));
        Ok(compacted)
    }

    /// Removes and returns the thread's scope, which the caller drops.
    pub(crate) fn end_scope(
        &mut self,
        end: &ScopeEnd,
        step: &mut Step<'_>,
    ) -> Result<(Answered<bool>, Option<Box<HeldScope>>), Refusal> {
        let (now_ms, key) = (step.now_ms, end.idempotency);
        let caller = (end.access, end.turn);
        if let Some(first) = self.open_scope(caller, key, step, ScopeAnswered::ended)? {
            return Ok((first, None));
        }
        let scope = self
            .living
            .as_ref()
            .and_then(|living| living.scope.as_ref());
        let stamp = scope.map(|scope| scope.stamp());
        check_version(end.expected, stamp.unwrap_or_default())?;
        let ended = self.living.as_mut().and_then(|living| {
            living.slide(now_ms);
            living.scope.take()
        });
        if let (Some(_), Some(records)) = (&ended, &mut self.scope_records) {
            records.expire_by(now_ms, now_ms);
        }
        let existed = ended.is_some();
        self.remember_of_scope(key, now_ms, now_ms, || ScopeAnswered::Ended(existed));
        Ok((Answered::fresh(existed), ended))
    }

    /// Sweeps the entry and checks whether a change to the scope is allowed. If an earlier request had the same
    /// idempotency key, returns that request's result, converted by `replay`.
    fn open_scope<T>(
        &mut self,
        (access, turn): (Access, Option<TurnToken>),
        key: Option<IdempotencyKey>,
        step: &mut Step<'_>,
        replay: impl FnOnce(&ScopeAnswered) -> Option<T>,
    ) -> Result<Option<T>, Refusal> {
        let now_ms = step.now_ms;
        self.sweep(step);
        self.check_access(access, now_ms)?;
        if let Some(records) = &self.scope_records
            && let Some(first) = records.replay(key, now_ms, replay)?
        {
            return Ok(Some(first));
        }
        self.check_turn(turn, now_ms)?;
        Ok(None)
    }

    fn remember_of_scope(
        &mut self,
        key: Option<IdempotencyKey>,
        now_ms: u64,
        ends_ms: u64,
        answer: impl FnOnce() -> ScopeAnswered,
    ) {
        if key.is_some() {
            let records = self.scope_records.get_or_insert_default();
            records.remember(key, now_ms, ends_ms, answer);
        }
    }
}
