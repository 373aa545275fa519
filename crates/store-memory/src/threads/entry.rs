//! All that the store knows of one id.

mod changes;

use std::collections::BTreeSet;
use std::time::Duration;

use super::answered::{Answered, Packed, ScopeAnswered};
use super::listed::Place;
use super::living::Living;
use super::records::Records;
use super::saved::SavedStates;
use crate::log::names;
use crate::past::Step;
use crate::slots::Due;
use threadkeep_domain::heap::Heap;
use threadkeep_domain::scope::{Compacted, Compaction, HistorySummary, ScopeWrite, ScopeWritten};
use threadkeep_domain::threads::turn::{check_turn, end_turn, renew_turn, take_turn};
use threadkeep_domain::{
    AHEAD_MAX_MS, Access, Answer, Completed, EndReason, EventKind, Fork, IdempotencyKey, IfExists,
    Image, Import, Life, Policy, Precondition, Refusal, Stamp, TakeTurn, Thread, Tombstone,
    TurnGranted, TurnToken, Write, Written, heap,
};
use threadkeep_store as store;
use threadkeep_store::held_scope::{HeldScope, appended, check_version};
use threadkeep_store::{Destroy, Destroyed, Imported, ScopeEnd, millis};

/// A thread, its tombstone, the answers that are remembered with it, and whether its changes are
/// logged.
#[derive(Debug, Default)]
pub(crate) struct Entry {
    living: Option<Living>,
    tombstone_ends_ms: u64,
    /// Until when clients are rejected that have seen nothing since the thread was destroyed, whether or not it has a
    /// new life.
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
    ) -> Result<Option<&mut Living>, Refusal> {
        let Some(living) = self.living_at(now_ms) else {
            return Ok(None);
        };
        access.check(living.owner_tag())?;
        living.slide(now_ms);
        Ok(Some(living))
    }

    /// The thread, if it lives then.
    pub(crate) fn living(&self, now_ms: u64) -> Option<&Living> {
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
    pub(crate) fn held(&self) -> Option<&Living> {
        self.living.as_ref()
    }

    /// Whether the caller may use the thread.
    fn check_access(&self, access: Access, now_ms: u64) -> Result<(), Refusal> {
        access.check(self.living(now_ms).and_then(Living::owner_tag))
    }

    /// A write that only an empty write can prepare: it makes the thread, or binds it to the caller's owner.
    pub(crate) fn is_unbound(&self, access: Access, now_ms: u64) -> bool {
        let living = self.living(now_ms);
        matches!(access, Access::Of(_)) && living.is_some_and(|living| living.owner_tag().is_none())
    }

    /// The thread as it is, its end not moved.
    pub(crate) fn look(&mut self, now_ms: u64) -> Option<&mut Living> {
        self.living_at(now_ms)
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
    pub(crate) fn knows(&self, key: IdempotencyKey, now_ms: u64) -> bool {
        self.records.knows(key, now_ms)
    }

    /// Whether a write to the thread's scope with that key was answered before.
    pub(crate) fn scope_knows(&self, key: IdempotencyKey, now_ms: u64) -> bool {
        let records = self.scope_records.as_ref();
        records.is_some_and(|records| records.knows(key, now_ms))
    }

    /// Ends a thread whose time has passed, and frees what has passed. Whether it ended one.
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

    pub(crate) fn write(
        &mut self,
        write: &Write<'_>,
        step: &mut Step<'_>,
    ) -> Result<Written, Refusal> {
        let now_ms = step.now_ms;
        self.sweep(step);
        self.check_access(write.access, now_ms)?;
        if let Some(key) = write.idempotency
            && let Some(first) = self.find(key, now_ms)?
        {
            return Ok(first);
        }
        if self.is_late(write.tombstone, now_ms) {
            return Err(Refusal::Destroyed);
        }
        self.check_turn(write.turn, now_ms)?;
        check(write.precondition, self.stamp(now_ms))?;
        let is_watched = self.is_watched(step);
        let written = match &mut self.living {
            Some(living) if is_watched => update(living, write, step)?,
            Some(living) => living.write(write, now_ms)?,
            None => {
                let (living, written) = create(write, is_watched, step)?;
                self.living = Some(living);
                self.tombstone_ends_ms = 0;
                written
            }
        };
        if let Some(key) = write.idempotency {
            let answer = Answered::Written(Packed::new(written.clone()));
            self.records.add(key, answer, now_ms, self.due_ms());
        }
        Ok(written)
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

    /// Ends the thread. Without room, it is not remembered that there was none: ids are handed out
    /// for nothing, and each would take some.
    pub(crate) fn destroy(
        &mut self,
        destroy: &Destroy,
        has_room: bool,
        step: &mut Step<'_>,
    ) -> Result<Destroyed, Refusal> {
        let now_ms = step.now_ms;
        self.sweep(step);
        self.check_access(destroy.access, now_ms)?;
        if let Some(key) = destroy.idempotency {
            match self.records.find(key, now_ms)? {
                Some(Answered::Destroyed(first)) => {
                    return Ok(Destroyed {
                        replayed: true,
                        ..*first
                    });
                }
                Some(_) => return Err(Refusal::IdempotencyKeyReused),
                None => {}
            }
        }
        self.check_turn(destroy.turn, now_ms)?;
        check(destroy.precondition, self.stamp(now_ms))?;
        let living = self.living.take();
        let destroyed = Destroyed {
            existed: living.is_some(),
            replayed: false,
        };
        if let Some(living) = living {
            step.end(living, EndReason::Destroyed, now_ms);
            self.tombstone_ends_ms = now_ms.saturating_add(millis(destroy.tombstone));
            self.late_until_ms = self.tombstone_ends_ms;
            self.is_moved = false;
            self.records.end_soon(self.tombstone_ends_ms, now_ms);
            if let Some(records) = &mut self.scope_records {
                records.end_soon(self.tombstone_ends_ms, now_ms);
            }
        }
        if let Some(key) = destroy.idempotency
            && (has_room || destroyed.existed)
        {
            let answer = Answered::Destroyed(destroyed);
            self.records
                .add(key, answer, now_ms, self.tombstone_ends_ms);
        }
        Ok(destroyed)
    }

    /// Takes the thread out without leaving it to the archive, logs its end, and has the id refuse writes.
    pub(crate) fn erase(&mut self, tombstone: Duration, step: &mut Step<'_>) -> Option<Living> {
        let mut living = self.living.take()?;
        step.log_erased(&mut living);
        self.entomb(tombstone, step.now_ms);
        Some(living)
    }

    /// Forgets all answers, and has the id refuse writes if it has no thread.
    pub(crate) fn entomb(&mut self, tombstone: Duration, now_ms: u64) {
        self.forget_answers();
        if self.living.is_none() {
            let ends_ms = now_ms.saturating_add(millis(tombstone));
            self.tombstone_ends_ms = self.tombstone_ends_ms.max(ends_ms);
            self.late_until_ms = self.late_until_ms.max(ends_ms);
        }
    }

    /// Forgets the answers that the id has given.
    pub(crate) fn forget_answers(&mut self) {
        self.records = Records::default();
        self.scope_records = None;
    }

    /// Brings a life back from the archive, or the last one that ended.
    pub(crate) fn restore(
        &mut self,
        life: Option<Life>,
        policy: &Policy,
        step: &mut Step<'_>,
    ) -> Result<Option<Thread>, Refusal> {
        self.sweep(step);
        if let Some(living) = &self.living {
            return Err(Refusal::VersionMismatch {
                current: living.stamp,
            });
        }
        let Some(mut living) = step.restore(life, policy) else {
            return Ok(None);
        };
        let kind = EventKind::Created {
            keys: names::of_document(&living.document),
            restored: true,
        };
        step.log(&mut living, kind);
        self.tombstone_ends_ms = 0;
        self.late_until_ms = 0;
        Ok(Some(self.living.insert(living).describe()))
    }

    /// The answer that was given before to a write with that key.
    pub(crate) fn find(
        &self,
        key: IdempotencyKey,
        now_ms: u64,
    ) -> Result<Option<Written>, Refusal> {
        match self.records.find(key, now_ms)? {
            Some(Answered::Written(first)) => Ok(Some(first.replay())),
            Some(_) => Err(Refusal::IdempotencyKeyReused),
            None => Ok(None),
        }
    }

    /// Begins a life that was made of an image.
    pub(crate) fn import(
        &mut self,
        import: &Import<'_>,
        mut new: Living,
        step: &mut Step<'_>,
    ) -> Result<Imported, Refusal> {
        let now_ms = step.now_ms;
        self.sweep(step);
        if let Some(key) = import.idempotency
            && let Some(first) = self.find(key, now_ms)?
        {
            return Ok(Imported::Made(first));
        }
        let created_ms = import.image.thread.created_ms;
        if import.origin.is_none() && created_ms > now_ms + AHEAD_MAX_MS {
            return Err(Refusal::CreatedAhead);
        }
        if self.is_late(Tombstone::Heeded, now_ms) {
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
        if !import.has_place && import.image.thread.owner.as_ref().is_some_and(is_one_more) {
            return Err(Refusal::NoPlace);
        }
        if let Some(replaced) = self.living.take() {
            step.end(replaced, EndReason::Destroyed, now_ms);
            self.records.end_soon(now_ms, now_ms);
            if let Some(records) = &mut self.scope_records {
                records.end_soon(now_ms, now_ms);
            }
        }
        new.begin(import, step.past.finals.sequence(step.id), now_ms);
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
        if let Some(key) = import.idempotency {
            let answer = Answered::Written(Packed::new(written.clone()));
            self.records.add(key, answer, now_ms, self.due_ms());
        }
        Ok(Imported::Made(written))
    }

    /// The image of the thread for a fork of it, which is a use.
    pub(crate) fn source(
        &mut self,
        fork: &Fork<'_>,
        now_ms: u64,
    ) -> Result<(Image, Option<SavedStates>), Refusal> {
        self.check_access(fork.access, now_ms)?;
        if fork.turn.is_some() {
            self.check_turn(fork.turn, now_ms)?;
        }
        check(fork.precondition, self.stamp(now_ms))?;
        let living = self.living_at(now_ms).ok_or(Refusal::ThreadNotFound)?;
        living.slide(now_ms);
        Ok(living.image(now_ms))
    }

    /// Does a write to the thread's scope. One that could be done if there were a thread is refused
    /// for just that.
    pub(crate) fn write_scope(
        &mut self,
        write: &ScopeWrite<'_>,
        step: &mut Step<'_>,
    ) -> Result<ScopeWritten, Refusal> {
        let now_ms = step.now_ms;
        self.sweep(step);
        self.check_access(write.access, now_ms)?;
        if let Some(key) = write.idempotency
            && let Some(records) = &self.scope_records
            && let Some(first) = records.find(key, now_ms)?
        {
            return first.replay_write();
        }
        self.check_turn(write.turn, now_ms)?;
        if self.is_unbound(write.access, now_ms) {
            return Err(Refusal::NoThread);
        }
        let is_watched = self.is_watched(step);
        let Some(living) = &mut self.living else {
            HeldScope::new(Life::default(), now_ms).write(write, now_ms)?;
            return Err(Refusal::NoThread);
        };
        let done = living.write_scope(write, now_ms)?;
        step.log_scope(living, &done, is_watched);
        let written = done.written;
        if let Some(key) = write.idempotency {
            let ends_ms = living.expires_ms();
            let records = self.scope_records.get_or_insert_default();
            let answer = ScopeAnswered::Written(written.clone());
            records.add(key, answer, now_ms, ends_ms);
        }
        Ok(written)
    }

    pub(crate) fn compact(
        &mut self,
        compaction: &Compaction<'_>,
        step: &mut Step<'_>,
    ) -> Result<Compacted, Refusal> {
        let now_ms = step.now_ms;
        self.sweep(step);
        self.check_access(compaction.access, now_ms)?;
        if let Some(key) = compaction.idempotency
            && let Some(records) = &self.scope_records
            && let Some(first) = records.find(key, now_ms)?
        {
            return first.replay_compaction();
        }
        self.check_turn(compaction.turn, now_ms)?;
        if self.is_unbound(compaction.access, now_ms) {
            return Err(Refusal::NoThread);
        }
        let Some(living) = &mut self.living else {
            return Err(Refusal::NoThread);
        };
        let compacted = match &mut living.scope {
            Some(scope) => scope.compact(compaction, now_ms)?,
            None => return Err(Refusal::PrefixChanged { count: 0 }),
        };
        living.slide(now_ms);
        if let Some(key) = compaction.idempotency {
            let ends_ms = living.expires_ms();
            let records = self.scope_records.get_or_insert_default();
            let answer = ScopeAnswered::Compacted(compacted);
            records.add(key, answer, now_ms, ends_ms);
        }
        Ok(compacted)
    }

    /// Takes the thread's scope away, which is for the caller to drop.
    pub(crate) fn end_scope(
        &mut self,
        end: &ScopeEnd,
        now_ms: u64,
    ) -> Result<(store::Answered<bool>, Option<Box<HeldScope>>), Refusal> {
        self.check_access(end.access, now_ms)?;
        if let Some(key) = end.idempotency
            && let Some(records) = &mut self.scope_records
        {
            records.sweep(now_ms);
            if let Some(first) = records.find(key, now_ms)? {
                return Ok((first.replay_end()?, None));
            }
        }
        self.check_turn(end.turn, now_ms)?;
        let living = self.living_at(now_ms);
        let scope = living.as_ref().and_then(|living| living.scope.as_ref());
        let stamp = scope.map(|scope| scope.stamp());
        check_version(end.expected, stamp.unwrap_or_default())?;
        let ended = living.and_then(|living| {
            living.slide(now_ms);
            living.scope.take()
        });
        if let (Some(_), Some(records)) = (&ended, &mut self.scope_records) {
            records.end_soon(now_ms, now_ms);
        }
        if let Some(key) = end.idempotency {
            let answer = ScopeAnswered::Ended(ended.is_some());
            let records = self.scope_records.get_or_insert_default();
            records.add(key, answer, now_ms, now_ms);
        }
        Ok((store::Answered::fresh(ended.is_some()), ended))
    }

    pub(crate) fn take_turn(
        &mut self,
        access: Access,
        take: &TakeTurn,
        step: &mut Step<'_>,
    ) -> Result<TurnGranted, Refusal> {
        let now_ms = step.now_ms;
        self.sweep(step);
        self.check_access(access, now_ms)?;
        if let Some(key) = take.idempotency
            && let Some(first) = self.recall_turn(access, key, now_ms)?
        {
            return Ok(first);
        }
        if self.is_unbound(access, now_ms) {
            return Err(Refusal::NoThread);
        }
        let living = self.touch(access, now_ms)?.ok_or(Refusal::NoThread)?;
        let granted = take_turn(&mut living.turn, take, now_ms)?;
        if let Some(key) = take.idempotency {
            let ends_ms = living.expires_ms();
            self.records
                .add(key, Answered::Granted(granted), now_ms, ends_ms);
        }
        Ok(granted)
    }

    /// The turn that was granted to an earlier request with that key.
    pub(crate) fn recall_turn(
        &mut self,
        access: Access,
        key: IdempotencyKey,
        now_ms: u64,
    ) -> Result<Option<TurnGranted>, Refusal> {
        self.records.sweep(now_ms);
        self.check_access(access, now_ms)?;
        match self.records.find(key, now_ms)? {
            Some(Answered::Granted(first)) => Ok(Some(TurnGranted {
                replayed: true,
                ..*first
            })),
            Some(_) => Err(Refusal::IdempotencyKeyReused),
            None => Ok(None),
        }
    }

    pub(crate) fn renew_turn(
        &mut self,
        access: Access,
        token: TurnToken,
        ttl: Duration,
        now_ms: u64,
    ) -> Result<TurnGranted, Refusal> {
        let living = self.touch(access, now_ms)?.ok_or(Refusal::TurnLost)?;
        renew_turn(living.turn.as_deref_mut(), token, ttl, now_ms)
    }

    /// Gives a turn back, and returns whether another caller waits for it.
    pub(crate) fn end_turn(
        &mut self,
        access: Access,
        token: TurnToken,
        now_ms: u64,
    ) -> Result<bool, Refusal> {
        let living = self.touch(access, now_ms)?;
        let last = living.and_then(|living| living.turn.as_deref_mut());
        end_turn(last, token, now_ms)
    }

    fn check_turn(&self, token: Option<TurnToken>, now_ms: u64) -> Result<(), Refusal> {
        match self.living(now_ms) {
            Some(living) => living.check_turn(token, now_ms),
            None => check_turn(None, token, now_ms),
        }
    }

    /// Has changes logged until then.
    pub(crate) fn watch(&mut self, until_ms: u64) {
        self.watched_until_ms = self.watched_until_ms.max(until_ms);
    }

    pub(crate) fn complete(&mut self, completed: &Completed, step: &mut Step<'_>) {
        let living = self.living_at(step.now_ms);
        step.log_completed(living, completed.clone());
    }

    fn living_at(&mut self, now_ms: u64) -> Option<&mut Living> {
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

/// A first write.
fn create(
    write: &Write<'_>,
    is_watched: bool,
    step: &mut Step<'_>,
) -> Result<(Living, Written), Refusal> {
    let sequence = step.past.finals.sequence(step.id);
    let mut living = Living::new(write.policy, sequence, step.now_ms);
    let written = living.write(write, step.now_ms)?;
    let kind = EventKind::Created {
        keys: names::of_document(&living.document),
        restored: false,
    };
    step.log(&mut living, kind);
    if is_watched {
        log_appended(&mut living, &written, step);
    }
    Ok((living, written))
}

/// A write that is logged.
fn update(living: &mut Living, write: &Write<'_>, step: &mut Step<'_>) -> Result<Written, Refusal> {
    let mut keys: BTreeSet<_> = names::touched(write.operations, &living.document).collect();
    let written = living.write(write, step.now_ms)?;
    keys.extend(names::touched(write.operations, &living.document));
    names::drop_skipped(&mut keys, write.operations, &written.answers);
    let kind = EventKind::Updated {
        keys: names::of_keys(&keys),
        metadata: write.metadata.is_some(),
    };
    step.log(living, kind);
    log_appended(living, &written, step);
    Ok(written)
}

/// Logs the items that a write has appended to the history.
fn log_appended(living: &mut Living, written: &Written, step: &mut Step<'_>) {
    let places = written.answers.iter().filter_map(|answer| match answer {
        Answer::Appended(_, appended) => Some(appended),
        _ => None,
    });
    if let Some(kind) = appended(places) {
        step.log(living, kind);
    }
}

fn check(precondition: Option<Precondition>, stamp: Stamp) -> Result<(), Refusal> {
    match precondition {
        Some(precondition) if !precondition.is_met_by(stamp) => {
            Err(Refusal::VersionMismatch { current: stamp })
        }
        _ => Ok(()),
    }
}
