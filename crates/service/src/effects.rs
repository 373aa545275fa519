//! Effects of threads. An effect is the record of one tool call in the ledger of its thread.

use std::sync::Arc;

use super::{ServiceError, ThreadService};
use threadkeep_domain::effects::{
    BeginEffect, Effect, EffectId, EffectRefusal, EffectState, Fence, InputHash, RunKey,
    SettleEffect, Settled, ToolName,
};
use threadkeep_domain::{IdempotencyKey, Owner, Refusal, ThreadId, TurnToken};
use threadkeep_store::EffectLedger;

#[derive(Debug, Clone)]
pub struct EffectService {
    ledger: Arc<dyn EffectLedger>,
    threads: ThreadService,
}

/// A request to begin an effect under a turn, or to read it if it is known.
#[derive(Debug, Clone)]
pub struct EffectRequest {
    pub id: EffectId,
    pub tool: ToolName,
    pub hash: InputHash,
    /// Whether the tool may run again with the same idempotency key.
    pub idempotent: bool,
    /// To begin the next attempt, the attempt that failed or is in doubt.
    pub retry: Option<u32>,
    pub turn: TurnToken,
    pub idempotency: Option<IdempotencyKey>,
}

impl EffectService {
    #[must_use]
    pub fn new(ledger: Arc<dyn EffectLedger>, threads: ThreadService) -> Self {
        Self { ledger, threads }
    }

    /// Returns a copy that uses the policy and the access of `threads`.
    #[must_use]
    pub fn with_threads(&self, threads: ThreadService) -> Self {
        Self {
            threads,
            ..self.clone()
        }
    }

    /// Returns a copy that acts on behalf of `owner`, or of a caller without an owner if `owner` is `None`.
    #[must_use]
    pub fn on_behalf_of(&self, owner: Option<Owner>) -> Self {
        self.with_threads(self.threads.on_behalf_of(owner))
    }

    /// Begins an effect or its next attempt, or returns the effect as it is.
    pub async fn begin(
        &self,
        id: &ThreadId,
        request: &EffectRequest,
    ) -> Result<Effect, ServiceError> {
        self.threads.admit(id).await?;
        let begin = BeginEffect {
            id: &request.id,
            tool: &request.tool,
            hash: &request.hash,
            idempotent: request.idempotent,
            retry: request.retry,
            turn: Some(request.turn),
            idempotency: self.threads.own(request.idempotency),
            fence: Fence::random(),
            key: RunKey::random(),
        };
        let access = self.threads.access();
        Ok(self.ledger.begin_effect(id, access, &begin).await?)
    }

    /// Records how a tool call ended. Without a fence, `turn` must be the held turn, and the effect must be in doubt.
    pub async fn settle(
        &self,
        id: &ThreadId,
        settle: &SettleEffect,
        turn: Option<TurnToken>,
    ) -> Result<Settled, ServiceError> {
        settle.check(turn).map_err(Refusal::from)?;
        self.threads.admit(id).await?;
        let access = self.threads.access();
        Ok(self.ledger.settle_effect(id, access, settle, turn).await?)
    }

    pub async fn get(&self, id: &ThreadId, effect: &EffectId) -> Result<Effect, ServiceError> {
        let access = self.threads.access();
        let found = self.ledger.get_effect(id, access, effect).await?;
        found.ok_or_else(|| ServiceError::Refused(EffectRefusal::NotFound.into()))
    }

    /// Returns up to `limit` effects before `position`, newest first, without their results.
    pub async fn list(
        &self,
        id: &ThreadId,
        state: Option<EffectState>,
        position: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Effect>, ServiceError> {
        let access = self.threads.access();
        Ok(self
            .ledger
            .list_effects(id, access, state, position, limit)
            .await?)
    }
}
