//! A minimal reference model of a scope, which uses the crate `threadkeep_domain`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use threadkeep_domain::scope::{
    ItemId, Lifetime, ScopeDocument, ScopeId, ScopeWrite, ScopeWritten,
};
use threadkeep_domain::{Access, Fingerprint, IdempotencyKey, Life, Refusal, Stamp, ThreadId};
use threadkeep_store::{
    Answered, Clock, HistoryFrom, HistoryPage, ItemPosition, Reader, ScopeEnd, ScopeParts,
    ScopeView, Scopes, StoreError, WriteError,
};

use super::{Kind, List};

const MINUTE_MS: u64 = 60_000;
const DAY_MS: u64 = 86_400_000;

/// A model of a scope and, if the scope belongs to a thread, of that thread. Only tests advance the clock.
#[derive(Debug, Clone)]
pub(crate) struct Reference {
    clock: Clock,
    world: Arc<Mutex<World>>,
}

#[derive(Debug)]
struct World {
    kind: Kind,
    thread_ttl: Duration,
    tombstone: Duration,
    lives: u64,
    thread: Option<Thread>,
    refuses_until_ms: u64,
    /// The scope at the end of the thread's last ended life (incarnation). `None` if that life was restored.
    final_scope: Option<Option<Held>>,
    scope: Option<Held>,
    answers: HashMap<Fingerprint, (Fingerprint, ScopeWritten)>,
    answers_end_ms: u64,
}

#[derive(Debug)]
struct Thread {
    life: Life,
    ends_ms: u64,
}

#[derive(Debug)]
struct Held {
    document: ScopeDocument,
    stamp: Stamp,
    created_ms: u64,
    updated_ms: u64,
    idle_ms: Option<u64>,
    ends_ms: Option<u64>,
}

impl Reference {
    pub(super) fn new(clock: Clock, list: &List) -> Self {
        let world = World {
            kind: list.kind,
            thread_ttl: list.thread_ttl,
            tombstone: list.tombstone,
            lives: 0,
            thread: None,
            refuses_until_ms: 0,
            final_scope: None,
            scope: None,
            answers: HashMap::new(),
            answers_end_ms: 0,
        };
        Self {
            clock,
            world: Arc::new(Mutex::new(world)),
        }
    }

    fn now(&self) -> (MutexGuard<'_, World>, u64) {
        let now_ms = self.clock.ahead_ms();
        let mut world = self.world.lock().unwrap();
        world.expire(now_ms);
        (world, now_ms)
    }

    pub(super) fn write_thread(&self) -> bool {
        let (mut world, now_ms) = self.now();
        if world.refuses_until_ms > now_ms {
            return false;
        }
        if world.thread.is_none() {
            let life = world.new_life();
            world.thread = Some(Thread { life, ends_ms: 0 });
        }
        world.extend_lifetimes(now_ms);
        true
    }

    pub(super) fn destroy_thread(&self) -> bool {
        let (mut world, now_ms) = self.now();
        let existed = world.thread.is_some();
        if existed {
            world.end_thread();
            let tombstone_ms = world.tombstone.as_millis() as u64;
            world.refuses_until_ms = now_ms + tombstone_ms;
            world.forget_in(tombstone_ms, now_ms);
        }
        existed
    }

    pub(super) fn restore_thread(&self) -> Option<bool> {
        let (mut world, now_ms) = self.now();
        if world.thread.is_some() {
            return None;
        }
        let Some(final_scope) = world.final_scope.take() else {
            return Some(false);
        };
        let life = world.new_life();
        world.thread = Some(Thread { life, ends_ms: 0 });
        world.scope = final_scope.map(|mut held| {
            held.stamp.life = life;
            held
        });
        world.refuses_until_ms = 0;
        world.extend_lifetimes(now_ms);
        Some(true)
    }

