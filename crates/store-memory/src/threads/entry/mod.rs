mod checkpoints;
mod ends;
mod images;
mod rotations;
mod scopes;
mod turns;
mod writes;

use super::answered::{Answered, ScopeAnswered};
use super::live_thread::LiveThread;
use super::records::Records;
use super::thread_lists::ListPosition;
use crate::past::Step;
use crate::slots::Due;
use threadkeep_domain::heap::Heap;
use threadkeep_domain::scope::HistorySummary;
use threadkeep_domain::threads::turn::check_turn;
use threadkeep_domain::{
    Access, Completed, Conditions, EndReason, IdempotencyKey, Life, Precondition, Refusal, Stamp,
    Tombstone, TurnToken, heap,
};

/// Everything that the store holds for one id: thread, tombstone, remembered results, and when its watch ends.
#[derive(Debug, Default)]
pub(crate) struct Entry {
    living: Option<LiveThread>,
    tombstone_ends_ms: u64,
    /// Until this time, writes from clients that have not read the thread since it was destroyed are rejected, even if
    /// the thread has been created again.
    stale_writes_until_ms: u64,
    /// True if the thread has moved to another id. If so, the tombstone rejects every write.
    is_moved: bool,
    records: Records<Answered>,
    /// Results of writes to the scope; most threads have none.
    scope_records: Option<Box<Records<ScopeAnswered>>>,
    watched_until_ms: u64,
}

impl Entry {
    /// Returns the thread, and extends its lifetime.
    pub(crate) fn touch(
        &mut self,
        access: Access,
        now_ms: u64,
    ) -> Result<Option<&mut LiveThread>, Refusal> {
        let Some(living) = self.living_mut(now_ms) else {
            return Ok(None);
        };
        access.check(living.owner_tag())?;
        living.slide(now_ms);
        Ok(Some(living))
    }

    pub(crate) fn living(&self, now_ms: u64) -> Option<&LiveThread> {
        let living = self.living.as_ref();
        living.filter(|living| living.expires_ms() > now_ms)
    }

    pub(crate) fn life(&self) -> Option<Life> {
        self.held().map(|living| living.stamp.life)
    }

    pub(crate) fn list_position(&self) -> Option<ListPosition> {
        self.living.as_ref()?.list_position()
    }

    /// Returns the thread. Also returns an expired thread whose end has not been logged yet.
    pub(crate) fn held(&self) -> Option<&LiveThread> {
        self.living.as_ref()
    }

    fn check_access(&self, access: Access, now_ms: u64) -> Result<(), Refusal> {
        access.check(self.living(now_ms).and_then(LiveThread::owner_tag))
    }

    /// Returns whether the caller has an owner but the thread does not. If so, an empty write must set the owner.
    pub(crate) fn is_unbound(&self, access: Access, now_ms: u64) -> bool {
        let living = self.living(now_ms);
        matches!(access, Access::Of(_)) && living.is_some_and(|living| living.owner_tag().is_none())
    }

    pub(crate) fn stamp(&self, now_ms: u64) -> Stamp {
        let living = self.living(now_ms);
        living.map_or(Stamp::default(), |living| living.stamp)
    }

    pub(crate) fn next_seq(&self, now_ms: u64) -> u64 {
        let living = self.living(now_ms);
        let scope = living.and_then(|living| living.scope.as_ref());
        scope
            .map_or(HistorySummary::EMPTY, |scope| scope.history())
            .next_seq
    }

    /// Returns whether the id has a thread. An expired thread counts until its end has been logged.
    pub(crate) fn has_thread(&self) -> bool {
        self.living.is_some()
    }

    pub(crate) fn has_answer(&self, key: IdempotencyKey, now_ms: u64) -> bool {
        self.records.has_answer(key, now_ms)
    }

    pub(crate) fn scope_has_answer(&self, key: IdempotencyKey, now_ms: u64) -> bool {
        let records = self.scope_records.as_ref();
        records.is_some_and(|records| records.has_answer(key, now_ms))
    }

    /// Ends an expired thread, and frees expired data. Returns whether a thread ended.
    pub(crate) fn sweep(&mut self, step: &mut Step<'_>) -> bool {
        self.records.sweep(step.now_ms);
        if let Some(records) = &mut self.scope_records {
            records.sweep(step.now_ms);
        }
        let expired = self
            .living
            .take_if(|living| living.expires_ms() <= step.now_ms);
        let Some(expired) = expired else {
            return false;
        };
        let ended_ms = expired.expires_ms();
        step.end(expired, EndReason::Expired, ended_ms);
        true
    }

