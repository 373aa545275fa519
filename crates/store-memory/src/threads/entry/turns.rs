use std::time::Duration;

use super::super::answered::Answered;
use super::Entry;
use crate::past::Step;
use threadkeep_domain::threads::turn::{end_turn, renew_turn, take_turn};
use threadkeep_domain::{
    Access, IdempotencyKey, Refusal, Release, TakeTurn, TurnGranted, TurnToken,
};

impl Entry {
    pub(crate) fn take_turn(
        &mut self,
        access: Access,
        take: &TakeTurn,
        step: &mut Step<'_>,
    ) -> Result<TurnGranted, Refusal> {
        let now_ms = step.now_ms;
        self.sweep(step);
        if let Some(first) = self.recall_turn(access, take.idempotency, now_ms)? {
            return Ok(first);
        }
        if self.is_unbound(access, now_ms) {
            return Err(Refusal::NoThread);
        }
        let living = self.touch(access, now_ms)?.ok_or(Refusal::NoThread)?;
        let granted = take_turn(&mut living.turn, take, now_ms)?;
        let granted = living.with_doubts(granted);
        self.remember(take.idempotency, now_ms, || Answered::Granted(granted));
        Ok(granted)
    }

    pub(crate) fn recall_turn(
        &mut self,
        access: Access,
        key: Option<IdempotencyKey>,
        now_ms: u64,
    ) -> Result<Option<TurnGranted>, Refusal> {
        self.records.sweep(now_ms);
        self.check_access(access, now_ms)?;
        self.records.replay(key, now_ms, Answered::granted)
    }

    pub(crate) fn renew_turn(
        &mut self,
        access: Access,
        token: TurnToken,
        ttl: Duration,
        now_ms: u64,
    ) -> Result<TurnGranted, Refusal> {
        let living = self.touch(access, now_ms)?.ok_or(Refusal::TurnLost)?;
        let granted = renew_turn(living.turn.as_deref_mut(), token, ttl, now_ms)?;
        Ok(living.with_doubts(granted))
    }

    /// Releases a turn. Returns whether another caller is waiting for the turn.
    pub(crate) fn end_turn(
        &mut self,
        access: Access,
        token: TurnToken,
        release: Release,
        now_ms: u64,
    ) -> Result<bool, Refusal> {
        let living = self.touch(access, now_ms)?;
        let last = living.and_then(|living| living.turn.as_deref_mut());
        end_turn(last, token, release, now_ms)
    }
}