    fn write(&self, write: &ScopeWrite<'_>) -> Result<ScopeWritten, Refusal> {
        let (mut world, now_ms) = self.now();
        if let Some(first) = world.recall(write.conditions.idempotency)? {
            return Ok(first);
        }
        let stamp = world.stamp();
        let exists = stamp.version > 0;
        if write.makes && exists {
            return Err(Refusal::ScopeExists);
        }
        if write.policy.is_made && !write.makes && !exists {
            return Err(Refusal::ScopeNotFound);
        }
        let mut document = world
            .scope
            .as_ref()
            .map_or_else(ScopeDocument::default, |held| held.document.clone());
        let applied = document.apply(write, stamp, now_ms)?;
        let life = match (world.kind, &world.thread) {
            (Kind::Thread, None) => return Err(Refusal::NoThread),
            (Kind::Thread, Some(thread)) => thread.life,
            (Kind::Other, _) if exists => stamp.life,
            (Kind::Other, _) => world.new_life(),
        };
        let mut held = world.scope.take().unwrap_or_else(|| Held::new(now_ms));
        held.document = document;
        if applied.is_change {
            held.change(write, life, now_ms);
        }
        let written = ScopeWritten {
            stamp: held.stamp,
            kv_bytes: held.document.kv_bytes(),
            keys: held.document.keys(),
            answers: applied.answers,
            appended: applied.appended,
            removed: applied.removed,
            taken: applied.taken,
            replayed: false,
        };
        world.scope = Some(held);
        world.extend_lifetimes(now_ms);
        world.remember(write.conditions.idempotency, &written, now_ms);
        Ok(written)
    }
}

impl World {
    fn expire(&mut self, now_ms: u64) {
        if self
            .thread
            .as_ref()
            .is_some_and(|thread| thread.ends_ms <= now_ms)
        {
            self.end_thread();
        }
        let ends_ms = self.scope.as_ref().and_then(|held| held.ends_ms);
        if ends_ms.is_some_and(|ends_ms| ends_ms <= now_ms) {
            self.scope = None;
        }
        if self.answers_end_ms <= now_ms {
            self.answers.clear();
        }
    }

    fn end_thread(&mut self) {
        self.thread = None;
        self.final_scope = Some(self.scope.take());
    }

    fn new_life(&mut self) -> Life {
        self.lives += 1;
        Life(self.lives)
    }

    fn stamp(&self) -> Stamp {
        let scope = self.scope.as_ref();
        scope.map_or(Stamp::default(), |held| held.stamp)
    }

    fn extend_lifetimes(&mut self, now_ms: u64) {
        if let Some(thread) = &mut self.thread {
            thread.ends_ms = now_ms + self.thread_ttl.as_millis() as u64;
        }
        if let Some(held) = &mut self.scope
            && let Some(idle_ms) = held.idle_ms
        {
            held.ends_ms = Some(now_ms + idle_ms);
        }
    }

    fn recall(&self, key: Option<IdempotencyKey>) -> Result<Option<ScopeWritten>, Refusal> {
        let recorded = key.and_then(|key| Some((key, self.answers.get(&key.digest)?)));
        match recorded {
            Some((key, (request, _))) if *request != key.request => {
                Err(Refusal::IdempotencyKeyReused)
            }
            Some((_, (_, first))) => Ok(Some(ScopeWritten {
                replayed: true,
                ..first.clone()
            })),
            None => Ok(None),
        }
    }

    fn remember(&mut self, key: Option<IdempotencyKey>, written: &ScopeWritten, now_ms: u64) {
        let Some(key) = key else {
            return;
        };
        let of_thread = self.thread.as_ref().map(|thread| thread.ends_ms);
        let of_scope = self.scope.as_ref().and_then(|held| held.ends_ms);
        let owner_end_ms = of_thread.or(of_scope).unwrap_or(u64::MAX);
        let ends_ms = owner_end_ms.min(now_ms + DAY_MS).max(now_ms + MINUTE_MS);
        self.answers_end_ms = match self.answers.is_empty() {
            true => ends_ms,
            false => ends_ms.max(self.answers_end_ms),
        };
        let answer = (key.request, written.clone());
        self.answers.insert(key.digest, answer);
    }

    fn forget_in(&mut self, ms: u64, now_ms: u64) {
        self.answers_end_ms = now_ms + ms.max(MINUTE_MS);
    }
}

impl Held {
    fn new(now_ms: u64) -> Self {
        Self {
            document: ScopeDocument::default(),
            stamp: Stamp::default(),
            created_ms: now_ms,
            updated_ms: now_ms,
            idle_ms: None,
            ends_ms: None,
        }
    }

    fn change(&mut self, write: &ScopeWrite<'_>, life: Life, now_ms: u64) {
        self.stamp.version += 1;
        self.stamp.life = life;
        self.updated_ms = now_ms;
        match write.policy.lifetime {
            Lifetime::Idle(idle) => self.idle_ms = Some(idle.as_millis() as u64),
            Lifetime::Kept => {
                let ttl = write.ttl.map(|ttl| now_ms + ttl.as_millis() as u64);
                self.ends_ms = ttl.or(self.ends_ms);
            }
            Lifetime::Thread => {}
        }
    }
}

