//! Everything that the store knows about one id.

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
use super::thread_lists::Place;
use crate::past::Step;
use crate::slots::Due;
use threadkeep_domain::heap::Heap;
use threadkeep_domain::scope::HistorySummary;
use threadkeep_domain::threads::turn::check_turn;
use threadkeep_domain::{
    Access, Completed, Conditions, EndReason, IdempotencyKey, Life, Precondition, Refusal, Stamp,
    Tombstone, TurnToken, heap,
};

/// A thread, its tombstone, the answers that are remembered with it, and whether its changes are
/// logged.
#[derive(Debug, Default)]
pub(crate) struct Entry {
    living: Option<LiveThread>,
    tombstone_ends_ms: u64,
    /// Until when clients that have seen nothing since the thread was destroyed are rejected, even if it has a new
    /// life.
    late_until_ms: u64,
    /// Whether the thread has another id now: then the tombstone rejects every write.
    is_moved: bool,
    records: Records<Answered>,
    /// The answers that its scope has given; those of most threads give none.
    scope_records: Option<Box<Records<ScopeAnswered>>>,
    watched_until_ms: u64,
}

impl Entry {
    /// The thread, its end moved to now + TTL.
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

    /// The thread, if it lives then.
    pub(crate) fn living(&self, now_ms: u64) -> Option<&LiveThread> {
        let living = self.living.as_ref();
        living.filter(|living| living.expires_ms() > now_ms)
    }

    /// The life of that thread.
    pub(crate) fn life(&self) -> Option<Life> {
        self.held().map(|living| living.stamp.life)
    }

    /// Where it stands in the lists of owners.
    pub(crate) fn place(&self) -> Option<Place> {
        self.living.as_ref()?.place()
    }

    /// The thread, or one whose end is still to be logged.
    pub(crate) fn held(&self) -> Option<&LiveThread> {
        self.living.as_ref()
    }

    /// Whether the caller may use the thread.
    fn check_access(&self, access: Access, now_ms: u64) -> Result<(), Refusal> {
        access.check(self.living(now_ms).and_then(LiveThread::owner_tag))
    }

    /// A write that only an empty write can prepare: it makes the thread, or binds it to the caller's owner.
    pub(crate) fn is_unbound(&self, access: Access, now_ms: u64) -> bool {
        let living = self.living(now_ms);
        matches!(access, Access::Of(_)) && living.is_some_and(|living| living.owner_tag().is_none())
    }

    /// Version and life, or the stamp of a thread that does not exist.
    pub(crate) fn stamp(&self, now_ms: u64) -> Stamp {
        let living = self.living(now_ms);
        living.map_or(Stamp::default(), |living| living.stamp)
    }

    /// The place that the next item of the thread's history gets.
    pub(crate) fn next_seq(&self, now_ms: u64) -> u64 {
        let living = self.living(now_ms);
        let scope = living.and_then(|living| living.scope.as_ref());
        scope
            .map_or(HistorySummary::EMPTY, |scope| scope.history())
            .next_seq
    }

    /// Whether there is a thread, or one whose end is still to be logged.
    pub(crate) fn has_thread(&self) -> bool {
        self.living.is_some()
    }

    /// Whether a write with that key was answered before.
    pub(crate) fn has_answer(&self, key: IdempotencyKey, now_ms: u64) -> bool {
        self.records.has_answer(key, now_ms)
    }

    /// Whether a write to the thread's scope with that key was answered before.
    pub(crate) fn scope_has_answer(&self, key: IdempotencyKey, now_ms: u64) -> bool {
        let records = self.scope_records.as_ref();
        records.is_some_and(|records| records.has_answer(key, now_ms))
    }

    /// Ends an expired thread, and frees expired data. Returns whether it ended one.
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

    /// Checks whether a change may be done, after a sweep. Returns the answer to an earlier request with the same
    /// key, as `replay` reads it. None ignores the tombstone.
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

    /// Whether changes are logged.
    fn is_watched(&self, step: &Step<'_>) -> bool {
        self.watched_until_ms > step.now_ms || step.past.is_all_watched(step.now_ms)
    }

    /// Whether a write is one that a tombstone stops.
    fn is_late(&self, tombstone: Tombstone, now_ms: u64) -> bool {
        match tombstone {
            Tombstone::Heeded => self.tombstone_ends_ms > now_ms,
            Tombstone::Ignored => self.is_moved && self.tombstone_ends_ms > now_ms,
            Tombstone::HeededAfter(seen) => {
                let living = self.living.as_ref();
                let is_it = living.is_some_and(|living| living.stamp.life == seen);
                self.late_until_ms > now_ms && !is_it
            }
        }
    }

    /// Remembers an answer for as long as the thread lives.
    fn remember(
        &mut self,
        key: Option<IdempotencyKey>,
        now_ms: u64,
        answer: impl FnOnce() -> Answered,
    ) {
        let ends_ms = self.living.as_ref().map_or(now_ms, LiveThread::expires_ms);
        self.records.remember(key, now_ms, ends_ms, answer);
    }

    /// Has answers end soon, since the life that gave them has ended.
    fn end_answers(&mut self, ends_ms: u64, now_ms: u64) {
        self.records.end_soon(ends_ms, now_ms);
        if let Some(records) = &mut self.scope_records {
            records.end_soon(ends_ms, now_ms);
        }
    }

    /// Has changes logged until then.
    pub(crate) fn watch(&mut self, until_ms: u64) {
        self.watched_until_ms = self.watched_until_ms.max(until_ms);
    }

    pub(crate) fn complete(&mut self, completed: &Completed, step: &mut Step<'_>) {
        let living = self.living_mut(step.now_ms);
        step.log_completed(living, completed.clone());
    }

    /// The thread, if it lives then, to be changed.
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
                .late_until_ms
                .max(self.records.ends_ms())
                .max(scope_records.map_or(0, |records| records.ends_ms()))
                .max(self.watched_until_ms),
        }
    }
}
