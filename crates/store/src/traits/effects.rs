use std::fmt;

use async_trait::async_trait;

use crate::WriteError;
use threadkeep_domain::effects::{
    BeginEffect, Effect, EffectId, EffectState, SettleEffect, Settled,
};
use threadkeep_domain::{Access, ThreadId, TurnToken};

/// Records the effects of threads: when tool calls begin, and how they end.
///
/// An effect does not change the thread's version. Each method extends the thread's lifetime. If the thread does not
/// exist, `begin_effect` fails with `TurnLost`, and the other methods find nothing.
#[async_trait]
pub trait EffectLedger: fmt::Debug + Send + Sync {
    /// Begins an effect or its next attempt, or returns the effect as it is.
    async fn begin_effect(
        &self,
        id: &ThreadId,
        access: Access,
        begin: &BeginEffect<'_>,
    ) -> Result<Effect, WriteError>;

    /// Records how a tool call ended. `token` is needed only without a fence.
    async fn settle_effect(
        &self,
        id: &ThreadId,
        access: Access,
        settle: &SettleEffect,
        token: Option<TurnToken>,
    ) -> Result<Settled, WriteError>;

    /// Returns an effect with its outcome.
    async fn get_effect(
        &self,
        id: &ThreadId,
        access: Access,
        effect: &EffectId,
    ) -> Result<Option<Effect>, WriteError>;

    /// Returns up to `limit` effects before `position`, newest first, without their outcomes. With `state`, returns
    /// only effects in that state.
    async fn list_effects(
        &self,
        id: &ThreadId,
        access: Access,
        state: Option<EffectState>,
        position: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Effect>, WriteError>;
}
