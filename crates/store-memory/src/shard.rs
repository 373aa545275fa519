//! A shard: a subset of the ids, behind one lock.

use std::time::Duration;

use super::budget::Part;
use super::past::{Past, Step};
use super::responses::HeldResponses;
use super::scopes::entry::ScopeEntry;
use super::slots::Slots;
use super::threads::entry::Entry;
use super::threads::former_ids::FormerIds;
use super::threads::live_thread::LiveThread;
use super::threads::thread_lists::{ListPosition, ThreadLists};
use threadkeep_domain::heap::Heap;
use threadkeep_domain::idempotency::ANSWER_TTL_MAX;
use threadkeep_domain::response::held::HeldResponse;
use threadkeep_domain::scope::{Compaction, ScopeId, ScopeWrite, ScopeWritten};
use threadkeep_domain::threads::turn::check_turn;
use threadkeep_domain::{
    Access, IdempotencyKey, Life, OwnerTag, Refusal, Retention, ThreadId, Write,
};
use threadkeep_store::held_scope::HeldScope;
use threadkeep_store::{
    Erased, OwnedPosition, Reader, Reaped, Rotate, Rotated, ThreadOrder, Watched, millis,
};

#[derive(Debug)]
pub(super) struct Shard {
    slots: Slots<ThreadId, Entry>,
    scopes: Slots<ScopeId, ScopeEntry>,
    listed: ThreadLists,
    former_ids: FormerIds,
    pub(super) responses: HeldResponses,
    pub(super) past: Past,
}

/// Erased content, to be freed after the lock is released.
#[derive(Debug, Default)]
pub(super) struct ErasedContent {
    threads: Vec<LiveThread>,
    responses: Vec<HeldResponse>,
}