#[async_trait]
impl Scopes for Reference {
    async fn read_scope(
        &self,
        _: &ScopeId,
        parts: &ScopeParts<'_>,
    ) -> Result<Option<ScopeView>, WriteError> {
        let (mut world, now_ms) = self.now();
        world.extend_lifetimes(now_ms);
        let Some(held) = &mut world.scope else {
            return Ok(None);
        };
        let document = &held.document;
        let living = || document.iter(now_ms);
        let keys = living().map(|(key, _)| key.clone());
        let value = |key| document.get(key, now_ms).cloned();
        Ok(Some(ScopeView {
            stamp: held.stamp,
            kv_bytes: living().map(|(_, value)| value.as_str().len() as u64).sum(),
            key_count: living().count() as u32,
            created_ms: held.created_ms,
            updated_ms: held.updated_ms,
            expires_ms: held.ends_ms,
            is_sealed: document.is_sealed(),
            values: parts.values.iter().map(value).collect(),
            keys: if parts.keys {
                keys.collect()
            } else {
                Vec::new()
            },
            tasks: match parts.tasks {
                true => document.tasks().clone(),
                false => Default::default(),
            },
            tasks_stamp: Stamp {
                version: document.tasks_version(),
                life: held.stamp.life,
            },
            record: document.record().filter(|_| parts.record).cloned(),
            history: document.history().summary(),
            has_segments: false,
        }))
    }

    async fn read_history(
        &self,
        _: &ScopeId,
        reader: Reader,
        from: HistoryFrom,
        limit: usize,
    ) -> Result<Option<HistoryPage>, WriteError> {
        let (mut world, now_ms) = self.now();
        if reader.touch {
            world.extend_lifetimes(now_ms);
        }
        Ok(world.scope.as_ref().map(|held| page(held, from, limit)))
    }

    async fn find_item(
        &self,
        _: &ScopeId,
        _: Access,
        id: &ItemId,
    ) -> Result<Option<ItemPosition>, WriteError> {
        let (mut world, now_ms) = self.now();
        world.extend_lifetimes(now_ms);
        let history = world.scope.as_ref().map(|held| held.document.history());
        Ok(history.and_then(|history| {
            let present = history.position(id).map(|seq| (seq, false));
            let found = present.or_else(|| history.removed_position(id).map(|seq| (seq, true)));
            found.map(|(seq, is_removed)| ItemPosition { seq, is_removed })
        }))
    }

    async fn write_scope(
        &self,
        _: &ScopeId,
        write: &ScopeWrite<'_>,
    ) -> Result<ScopeWritten, WriteError> {
        Ok(self.write(write)?)
    }

    async fn end_scope(&self, _: &ScopeId, end: &ScopeEnd) -> Result<Answered<bool>, WriteError> {
        let (mut world, now_ms) = self.now();
        let current = world.stamp();
        if end
            .expected
            .is_some_and(|expected| expected != current.version)
        {
            return Err(Refusal::VersionMismatch { current }.into());
        }
        world.extend_lifetimes(now_ms);
        let ended = world.scope.take().is_some();
        if ended {
            world.forget_in(0, now_ms);
        }
        Ok(Answered {
            answer: ended,
            replayed: false,
        })
    }

    async fn read_final_history(
        &self,
        _: &ThreadId,
        _: Option<Life>,
        from: HistoryFrom,
        limit: usize,
    ) -> Result<Option<HistoryPage>, StoreError> {
        let (world, _) = self.now();
        let final_scope = world.final_scope.as_ref();
        Ok(final_scope.map(|final_scope| match final_scope {
            Some(held) => page(held, from, limit),
            None => HistoryPage::EMPTY,
        }))
    }
}

fn page(held: &Held, from: HistoryFrom, limit: usize) -> HistoryPage {
    let history = held.document.history();
    let all = history.read(0, false, usize::MAX);
    let items: Vec<_> = match from {
        HistoryFrom::After(seq) => all.into_iter().filter(|item| item.seq > seq).collect(),
        HistoryFrom::Before(seq) => {
            let before = all.into_iter().rev();
            before.filter(|item| item.seq < seq).collect()
        }
    };
    HistoryPage {
        segments: Vec::new(),
        items: items.into_iter().take(limit).collect(),
        summary: history.summary(),
    }
}
