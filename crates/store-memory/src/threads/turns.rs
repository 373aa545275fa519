use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::broadcast;

use crate::MemoryStore;
use threadkeep_domain::{
    Access, IdempotencyKey, Refusal, Release, TakeTurn, ThreadId, TurnGranted, TurnState, TurnToken,
};
use threadkeep_store::{Turns, WriteError};

/// Maximum number of ended turns that are buffered for a slow receiver. A receiver that falls further behind misses
/// some turns.
pub(crate) const ENDED_TURNS_BUFFERED: usize = 1_024;

#[async_trait]
impl Turns for MemoryStore {
    async fn take_turn(
        &self,
        id: &ThreadId,
        access: Access,
        take: &TakeTurn,
    ) -> Result<TurnGranted, WriteError> {
        let has_room = self.0.has_room();
        let mut shard = self.0.of(id);
        let now_ms = self.0.clock.now_ms();
        if shard.living_mut(id, now_ms).is_none() && !shard.has_entry(id) {
            return Err(Refusal::NoThread.into());
        }
        if !has_room {
            return Err(self.0.budget.refuse().into());
        }
        Ok(shard.change(id, now_ms, |entry, step| {
            entry.take_turn(access, take, step)
        })?)
    }

    async fn recall_turn(
        &self,
        id: &ThreadId,
        access: Access,
        key: IdempotencyKey,
    ) -> Result<Option<TurnGranted>, WriteError> {
        Ok(self.change(id, |entry, step| {
            entry.recall_turn(access, Some(key), step.now_ms)
        })?)
    }

    async fn renew_turn(
        &self,
        id: &ThreadId,
        access: Access,
        token: TurnToken,
        ttl: Duration,
    ) -> Result<TurnGranted, WriteError> {
        Ok(self.change(id, |entry, step| {
            entry.renew_turn(access, token, ttl, step.now_ms)
        })?)
    }

    async fn end_turn(
        &self,
        id: &ThreadId,
        access: Access,
        token: TurnToken,
        release: Release,
    ) -> Result<(), WriteError> {
        let is_awaited = self.change(id, |entry, step| {
            entry.end_turn(access, token, release, step.now_ms)
        })?;
        if is_awaited {
            // there may be no receiver
            self.0.ended_turns.send(*id).ok();
        }
        Ok(())
    }

    async fn get_turn(&self, id: &ThreadId, access: Access) -> Result<TurnState, WriteError> {
        let mut shard = self.0.of(id);
        let now_ms = self.0.clock.now_ms();
        let living = shard.touch(id, access, now_ms)?;
        let last = living.and_then(|living| living.turn.as_deref());
        Ok(last.map_or_else(TurnState::default, |last| TurnState {
            number: last.number(),
            held: last.held(now_ms),
        }))
    }

    fn ended_turns(&self) -> broadcast::Receiver<ThreadId> {
        self.0.ended_turns.subscribe()
    }
}