impl Shard {
    pub(super) fn new(bucket: u16, retention: Retention) -> Self {
        Self {
            slots: Slots::default(),
            scopes: Slots::default(),
            listed: ThreadLists::default(),
            former_ids: FormerIds::default(),
            responses: HeldResponses::default(),
            past: Past::new(bucket, retention),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len() + self.scopes.len() + self.responses.len() + self.past.len()
    }

    pub(super) fn threads(&self) -> u64 {
        self.listed.threads()
    }

    /// Returns a live thread and extends its lifetime. Fails if the caller has no access to the thread.
    pub(super) fn touch(
        &mut self,
        id: &ThreadId,
        access: Access,
        now_ms: u64,
    ) -> Result<Option<&mut LiveThread>, Refusal> {
        match self.slots.get_mut(id) {
            Some(entry) => entry.touch(access, now_ms),
            None => Ok(None),
        }
    }

    /// Returns a live thread, and extends its lifetime if `reader.touch` is true. Fails if the caller has no access to
    /// the thread.
    pub(super) fn find(
        &mut self,
        id: &ThreadId,
        reader: Reader,
        now_ms: u64,
    ) -> Result<Option<&mut LiveThread>, Refusal> {
        if reader.touch {
            return self.touch(id, reader.access, now_ms);
        }
        let living = self.living_mut(id, now_ms);
        let owner = living.as_ref().and_then(|living| living.owner_tag());
        reader.access.check(owner)?;
        Ok(living)
    }

    pub(super) fn living_mut(&mut self, id: &ThreadId, now_ms: u64) -> Option<&mut LiveThread> {
        self.slots.get_mut(id)?.living_mut(now_ms)
    }

    /// Returns the thread, without extending its lifetime, and the responses.
    pub(super) fn with_responses(
        &mut self,
        id: &ThreadId,
        now_ms: u64,
    ) -> (Option<&mut LiveThread>, &HeldResponses) {
        let entry = self.slots.get_mut(id);
        let living = entry.and_then(|entry| entry.living_mut(now_ms));
        (living, &self.responses)
    }

    pub(super) fn rotate(
        &mut self,
        id: &ThreadId,
        to: &ThreadId,
        rotate: &Rotate,
        now_ms: u64,
    ) -> Result<Rotated, Refusal> {
        let (rotated, moved) =
            self.change(id, now_ms, |entry, step| entry.rotate(to, rotate, step))?;
        if let Some(moved) = moved {
            if let Some(living) = moved.held() {
                let Retention { archive, .. } = self.past.retention;
                let retained = archive
                    .max(self.past.retention.log_max())
                    .max(2 * ANSWER_TTL_MAX);
                let oldest_ms = now_ms.saturating_sub(millis(retained));
                let life = living.stamp.life;
                self.former_ids.note(life, (id, to), now_ms, oldest_ms);
            }
            self.change(to, now_ms, |entry, _| *entry = moved);
        }
        Ok(rotated)
    }

    pub(super) fn has_entry(&self, id: &ThreadId) -> bool {
        self.slots.get(id).is_some()
    }

    pub(super) fn watch(&mut self, id: &ThreadId, until_ms: u64, now_ms: u64) -> Watched {
        self.change(id, now_ms, |entry, step| {
            entry.watch(until_ms);
            Watched {
                stamp: entry.stamp(now_ms),
                next_seq: entry.next_seq(now_ms),
                head: step.past.log.last(),
            }
        })
    }

    pub(super) fn change<T>(
        &mut self,
        id: &ThreadId,
        now_ms: u64,
        change: impl FnOnce(&mut Entry, &mut Step<'_>) -> T,
    ) -> T {
        let (past, listed) = (&mut self.past, &mut self.listed);
        let responses = &mut self.responses;
        let mut step = Step { id, now_ms, past };
        self.slots.change(id, |entry| {
            let before = ListingBefore::of(entry);
            let changed = change(entry, &mut step);
            if let Some(ListPosition { owner, .. }) = before.position
                && let Some(living) = entry.held()
                && entry
                    .list_position()
                    .is_none_or(|after| after.owner != owner)
            {
                listed.note_former((*id, living.stamp.life), owner, now_ms);
            }
            before.relist(id, entry, listed, responses);
            changed
        })
    }

    /// Returns an owner's threads that sort before `position`, newest first.
    pub(super) fn owned_before(
        &self,
        owner: OwnerTag,
        order: ThreadOrder,
        position: Option<OwnedPosition>,
    ) -> impl Iterator<Item = OwnedPosition> {
        self.listed.before(owner, order, position)
    }

    /// Erases up to `limit` of an owner's threads and archives, threads first. Moves their content into `removed`; the
    /// caller frees it after releasing the lock. Returns `None` if nothing was left to erase.
    pub(super) fn erase_owned(
        &mut self,
        owner: OwnerTag,
        tombstone: Duration,
        limit: usize,
        now_ms: u64,
        removed: &mut ErasedContent,
    ) -> Option<Erased> {
        // responses of ended lives may outlive the archives
        let responses = self.responses.erase_ended(owner, limit);
        if !responses.is_empty() {
            removed.responses = responses;
            return Some(Erased::default());
        }
        let former = self.listed.take_former(owner, limit);
        for (id, life) in &former {
            for id in self.former_ids.ids(*life).into_iter().chain([*id]) {
                self.change(&id, now_ms, |entry, _| entry.forget_answers());
            }
        }
        let owned = self.owned_before(owner, ThreadOrder::Created, None);
        let ids: Vec<_> = owned.take(limit).map(|(_, id)| id).collect();
        let ended = self.past.ended_threads.of_owner(owner);
        let ended: Vec<_> = ended.take(limit - ids.len()).collect();
        if ids.is_empty() && ended.is_empty() && former.is_empty() {
            return None;
        }
        let mut erased = Erased::default();
        let erase_former_ids = |shard: &mut Self, life, created_ms| {
            let former = shard.former_ids.take(life, limit);
            for id in &former {
                shard.past.note_erased(owner, id, life, created_ms);
                shard.change(id, now_ms, |entry, _| {
                    entry.leave_tombstone(tombstone, now_ms);
                });
            }
            former.len() < limit
        };
        for id in ids {
            let Some(living) = self.slots.get(&id).and_then(Entry::held) else {
                continue;
            };
            let (life, created_ms) = (living.stamp.life, living.created_ms());
            removed.responses.extend(self.responses.erase(life, limit));
            if removed.responses.len() >= limit {
                return Some(erased);
            }
            if !erase_former_ids(self, life, created_ms) {
                return Some(erased);
            }
            self.past.note_erased(owner, &id, life, created_ms);
            let content = self.change(&id, now_ms, |entry, step| entry.erase(tombstone, step));
            removed.threads.extend(content);
            erased.threads += 1;
        }
        for (id, life) in ended {
            let Some(last) = self.past.ended_threads.get(&id, Some(life)) else {
                continue;
            };
            let created_ms = last.living.created_ms();
            if !erase_former_ids(self, life, created_ms) {
                return Some(erased);
            }
            self.past.note_erased(owner, &id, life, created_ms);
            if let Some(last) = self.past.ended_threads.remove(&id, life) {
                erased.archives += u64::from(!last.is_restored);
                removed.threads.push(last.living);
            }
            self.change(&id, now_ms, |entry, _| {
                entry.leave_tombstone(tombstone, now_ms);
            });
        }
        Some(erased)
    }

    pub(super) fn is_unbound(&self, id: &ThreadId, access: Access, now_ms: u64) -> bool {
        let entry = self.slots.get(id);
        entry.is_some_and(|entry| entry.is_unbound(access, now_ms))
    }

    pub(super) fn entry(&self, id: &ThreadId) -> Option<&Entry> {
        self.slots.get(id)
    }

    pub(super) fn after(&self, id: &ThreadId) -> impl Iterator<Item = (&ThreadId, &Entry)> {
        self.slots.after(id)
    }

    pub(super) fn living(&self, id: &ThreadId, now_ms: u64) -> Option<&LiveThread> {
        self.slots.get(id)?.living(now_ms)
    }

    /// Returns a scope that does not belong to a thread. If `is_use` is true, also extends the lifetime of a scope that
    /// has an idle lifetime.
    pub(super) fn get_scope(
        &mut self,
        scope: &ScopeId,
        is_use: bool,
        now_ms: u64,
    ) -> Option<(&mut HeldScope, Option<u64>)> {
        self.scopes.get_mut(scope)?.get(is_use, now_ms)
    }

    pub(super) fn has_answered(
        &self,
        id: &ThreadId,
        key: Option<IdempotencyKey>,
        now_ms: u64,
    ) -> bool {
        key.zip(self.slots.get(id))
            .is_some_and(|(key, entry)| entry.has_answer(key, now_ms))
    }

    /// Returns whether a full store accepts `write`. Retries and writes that only delete data are accepted.
    pub(super) fn accepts_when_full(
        &mut self,
        id: &ThreadId,
        write: &Write<'_>,
        now_ms: u64,
    ) -> bool {
        self.has_answered(id, write.conditions.idempotency, now_ms)
            || write.only_deletes() && self.living_mut(id, now_ms).is_some()
    }

    pub(super) fn accepts_scope_when_full(
        &mut self,
        scope: &ScopeId,
        write: &ScopeWrite<'_>,
        now_ms: u64,
    ) -> bool {
        let has_answer = |key| match scope.thread() {
            Some(id) => {
                let entry = self.slots.get(id);
                entry.is_some_and(|entry| entry.scope_has_answer(key, now_ms))
            }
            None => {
                let entry = self.scopes.get(scope);
                entry.is_some_and(|entry| entry.has_answer(key, now_ms))
            }
        };
        if write.conditions.idempotency.is_some_and(has_answer) {
            return true;
        }
        let exists = match scope.thread() {
            Some(id) => {
                let living = self.living_mut(id, now_ms);
                living.is_some_and(|living| living.scope.is_some())
            }
            None => self.get_scope(scope, false, now_ms).is_some(),
        };
        write.only_deletes() && exists
    }

    pub(super) fn change_scope<T>(
        &mut self,
        scope: &ScopeId,
        change: impl FnOnce(&mut ScopeEntry, &mut Past) -> T,
    ) -> T {
        let past = &mut self.past;
        self.scopes.change(scope, |entry| change(entry, past))
    }

    /// Writes to a scope. Moves an expired scope into `expired`; the caller frees it after releasing the lock.
    pub(super) fn write_scope(
        &mut self,
        scope: &ScopeId,
        write: &ScopeWrite<'_>,
        now_ms: u64,
        expired: &mut Option<HeldScope>,
    ) -> Result<ScopeWritten, Refusal> {
        match scope.thread() {
            Some(id) => self.change(id, now_ms, |entry, step| entry.write_scope(write, step)),
            None => self.change_scope(scope, |entry, past| {
                check_turn(None, write.conditions.turn, now_ms)?;
                *expired = entry.sweep(now_ms);
                entry.write(scope, write, past, now_ms)
            }),
        }
    }

    /// Returns whether a compaction is a retry whose result is remembered.
    pub(super) fn has_compaction_answer(
        &self,
        id: &ThreadId,
        compaction: &Compaction<'_>,
        now_ms: u64,
    ) -> bool {
        let entry = self.slots.get(id).zip(compaction.idempotency);
        entry.is_some_and(|(entry, key)| entry.scope_has_answer(key, now_ms))
    }

    /// Returns threads with a due check, earliest first.
    pub(super) fn due(&self, now_ms: u64, limit: usize) -> Vec<ThreadId> {
        let ids = self.slots.due(now_ms).copied();
        ids.filter(|id| self.has_thread(id)).take(limit).collect()
    }

    pub(super) fn end_due(&mut self, ids: &[ThreadId], now_ms: u64) -> Reaped {
        let mut reaped = Reaped::default();
        for id in ids {
            if !self.has_thread(id) {
                continue;
            }
            if self.end_if_due(id, now_ms) {
                reaped.ended += 1;
            } else {
                reaped.moved += 1;
            }
        }
        reaped
    }

    fn has_thread(&self, id: &ThreadId) -> bool {
        self.slots.get(id).is_some_and(Entry::has_thread)
    }

    /// Ends and frees up to `limit` due threads and up to `limit` due scopes. Moves scopes into `removed`; the caller
    /// frees them after releasing the lock. Returns whether more are due.
    pub(super) fn sweep(
        &mut self,
        now_ms: u64,
        limit: usize,
        removed: &mut Vec<HeldScope>,
    ) -> bool {
        let (past, listed) = (&mut self.past, &mut self.listed);
        let responses = &mut self.responses;
        let more = self.slots.sweep(now_ms, limit, |id, entry| {
            sweep_entry(id, entry, listed, responses, &mut Step { id, now_ms, past });
        });
        let more_scopes = self.scopes.sweep(now_ms, limit, |_, entry| {
            removed.extend(entry.sweep(now_ms));
        });
        more || more_scopes || self.responses.sweep(now_ms, limit)
    }

    fn end_if_due(&mut self, id: &ThreadId, now_ms: u64) -> bool {
        let (past, listed) = (&mut self.past, &mut self.listed);
        let responses = &mut self.responses;
        let sweep = |entry: &mut Entry| {
            sweep_entry(id, entry, listed, responses, &mut Step { id, now_ms, past })
        };
        self.slots.recheck(id, now_ms, sweep).unwrap_or(false)
    }
}

struct ListingBefore {
    position: Option<ListPosition>,
    life: Option<Life>,
}

impl ListingBefore {
    fn of(entry: &Entry) -> Self {
        Self {
            position: entry.list_position(),
            life: entry.life(),
        }
    }

    fn relist(
        self,
        id: &ThreadId,
        entry: &Entry,
        listed: &mut ThreadLists,
        responses: &mut HeldResponses,
    ) {
        let life = entry.life();
        if let (Some(ListPosition { owner, .. }), Some(before)) = (self.position, self.life)
            && life != Some(before)
        {
            responses.note_ended(before, owner);
        }
        listed.count(self.life.is_some(), life.is_some());
        listed.relist(id, self.position, entry.list_position());
    }
}

/// Removes expired data from an entry. Returns whether a thread ended.
fn sweep_entry(
    id: &ThreadId,
    entry: &mut Entry,
    listed: &mut ThreadLists,
    responses: &mut HeldResponses,
    step: &mut Step<'_>,
) -> bool {
    let before = ListingBefore::of(entry);
    let ended = entry.sweep(step);
    before.relist(id, entry, listed, responses);
    ended
}

impl Heap for Shard {
    fn heap_bytes(&self) -> u64 {
        self.slots.heap_bytes()
            + self.scopes.heap_bytes()
            + self.listed.heap_bytes()
            + self.former_ids.heap_bytes()
            + self.responses.heap_bytes()
            + self.past.heap_bytes()
    }
}

impl Part for Shard {
    fn oldest_ms(&self) -> u64 {
        self.past.oldest_ms().unwrap_or(u64::MAX)
    }
}
