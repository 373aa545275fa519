use std::time::Duration;

use crate::past::Past;
use crate::slots::Due;
use crate::threads::answered::ScopeAnswered;
use crate::threads::records::Records;
use threadkeep_domain::heap::Heap;
use threadkeep_domain::scope::{Lifetime, ScopeId, ScopeWrite, ScopeWritten};
use threadkeep_domain::{IdempotencyKey, Life, Refusal};
use threadkeep_store::held_scope::{HeldScope, ScopeDone, check_version};
use threadkeep_store::{Answered, ScopeEnd, millis};

#[derive(Debug, Default)]
pub(crate) struct ScopeEntry {
    living: Option<LivingScope>,
    records: Records<ScopeAnswered>,
}

#[derive(Debug)]
struct LivingScope {
    held: HeldScope,
    /// Idle lifetime, set by the last write.
    idle: Option<Duration>,
    /// Expiry in Unix milliseconds; `None` if the scope does not expire.
    expires_ms: Option<u64>,
    events: u64,
}

impl ScopeEntry {
    /// Returns the scope and its expiry. If `is_use` is true, also extends the lifetime of a scope that has an idle
    /// lifetime.
    pub(crate) fn get(
        &mut self,
        is_use: bool,
        now_ms: u64,
    ) -> Option<(&mut HeldScope, Option<u64>)> {
        let living = self.living.as_mut().filter(|living| living.lives(now_ms))?;
        if is_use {
            living.slide(now_ms);
        }
        Some((&mut living.held, living.expires_ms))
    }

    pub(crate) fn has_answer(&self, key: IdempotencyKey, now_ms: u64) -> bool {
        self.records.has_answer(key, now_ms)
    }

    /// Removes expired data. If the scope has expired, returns it; the caller drops it after releasing the lock.
    pub(crate) fn sweep(&mut self, now_ms: u64) -> Option<HeldScope> {
        self.records.sweep(now_ms);
        let expired = self.living.take_if(|living| !living.lives(now_ms));
        expired.map(|expired| expired.held)
    }

    /// Writes to the scope. [Sweep](Self::sweep) it first.
    pub(crate) fn write(
        &mut self,
        subject: &ScopeId,
        write: &ScopeWrite<'_>,
        past: &mut Past,
        now_ms: u64,
    ) -> Result<ScopeWritten, Refusal> {
        let key = write.conditions.idempotency;
        let replayed = self.records.replay(key, now_ms, ScopeAnswered::written)?;
        if let Some(first) = replayed {
            return Ok(first);
        }
        let (living, done) = match &mut self.living {
            Some(living) => {
                let done = living.write(write, now_ms)?;
                (living, done)
            }
            None => {
                let mut living = LivingScope::new(now_ms);
                let done = living.write(write, now_ms)?;
                (self.living.insert(living), done)
            }
        };
        past.log_scope(subject, &mut living.events, &done, now_ms);
        let written = done.written;
        let ends_ms = living.expires_ms.unwrap_or(u64::MAX);
        self.records.remember(key, now_ms, ends_ms, || {
            ScopeAnswered::Written(written.clone())
        });
        Ok(written)
    }

    /// Ends and returns the scope; the caller drops it after releasing the lock. Keeps results for one more minute.
    pub(crate) fn end(
        &mut self,
        end: &ScopeEnd,
        now_ms: u64,
    ) -> Result<(Answered<bool>, Option<Box<HeldScope>>), Refusal> {
        let key = end.idempotency;
        let replayed = self.records.replay(key, now_ms, ScopeAnswered::ended)?;
        if let Some(first) = replayed {
            return Ok((first, None));
        }
        let living = self.living.as_ref();
        let stamp = living.map(|living| living.held.stamp());
        check_version(end.expected, stamp.unwrap_or_default())?;
        let ended = self.living.take().map(|living| Box::new(living.held));
        if ended.is_some() {
            self.records.expire_by(now_ms, now_ms);
        }
        let existed = ended.is_some();
        self.records
            .remember(key, now_ms, now_ms, || ScopeAnswered::Ended(existed));
        Ok((Answered::fresh(existed), ended))
    }
}

impl Heap for ScopeEntry {
    fn heap_bytes(&self) -> u64 {
        let living = self.living.as_ref();
        living.map_or(0, |living| living.held.heap_bytes()) + self.records.heap_bytes()
    }
}

impl Due for ScopeEntry {
    /// Takes the remembered results into account, because they expire even if the scope does not.
    fn due_ms(&self) -> u64 {
        let records_ms = self.records.ends_ms();
        let Some(living) = &self.living else {
            return records_ms;
        };
        let expires_ms = living.expires_ms.unwrap_or(u64::MAX);
        match records_ms {
            0 => expires_ms,
            records_ms => expires_ms.min(records_ms),
        }
    }
}

impl LivingScope {
    fn new(now_ms: u64) -> Self {
        Self {
            held: HeldScope::new(Life::random(), now_ms),
            idle: None,
            expires_ms: None,
            events: 0,
        }
    }

    fn lives(&self, now_ms: u64) -> bool {
        self.expires_ms.is_none_or(|expires_ms| expires_ms > now_ms)
    }

    fn write(&mut self, write: &ScopeWrite<'_>, now_ms: u64) -> Result<ScopeDone, Refusal> {
        let done = self.held.write(write, now_ms)?;
        if done.is_change {
            self.idle = match write.policy.lifetime {
                Lifetime::Idle(idle) => Some(idle),
                Lifetime::Thread | Lifetime::Kept => None,
            };
        }
        if let Some(ttl) = write.ttl {
            self.expires_ms = Some(now_ms.saturating_add(millis(ttl)));
        }
        self.slide(now_ms);
        Ok(done)
    }

    fn slide(&mut self, now_ms: u64) {
        if let Some(idle) = self.idle {
            self.expires_ms = Some(now_ms.saturating_add(millis(idle)));
        }
    }
}
