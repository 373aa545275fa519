use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::MemoryStore;
use crate::shard::Shard;
use crate::threads::live_thread::LiveThread;
use threadkeep_domain::Release;
use threadkeep_domain::response::floor::ThreadFloor;
use threadkeep_domain::response::held::HeldResponse;
use threadkeep_domain::scope::{ScopeId, ScopeWrite};
use threadkeep_domain::threads::turn::end_turn;
use threadkeep_domain::{Access, Refusal, ResponseId, ThreadId, TurnToken};
use threadkeep_store::{
    Answered, BeginResponse, Begun, EndResponse, EndWrite, Floor, JournalEntry, Journaled,
    ResponseEvents, ResponseView, Responses, StoreError, WriteError, millis,
};

#[async_trait]
impl Responses for MemoryStore {
    fn bucket_of_scope(&self, scope: &ScopeId) -> u8 {
        self.0.index_of_scope(scope) as u8
    }

    async fn begin_response(
        &self,
        id: &ResponseId,
        begin: &BeginResponse<'_>,
    ) -> Result<Begun, WriteError> {
        let has_room = self.0.has_room();
        let mut shard = self.0.of_response(id)?;
        let now_ms = self.0.clock.now_ms();
        let begun = begin_in(&mut shard, id, begin, now_ms, has_room)?;
        begun.ok_or_else(|| self.0.budget.refuse().into())
    }

    async fn keep_response(
        &self,
        id: &ResponseId,
        scope: &ScopeId,
        token: TurnToken,
        lease: Duration,
    ) -> Result<(), WriteError> {
        let mut shard = self.0.of_response(id)?;
        let now_ms = self.0.clock.now_ms();
        let checked = check(&mut shard, id, scope, Some(token), now_ms);
        if !lease.is_zero() {
            checked?;
        }
        let took_turn = shard.responses.change(id, now_ms, |held| {
            held.check_driver(Some(token))?;
            held.check_scope(scope)?;
            held.drive_until(lease, now_ms);
            Ok(held.took_turn())
        })?;
        if checked.is_ok()
            && let Some(thread) = scope.thread()
            && let Some(living) = shard.touch(thread, Access::All, now_ms)?
            && let Some(last) = living.turn.as_deref_mut()
            && took_turn
        {
            last.extend_to(now_ms.saturating_add(millis(lease)));
        }
        Ok(())
    }

    async fn journal(
        &self,
        id: &ResponseId,
        scope: &ScopeId,
        entry: &JournalEntry<'_>,
        write: Option<&ScopeWrite<'_>>,
    ) -> Result<Journaled, WriteError> {
        // large values are dropped after the lock is released
        let mut expired = None;
        let has_room = self.0.has_room();
        let mut shard = self.0.of_response(id)?;
        let now_ms = self.0.clock.now_ms();
        check(&mut shard, id, scope, Some(entry.token), now_ms)?;
        let held = shard.responses.get(id, now_ms).ok_or(Refusal::TurnLost)?;
        if let Some(stored) = held.stored_entry(entry)? {
            return Ok(Journaled::Known(stored.clone()));
        }
        if !has_room && !write.is_some_and(ScopeWrite::only_deletes) {
            return Err(self.0.budget.refuse().into());
        }
        let write = write.map(ScopeWrite::without_idempotency);
        let written = write.map(|write| shard.write_scope(scope, &write, now_ms, &mut expired));
        let written = written.transpose()?;
        shard.responses.change(id, now_ms, |held| {
            held.add_entry(entry, now_ms);
            Ok(())
        })?;
        Ok(Journaled::New(written))
    }

    async fn append_events(
        &self,
        id: &ResponseId,
        token: TurnToken,
        first: u64,
        events: &[Bytes],
    ) -> Result<(), WriteError> {
        let has_room = self.0.has_room();
        let mut shard = self.0.of_response(id)?;
        let now_ms = self.0.clock.now_ms();
        Ok(shard
            .responses
            .change(id, now_ms, |held| {
                held.check_driver(Some(token))?;
                held.check_events(first)?;
                Ok(has_room.then(|| held.append_events((first, events), now_ms)))
            })?
            .ok_or_else(|| self.0.budget.refuse())?)
    }

