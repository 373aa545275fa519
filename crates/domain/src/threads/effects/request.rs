use super::{EffectId, EffectRefusal, Fence, InputHash, Outcome, RunKey, ToolName};
use crate::{IdempotencyKey, TurnToken};

/// A request to begin an effect, or to read it if it is known.
#[derive(Debug, Clone, Copy)]
pub struct BeginEffect<'a> {
    /// The client's id.
    pub id: &'a EffectId,
    /// The tool.
    pub tool: &'a ToolName,
    /// The hash of the arguments.
    pub hash: &'a InputHash,
    /// Whether the tool may run again with the same idempotency key. If so, an effect in doubt begins its next attempt.
    pub idempotent: bool,
    /// To begin the next attempt, the attempt that failed or is in doubt.
    pub retry: Option<u32>,
    /// The turn under which the caller works.
    pub turn: Option<TurnToken>,
    /// The idempotency key of the request. A retry gets the grant of the first request while its attempt runs.
    pub idempotency: Option<IdempotencyKey>,
    /// The fence of the attempt, if it is granted.
    pub fence: Fence,
    /// The idempotency key of the effect, if it is new.
    pub key: RunKey,
}

/// A request to record how a tool call ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettleEffect {
    /// The client's id.
    pub id: EffectId,
    /// The fence of the last attempt. Without it, only the holder can settle the effect, and only if it is in doubt.
    pub fence: Option<Fence>,
    /// How the effect ended.
    pub outcome: Outcome,
}

impl SettleEffect {
    /// Checks the parts that do not depend on the ledger: the size of the value, and that a fence or a token is given.
    pub fn check(&self, turn: Option<TurnToken>) -> Result<(), EffectRefusal> {
        if self.fence.is_none() && turn.is_none() {
            return Err(EffectRefusal::NoFence);
        }
        self.outcome.check()
    }
}