    /// Sweeps the entry and checks whether a change is allowed. If an earlier request had the same idempotency key,
    /// returns its result, converted by `replay`. Ignores tombstones if `tombstone` is `None`.
    fn open<T>(
        &mut self,
        conditions: &Conditions,
        tombstone: Option<Tombstone>,
        step: &mut Step<'_>,
        replay: impl FnOnce(&Answered) -> Option<T>,
    ) -> Result<Option<T>, Refusal> {
        let now_ms = step.now_ms;
        self.sweep(step);
        self.check_access(conditions.access, now_ms)?;
        let key = conditions.idempotency;
        if let Some(first) = self.records.replay(key, now_ms, replay)? {
            return Ok(Some(first));
        }
        if tombstone.is_some_and(|tombstone| self.is_late(tombstone, now_ms)) {
            return Err(Refusal::Destroyed);
        }
        self.check_turn(conditions.turn, now_ms)?;
        self.check_precondition(conditions.precondition, now_ms)?;
        Ok(None)
    }

    fn check_turn(&self, token: Option<TurnToken>, now_ms: u64) -> Result<(), Refusal> {
        match self.living(now_ms) {
            Some(living) => living.check_turn(token, now_ms),
            None => check_turn(None, token, now_ms),
        }
    }

    fn check_precondition(
        &self,
        precondition: Option<Precondition>,
        now_ms: u64,
    ) -> Result<(), Refusal> {
        Precondition::check(precondition, self.stamp(now_ms))
    }

    fn is_watched(&self, step: &Step<'_>) -> bool {
        self.watched_until_ms > step.now_ms || step.past.is_all_watched(step.now_ms)
    }

    fn is_late(&self, tombstone: Tombstone, now_ms: u64) -> bool {
        match tombstone {
            Tombstone::Enforced => self.tombstone_ends_ms > now_ms,
            Tombstone::Ignored => self.is_moved && self.tombstone_ends_ms > now_ms,
            Tombstone::EnforcedAfter(seen) => {
                let living = self.living.as_ref();
                let is_same_life = living.is_some_and(|living| living.stamp.life == seen);
                self.stale_writes_until_ms > now_ms && !is_same_life
            }
        }
    }

    fn remember(
        &mut self,
        key: Option<IdempotencyKey>,
        now_ms: u64,
        answer: impl FnOnce() -> Answered,
    ) {
        let ends_ms = self.living.as_ref().map_or(now_ms, LiveThread::expires_ms);
        self.records.remember(key, now_ms, ends_ms, answer);
    }

    /// Shortens the lifetime of the results of an ended life.
    fn shorten_answers(&mut self, ends_ms: u64, now_ms: u64) {
        self.records.expire_by(ends_ms, now_ms);
        if let Some(records) = &mut self.scope_records {
            records.expire_by(ends_ms, now_ms);
        }
    }

    pub(crate) fn watch(&mut self, until_ms: u64) {
        self.watched_until_ms = self.watched_until_ms.max(until_ms);
    }

    pub(crate) fn complete(&mut self, completed: &Completed, step: &mut Step<'_>) {
        let living = self.living_mut(step.now_ms);
        step.log_completed(living, completed.clone());
    }

    pub(crate) fn living_mut(&mut self, now_ms: u64) -> Option<&mut LiveThread> {
        let living = self.living.as_mut();
        living.filter(|living| living.expires_ms() > now_ms)
    }
}

impl Heap for Entry {
    fn heap_bytes(&self) -> u64 {
        let scope_records = self.scope_records.as_deref().map_or(0, |records| {
            heap::array::<Records<ScopeAnswered>>(1) + records.heap_bytes()
        });
        self.living.as_ref().map_or(0, Heap::heap_bytes) + self.records.heap_bytes() + scope_records
    }
}

impl Due for Entry {
    fn due_ms(&self) -> u64 {
        let scope_records = self.scope_records.as_ref();
        match &self.living {
            Some(living) => living.expires_ms(),
            None => self
                .stale_writes_until_ms
                .max(self.records.ends_ms())
                .max(scope_records.map_or(0, |records| records.ends_ms()))
                .max(self.watched_until_ms),
        }
    }
}
