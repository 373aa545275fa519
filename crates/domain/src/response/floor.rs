//! Grants the floor of a thread to a response. The floor is the thread's turn, a lock that clients can also take.

use std::time::Duration;

use super::ResponseId;
use super::held::HeldResponse;
use super::steps::{BeginResponse, Begun, Floor};
use crate::threads::turn::{LastTurn, grant_turn};
use crate::{Life, Refusal, TurnToken, millis};

/// A thread in which a response requests the turn.
#[derive(Debug)]
pub struct ThreadFloor<'a> {
    /// The life of the thread.
    pub life: Life,
    /// The last turn of the life.
    pub turn: &'a mut Option<Box<LastTurn>>,
    /// The last response that worked under `turn`, if it is still stored.
    pub last: Option<&'a HeldResponse>,
    /// The stored state of the requesting response, if it has already begun.
    pub before: Option<&'a HeldResponse>,
}

impl ThreadFloor<'_> {
    /// Takes the turn for the response `id`, or records that the response works under its caller's turn. If the
    /// response must wait, returns the reason.
    pub fn take(
        mut self,
        id: ResponseId,
        begin: &BeginResponse<'_>,
        now_ms: u64,
    ) -> Result<Option<Begun>, Refusal> {
        let last = self.turn.as_deref();
        let (holder, response) = (last.map(LastTurn::token), last.and_then(LastTurn::response));
        match begin.floor {
            Floor::None => return Ok(None),
            Floor::Lent(token) if holder != Some(token) => return Err(Refusal::TurnLost),
            Floor::Lent(_) => {}
            Floor::Taken => {
                if let Some(locked) = self.wait(begin.token, now_ms) {
                    return Ok(Some(locked));
                }
            }
        }
        if let Some(response) = response.filter(|response| *response != id)
            && let Some(last) = self.last
            && last.answer.is_none()
            && last.life == Some(self.life)
        {
            return Ok(Some(last.floor_conflict(response, now_ms)));
        }
        if self.before.is_none() && begin.request.is_none() {
            return Ok(Some(Begun::Free));
        }
        match (begin.floor, self.turn.as_deref_mut()) {
            (Floor::Lent(_), Some(last)) => last.record_response(id),
            _ => {
                let ends_ms = now_ms.saturating_add(millis(begin.lease));
                grant_turn(self.turn, id, begin.token, ends_ms);
            }
        }
        Ok(None)
    }

    /// Returns [`Begun::Locked`] if another caller holds the turn. In that case, also records that a caller is waiting
    /// for the turn to end.
    fn wait(&mut self, token: TurnToken, now_ms: u64) -> Option<Begun> {
        let last = self.turn.as_deref_mut()?;
        let held = last.held(now_ms)?;
        let holder = Some(last.token());
        // an ended response may still hold the turn if the thread was rotated, that is, moved to a new id
        let is_stale = self
            .last
            .is_some_and(|last| last.answer.is_some() && last.took_turn() && last.turn == holder);
        if is_stale || holder == Some(token) || holder == self.before.map(HeldResponse::token) {
            return None;
        }
        last.await_end();
        let is_active = |last: &HeldResponse| last.answer.is_none() && last.turn == holder;
        let by = last.response().filter(|_| self.last.is_some_and(is_active));
        let left = Duration::from_millis(held.ends_ms - now_ms);
        Some(Begun::Locked { by, left })
    }
}

#[cfg(test)]
mod tests;
