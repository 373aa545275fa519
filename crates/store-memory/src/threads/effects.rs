use async_trait::async_trait;

use crate::MemoryStore;
use threadkeep_domain::effects::{
    BeginEffect, Effect, EffectId, EffectRefusal, EffectState, SettleEffect, Settled,
};
use threadkeep_domain::{Access, Refusal, ThreadId, TurnToken};
use threadkeep_store::{EffectLedger, WriteError};

#[async_trait]
impl EffectLedger for MemoryStore {
    async fn begin_effect(
        &self,
        id: &ThreadId,
        access: Access,
        begin: &BeginEffect<'_>,
    ) -> Result<Effect, WriteError> {
        let has_room = self.0.has_room();
        let begun = self.change(id, |entry, step| {
            let living = entry.touch(access, step.now_ms)?.ok_or(Refusal::TurnLost)?;
            let last = living.turn.as_deref();
            let known = living
                .effects
                .as_ref()
                .and_then(|effects| effects.get(begin.id, last));
            if !has_room && known.is_none() {
                return Ok(None);
            }
            let effects = living.effects.get_or_insert_default();
            effects.begin(begin, last, step.now_ms).map(Some)
        });
        begun?.ok_or_else(|| self.0.budget.refuse().into())
    }

    async fn settle_effect(
        &self,
        id: &ThreadId,
        access: Access,
        settle: &SettleEffect,
        token: Option<TurnToken>,
    ) -> Result<Settled, WriteError> {
        Ok(self.change(id, |entry, step| {
            let living = entry.touch(access, step.now_ms)?;
            let living = living.ok_or(EffectRefusal::NotFound)?;
            let effects = living.effects.as_mut().ok_or(EffectRefusal::NotFound)?;
            effects.settle(settle, token, living.turn.as_deref(), step.now_ms)
        })?)
    }

    async fn get_effect(
        &self,
        id: &ThreadId,
        access: Access,
        effect: &EffectId,
    ) -> Result<Option<Effect>, WriteError> {
        let mut shard = self.0.of(id);
        let now_ms = self.0.clock.now_ms();
        let living = shard.touch(id, access, now_ms)?;
        Ok(living.and_then(|living| {
            let effects = living.effects.as_ref()?;
            effects.get(effect, living.turn.as_deref())
        }))
    }

    async fn list_effects(
        &self,
        id: &ThreadId,
        access: Access,
        state: Option<EffectState>,
        position: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Effect>, WriteError> {
        let mut shard = self.0.of(id);
        let now_ms = self.0.clock.now_ms();
        let living = shard.touch(id, access, now_ms)?;
        let Some(living) = living else {
            return Ok(Vec::new());
        };
        let Some(effects) = &living.effects else {
            return Ok(Vec::new());
        };
        let found = effects.before(position, living.turn.as_deref());
        let found = found.filter(|effect| state.is_none_or(|state| effect.state == state));
        Ok(found.take(limit).collect())
    }
}
