//! Stores scopes. The scope of a thread is stored as part of the thread.

use async_trait::async_trait;

use crate::MemoryStore;
use threadkeep_domain::scope::{
    Compacted, Compaction, ItemId, ScopeId, ScopeWrite, ScopeWritten, Segment,
};
use threadkeep_domain::threads::turn::check_turn;
use threadkeep_domain::{Access, Life, ThreadId};
use threadkeep_store::held_scope::HeldScope;
use threadkeep_store::{
    Answered, HistoryFrom, HistoryPage, ItemPosition, Originals, Reader, ScopeEnd, ScopeParts,
    ScopeView, Scopes, StoreError, WriteError,
};

impl MemoryStore {
    /// Reads an existing scope under one lock. `read` also gets the time and the scope's expiry.
    fn read_held<T>(
        &self,
        scope: &ScopeId,
        reader: Reader,
        read: impl FnOnce(&mut HeldScope, Option<u64>, u64) -> T,
    ) -> Result<Option<T>, WriteError> {
        let mut shard = self.0.of_scope(scope);
        let now_ms = self.0.clock.now_ms();
        let Some(id) = scope.thread() else {
            let found = shard.get_scope(scope, reader.touch, now_ms);
            return Ok(found.map(|(held, expires_ms)| read(held, expires_ms, now_ms)));
        };
        let living = shard.find(id, reader, now_ms)?;
        let held = living.and_then(|living| living.scope.as_mut());
        Ok(held.map(|held| read(held, None, now_ms)))
    }
}

#[async_trait]
impl Scopes for MemoryStore {
    async fn read_scope(
        &self,
        scope: &ScopeId,
        parts: &ScopeParts<'_>,
    ) -> Result<Option<ScopeView>, WriteError> {
        let reader = Reader {
            access: parts.access,
            touch: parts.touch,
        };
        self.read_held(scope, reader, |held, expires_ms, now_ms| {
            held.view(parts, expires_ms, now_ms)
        })
    }

    async fn read_history(
        &self,
        scope: &ScopeId,
        reader: Reader,
        from: HistoryFrom,
        limit: usize,
    ) -> Result<Option<HistoryPage>, WriteError> {
        self.read_held(scope, reader, |held, _, now_ms| {
            held.page(from, limit, now_ms)
        })
    }

    async fn read_segments(
        &self,
        scope: &ScopeId,
        reader: Reader,
    ) -> Result<Option<Vec<Segment>>, WriteError> {
        self.read_held(scope, reader, |held, _, now_ms| held.segments(now_ms))
    }

    async fn read_originals(
        &self,
        scope: &ScopeId,
        reader: Reader,
        which: Originals,
        from: HistoryFrom,
        limit: usize,
    ) -> Result<Option<HistoryPage>, WriteError> {
        let page = self.read_held(scope, reader, |held, _, now_ms| {
            held.originals(which, from, limit, now_ms)
        });
        Ok(page?.flatten())
    }

    async fn find_item(
        &self,
        scope: &ScopeId,
        access: Access,
        id: &ItemId,
    ) -> Result<Option<ItemPosition>, WriteError> {
        let found = self.read_held(scope, access.into(), |held, _, _| held.item_position(id));
        Ok(found?.flatten())
    }

    async fn write_scope(
        &self,
        scope: &ScopeId,
        write: &ScopeWrite<'_>,
    ) -> Result<ScopeWritten, WriteError> {
        // large values are dropped after the lock is released
        let mut expired = None;
        let has_room = self.0.has_room();
        let mut shard = self.0.of_scope(scope);
        let now_ms = self.0.clock.now_ms();
        if !has_room && !shard.accepts_scope_when_full(scope, write, now_ms) {
            return Err(self.0.budget.refuse().into());
        }
        let written = shard.write_scope(scope, write, now_ms, &mut expired);
        drop(shard);
        drop(expired);
        Ok(written?)
    }

    async fn compact_history(
        &self,
        id: &ThreadId,
        compaction: &Compaction<'_>,
    ) -> Result<Compacted, WriteError> {
        let has_room = self.0.has_room();
        let mut shard = self.0.of(id);
        let now_ms = self.0.clock.now_ms();
        if !has_room && !shard.has_compaction_answer(id, compaction, now_ms) {
            return Err(self.0.budget.refuse().into());
        }
        let compacted = shard.change(id, now_ms, |entry, step| entry.compact(compaction, step));
        Ok(compacted?)
    }

    async fn end_scope(
        &self,
        scope: &ScopeId,
        end: &ScopeEnd,
    ) -> Result<Answered<bool>, WriteError> {
        let mut expired = None;
        let mut shard = self.0.of_scope(scope);
        let now_ms = self.0.clock.now_ms();
        let ended = match scope.thread() {
            Some(id) => shard.change(id, now_ms, |entry, step| entry.end_scope(end, step)),
            None => shard.change_scope(scope, |entry, _| {
                check_turn(None, end.turn, now_ms)?;
                expired = entry.sweep(now_ms);
                entry.end(end, now_ms)
            }),
        };
        drop(shard);
        drop(expired);
        let (answer, _ended) = ended?;
        Ok(answer)
    }

    async fn read_final_history(
        &self,
        id: &ThreadId,
        life: Option<Life>,
        from: HistoryFrom,
        limit: usize,
    ) -> Result<Option<HistoryPage>, StoreError> {
        let shard = self.0.of(id);
        let now_ms = self.0.clock.now_ms();
        let last = shard.past.archive(id, life, now_ms);
        Ok(last.map(|last| match &last.living.scope {
            Some(scope) => HistoryPage {
                segments: Vec::new(),
                ..scope.page(from, limit, now_ms)
            },
            None => HistoryPage::EMPTY,
        }))
    }
}