    async fn read_events(
        &self,
        id: &ResponseId,
        from: u64,
        limit: usize,
    ) -> Result<Option<ResponseEvents>, StoreError> {
        let now_ms = self.0.clock.now_ms();
        let Some(shard) = self.0.bucket(id.bucket().into()) else {
            return Ok(None);
        };
        let held = shard.responses.get(id, now_ms);
        Ok(held.and_then(|held| held.read_events(from, limit, now_ms)))
    }

    async fn end_response(
        &self,
        id: &ResponseId,
        scope: &ScopeId,
        end: &EndResponse<'_>,
        write: Option<EndWrite<'_>>,
    ) -> Result<Answered<Bytes>, WriteError> {
        // large values are dropped after the lock is released
        let mut expired = None;
        let has_room = self.0.has_room();
        let mut shard = self.0.of_response(id)?;
        let now_ms = self.0.clock.now_ms();
        let held = shard.responses.get(id, now_ms);
        if let Some(answer) = held.and_then(HeldResponse::answer).cloned() {
            return Ok(Answered::replay(answer));
        }
        let has_thread = match check(&mut shard, id, scope, end.token, now_ms) {
            // a response ends even if its thread no longer exists
            Err(Refusal::Destroyed) if write.is_none() => false,
            checked => checked.map(|()| true)?,
        };
        let (token, took_turn) = shard.responses.change(id, now_ms, |held| {
            held.check_end(end)?;
            Ok((held.token(), held.took_turn()))
        })?;
        if !has_room && write.is_some_and(|write| !write.only_deletes()) {
            return Err(self.0.budget.refuse().into());
        }
        match write {
            Some(EndWrite::Scope(write)) => {
                shard.write_scope(scope, &write.without_idempotency(), now_ms, &mut expired)?;
            }
            Some(EndWrite::Thread(write)) => {
                let thread = scope.thread().ok_or(Refusal::ThreadNotFound)?;
                let write = write.without_idempotency();
                shard.change(thread, now_ms, |entry, step| entry.write(&write, step))?;
            }
            None => {}
        }
        let is_awaited = took_turn && has_thread && release_turn(&mut shard, scope, token, now_ms);
        let archive = shard.past.retention.archive;
        shard.responses.change(id, now_ms, |held| {
            held.end(end, has_thread, archive, now_ms);
            Ok(())
        })?;
        drop(shard);
        if let Some(thread) = scope.thread()
            && is_awaited
        {
            self.0.ended_turns.send(*thread).ok();
        }
        Ok(Answered::fresh(end.answer.clone()))
    }

    async fn get_response(&self, id: &ResponseId) -> Result<Option<ResponseView>, StoreError> {
        let now_ms = self.0.clock.now_ms();
        let Some(shard) = self.0.bucket(id.bucket().into()) else {
            return Ok(None);
        };
        let held = shard.responses.get(id, now_ms);
        Ok(held.map(|held| held.view(now_ms)))
    }

    async fn last_response(&self, thread: &ThreadId) -> Result<Option<ResponseId>, StoreError> {
        let mut shard = self.0.of(thread);
        let now_ms = self.0.clock.now_ms();
        let living = shard.living_mut(thread, now_ms);
        Ok(living.and_then(|living| living.turn.as_ref()?.response()))
    }

    async fn note_delivered(&self, id: &ResponseId) -> Result<(), StoreError> {
        let now_ms = self.0.clock.now_ms();
        if let Some(mut shard) = self.0.bucket(id.bucket().into()) {
            let noted = shard.responses.change(id, now_ms, |held| {
                held.note_delivered();
                Ok(())
            });
            // the delivery of an expired response need not be recorded
            noted.ok();
        }
        Ok(())
    }

    async fn due_responses(
        &self,
        buckets: &[u16],
        limit: usize,
    ) -> Result<Vec<ResponseId>, StoreError> {
        let now_ms = self.0.clock.now_ms();
        let shards = buckets.iter().filter_map(|bucket| self.0.bucket(*bucket));
        Ok(shards
            .flat_map(|shard| shard.responses.due(now_ms).take(limit).collect::<Vec<_>>())
            .collect())
    }

    async fn delete_response(&self, id: &ResponseId) -> Result<bool, StoreError> {
        let now_ms = self.0.clock.now_ms();
        let Some(mut shard) = self.0.bucket(id.bucket().into()) else {
            return Ok(false);
        };
        let held = shard.responses.get(id, now_ms);
        let has_ended = held.is_some_and(|held| held.answer().is_some());
        let removed = match has_ended {
            true => shard.responses.forget(id),
            false => None,
        };
        drop(shard);
        Ok(removed.is_some())
    }
}

