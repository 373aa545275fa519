//! Implements turns. A turn is a lease on a thread, with a fencing token.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::{IdempotencyKey, Refusal, ResponseId};

const PREFIX: &str = "turn_";
pub(crate) const TOKEN_BYTES: usize = 16;

/// The random, unguessable fencing token of a turn.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TurnToken(pub [u8; TOKEN_BYTES]);

/// A malformed turn token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a token of a turn is `turn_` and 32 hex digits")]
pub struct TurnTokenError;

impl TurnToken {
    /// Generates a token.
    #[must_use]
    pub fn random() -> Self {
        Self(rand::random())
    }
}

impl FromStr for TurnToken {
    type Err = TurnTokenError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.strip_prefix(PREFIX).ok_or(TurnTokenError)?;
        let mut token = [0; TOKEN_BYTES];
        hex::decode_to_slice(digits, &mut token).map_err(|_| TurnTokenError)?;
        Ok(Self(token))
    }
}

impl fmt::Display for TurnToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", hex::encode(self.0))
    }
}

/// Keeps tokens out of logs.
impl fmt::Debug for TurnToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TurnToken")
    }
}

/// A request for a turn.
#[derive(Debug, Clone, Copy)]
pub struct TakeTurn {
    /// The token of the turn if it is granted.
    pub token: TurnToken,
    /// How long the turn lasts without renewal.
    pub ttl: Duration,
    /// Whether writes without the token are rejected while the turn is held.
    pub exclusive: bool,
    /// Whether the caller waits if another turn is held. If so, the caller is notified when that turn ends.
    pub waits: bool,
    /// The idempotency key.
    pub idempotency: Option<IdempotencyKey>,
}

/// A turn that was granted or renewed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnGranted {
    /// The token.
    pub token: TurnToken,
    /// When the turn ends unless it is renewed, in Unix milliseconds according to the store's clock.
    pub ends_ms: u64,
    /// Whether the answer was replayed for the idempotency key.
    pub replayed: bool,
}

/// The public part of the current turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnHeld {
    /// When the turn ends without renewal.
    pub ends_ms: u64,
    /// Whether writes without the token are rejected.
    pub exclusive: bool,
}

/// The most recently granted turn in one life of a thread.
#[derive(Debug, Clone, Copy)]
pub struct LastTurn {
    token: TurnToken,
    /// 0 after the turn was released.
    ends_ms: u64,
    exclusive: bool,
    awaited: bool,
    response: Option<ResponseId>,
}

impl LastTurn {
    /// Returns the turn, unless it has ended.
    #[must_use]
    pub fn held(&self, now_ms: u64) -> Option<TurnHeld> {
        (self.ends_ms > now_ms).then_some(TurnHeld {
            ends_ms: self.ends_ms,
            exclusive: self.exclusive,
        })
    }

    /// Returns the token.
    #[must_use]
    pub fn token(&self) -> TurnToken {
        self.token
    }

    /// Returns the last response that ran under this turn or an earlier turn.
    #[must_use]
    pub fn response(&self) -> Option<ResponseId> {
        self.response
    }

    /// Records that another caller is waiting for the turn to end.
    pub fn await_end(&mut self) {
        self.awaited = true;
    }

    /// Sets the end of the turn.
    pub fn extend_to(&mut self, ends_ms: u64) {
        self.ends_ms = ends_ms;
    }

    /// Records the response that works under the turn.
    pub fn record_response(&mut self, response: ResponseId) {
        self.response = Some(response);
    }
}

/// Grants a turn to a response, and revokes any other turn.
pub fn grant_turn(
    last: &mut Option<Box<LastTurn>>,
    response: ResponseId,
    token: TurnToken,
    ends_ms: u64,
) {
    *last = Some(Box::new(LastTurn {
        token,
        ends_ms,
        exclusive: false,
        awaited: false,
        response: Some(response),
    }));
}

/// Checks that the last turn allows a write with `token`.
pub fn check_turn(
    last: Option<&LastTurn>,
    token: Option<TurnToken>,
    now_ms: u64,
) -> Result<(), Refusal> {
    match (last, token) {
        (Some(last), Some(token)) if last.token == token => Ok(()),
        (_, Some(_)) => Err(Refusal::TurnLost),
        (Some(last), None) => match last.held(now_ms) {
            Some(held) if held.exclusive => Err(taken(held, now_ms)),
            _ => Ok(()),
        },
        (None, None) => Ok(()),
    }
}

fn taken(held: TurnHeld, now_ms: u64) -> Refusal {
    Refusal::TurnTaken {
        ends_ms: held.ends_ms,
        left_ms: held.ends_ms.saturating_sub(now_ms),
    }
}

/// Grants a turn, unless another turn is held.
pub fn take_turn(
    last: &mut Option<Box<LastTurn>>,
    take: &TakeTurn,
    now_ms: u64,
) -> Result<TurnGranted, Refusal> {
    if let Some(last) = last.as_mut()
        && let Some(held) = last.held(now_ms)
    {
        last.awaited |= take.waits;
        return Err(taken(held, now_ms));
    }
    let ends_ms = now_ms.saturating_add(crate::millis(take.ttl));
    *last = Some(Box::new(LastTurn {
        token: take.token,
        ends_ms,
        exclusive: take.exclusive,
        awaited: false,
        response: last.as_ref().and_then(|last| last.response),
    }));
    Ok(TurnGranted {
        token: take.token,
        ends_ms,
        replayed: false,
    })
}

/// Renews a turn, even if it has expired. Fails if the turn was released or a later turn was granted.
pub fn renew_turn(
    last: Option<&mut LastTurn>,
    token: TurnToken,
    ttl: Duration,
    now_ms: u64,
) -> Result<TurnGranted, Refusal> {
    let last = last.filter(|last| last.token == token && last.ends_ms > 0);
    let last = last.ok_or(Refusal::TurnLost)?;
    last.ends_ms = now_ms.saturating_add(crate::millis(ttl));
    Ok(TurnGranted {
        token,
        ends_ms: last.ends_ms,
        replayed: false,
    })
}

/// Releases a turn. Returns whether another caller is waiting for the turn to end.
pub fn end_turn(
    last: Option<&mut LastTurn>,
    token: TurnToken,
    now_ms: u64,
) -> Result<bool, Refusal> {
    let Some(last) = last else {
        return Ok(false);
    };
    if last.token == token {
        last.ends_ms = 0;
        return Ok(last.awaited);
    }
    match last.held(now_ms) {
        Some(_) => Err(Refusal::TurnLost),
        None => Ok(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_round_trips_and_is_not_logged() {
        let token = TurnToken::random();

        assert_eq!(token.to_string().parse(), Ok(token));
        assert_eq!(format!("{token:?}"), "TurnToken");
        for bad in ["", "turn_", "turn_zz", "0123456789abcdef0123456789abcdef"] {
            assert_eq!(bad.parse::<TurnToken>(), Err(TurnTokenError));
        }
    }
}