/// Starts or resumes a response. Returns `None` if a new response does not fit into the store.
fn begin_in(
    shard: &mut Shard,
    id: &ResponseId,
    begin: &BeginResponse<'_>,
    now_ms: u64,
    has_room: bool,
) -> Result<Option<Begun>, Refusal> {
    let held = shard.responses.get(id, now_ms);
    let is_new = held.is_none();
    if let Some(held) = held
        && let Some(begun) = held.check_resume(begin, now_ms)?
    {
        return Ok(Some(begun));
    }
    if is_new && !has_room {
        return Ok(None);
    }
    let mut life = None;
    if let Some(thread) = begin.scope.thread() {
        open_thread(shard, id, thread, begin.access, now_ms)?;
        let (living, responses) = shard.with_responses(thread, now_ms);
        let living = living.ok_or(Refusal::NoThread)?;
        life = Some(living.stamp.life);
        let last = living.turn.as_ref().and_then(|last| last.response());
        let floor = ThreadFloor {
            life: living.stamp.life,
            turn: &mut living.turn,
            last: last.and_then(|last| responses.get(&last, now_ms)),
            before: responses.get(id, now_ms),
        };
        let begun = floor.take(*id, begin, now_ms)?;
        if begun.is_some() {
            return Ok(begun);
        }
    } else if begin.floor == Floor::Taken {
        if shard.get_scope(begin.scope, true, now_ms).is_none() {
            return Err(Refusal::ScopeNotFound);
        }
        let holder = shard.responses.floor_holder(begin.scope, id, now_ms);
        if let Some((holder, held)) = holder {
            return Ok(Some(held.floor_conflict(holder, now_ms)));
        }
    }
    let takes_floor = life.is_none() && begin.floor == Floor::Taken;
    if is_new {
        let Some(request) = begin.request else {
            return Ok(Some(Begun::Free));
        };
        let mut new = HeldResponse::new(begin, request, life);
        new.drive(begin, now_ms);
        shard.responses.keep(id, new);
        if takes_floor {
            shard.responses.take_floor(begin.scope, *id);
        }
        return Ok(Some(Begun::New));
    }
    let journal = shard.responses.change(id, now_ms, |held| {
        held.drive(begin, now_ms);
        Ok(held.journal())
    })?;
    if takes_floor {
        shard.responses.take_floor(begin.scope, *id);
    }
    Ok(Some(Begun::Resumed(journal)))
}

/// Extends the lifetime of a response's thread. Fails if the thread has ended since the response started.
fn open_thread(
    shard: &mut Shard,
    id: &ResponseId,
    thread: &ThreadId,
    access: Access,
    now_ms: u64,
) -> Result<(), Refusal> {
    let life = shard.touch(thread, access, now_ms)?;
    let life = life.map(|living| living.stamp.life);
    let held = shard.responses.get(id, now_ms);
    match (life, held) {
        (None, Some(_)) => Err(Refusal::Destroyed),
        (None, None) => Err(Refusal::NoThread),
        _ if shard.is_unbound(thread, access, now_ms) => Err(Refusal::NoThread),
        (_, Some(held)) if held.life() != life => Err(Refusal::Destroyed),
        _ => Ok(()),
    }
}

/// Checks that the caller with `token` may write to a response. If `token` is `None`, any caller may write.
fn check(
    shard: &mut Shard,
    id: &ResponseId,
    scope: &ScopeId,
    token: Option<TurnToken>,
    now_ms: u64,
) -> Result<(), Refusal> {
    let held = shard.responses.get(id, now_ms).ok_or(Refusal::TurnLost)?;
    let living = scope.thread().and_then(|id| shard.living(id, now_ms));
    let thread = living.map(|living| (living.stamp.life, living.turn.as_deref()));
    held.check(scope, token, thread, now_ms)
}

/// Releases a thread's turn if the response still holds it. Returns whether another caller is waiting for the turn.
fn release_turn(shard: &mut Shard, scope: &ScopeId, token: TurnToken, now_ms: u64) -> bool {
    let living = scope
        .thread()
        .and_then(|thread| shard.living_mut(thread, now_ms));
    let last = living.and_then(|living: &mut LiveThread| living.turn.as_deref_mut());
    let last = last.filter(|last| last.token() == token);
    end_turn(last, token, Release::Incomplete, now_ms).unwrap_or(false)
}
