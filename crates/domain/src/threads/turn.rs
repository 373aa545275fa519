//! Implements turns. A turn is a lease on a thread, with a fencing token.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::{IdempotencyKey, Refusal, ResponseId};

const PREFIX: &str = "turn_";
pub(crate) const TOKEN_BYTES: usize = 16;
const NO_HOLDER: [u8; TOKEN_BYTES] = [0; TOKEN_BYTES];

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
        // this token stands for the lost holder of a turn: see `LastTurn::after`
        match token == NO_HOLDER {
            true => Err(TurnTokenError),
            false => Ok(Self(token)),
        }
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

/// Whether the work of a released turn is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Release {
    /// The work is complete. The settled effects of this turn and of earlier turns may be removed to make room.
    #[default]
    Complete,
    /// A later turn must resume the work and needs all effects.
    Incomplete,
}

/// A turn that was granted or renewed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnGranted {
    /// The token.
    pub token: TurnToken,
    /// When the turn ends unless it is renewed, in Unix milliseconds according to the store's clock.
    pub ends_ms: u64,
    /// The number of the turn.
    pub number: u32,
    /// The number of effects in doubt: earlier turns began them and did not settle them.
    pub in_doubt: u32,
    /// Whether the answer was replayed for the idempotency key.
    pub replayed: bool,
}

/// The public part of a thread's turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TurnState {
    /// The number of the last turn: 1 for the first turn of a life, and one more for each later turn. 0 without a turn.
    pub number: u32,
    /// The last turn, while it is held.
    pub held: Option<TurnHeld>,
}

/// The public part of the current turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnHeld {
    /// When the turn ends without renewal.
    pub ends_ms: u64,
    /// Whether writes without the token are rejected.
    pub exclusive: bool,
}

/// The numbers of a thread's turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TurnNumbers {
    /// The number of the last turn; 0 without a turn.
    pub last: u32,
    /// The number of the last turn whose work is complete; 0 if there is no such turn.
    pub complete: u32,
}

/// The most recently granted turn in one life of a thread.
#[derive(Debug, Clone, Copy)]
pub struct LastTurn {
    token: TurnToken,
    /// 0 after the turn was released.
    ends_ms: u64,
    number: u32,
    /// The number of the last turn whose work is complete; 0 if there is no such turn.
    complete: u32,
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

    /// Returns the number of the turn.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Returns the number of the last turn whose work is complete.
    #[must_use]
    pub fn complete(&self) -> u32 {
        self.complete
    }

    /// Returns whether `number` is this turn and the turn was not released. A turn that has only expired still counts,
    /// because its holder may renew it.
    #[must_use]
    pub fn may_continue(&self, number: u32) -> bool {
        self.number == number && self.ends_ms > 0
    }

    /// Returns the numbers of the last turn and of the last complete turn.
    #[must_use]
    pub fn numbers(&self) -> TurnNumbers {
        TurnNumbers {
            last: self.number,
            complete: self.complete,
        }
    }

    /// Returns the turn without its holder, for a new life of the thread that continues the numbers.
    #[must_use]
    pub fn without_holder(&self) -> Option<Box<Self>> {
        Self::after(self.numbers())
    }

    /// Returns a turn without a holder that continues `numbers`, or `None` without an earlier turn.
    #[must_use]
    pub fn after(numbers: TurnNumbers) -> Option<Box<Self>> {
        let last = Self {
            token: TurnToken(NO_HOLDER),
            ends_ms: 0,
            number: numbers.last,
            complete: numbers.complete,
            exclusive: false,
            awaited: false,
            response: None,
        };
        (numbers.last > 0).then(|| Box::new(last))
    }

    fn release(&mut self, release: Release) {
        self.ends_ms = 0;
        if release == Release::Complete {
            self.complete = self.number;
        }
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

/// Grants a turn to a response, and revokes any other turn. If the response holds the turn, renews it.
pub fn grant_turn(
    last: &mut Option<Box<LastTurn>>,
    response: ResponseId,
    token: TurnToken,
    ends_ms: u64,
) {
    let is_held = |last: &LastTurn| last.token == token;
    let TurnNumbers {
        last: number,
        complete,
    } = numbers(last.as_deref());
    *last = Some(Box::new(LastTurn {
        token,
        ends_ms,
        number: number.saturating_add(u32::from(!last.as_deref().is_some_and(is_held))),
        complete,
        exclusive: false,
        awaited: false,
        response: Some(response),
    }));
}

fn numbers(last: Option<&LastTurn>) -> TurnNumbers {
    last.map_or_else(TurnNumbers::default, LastTurn::numbers)
}

/// Checks that the caller with `token` holds the turn, and returns the turn.
pub fn check_held(
    last: Option<&LastTurn>,
    token: Option<TurnToken>,
    now_ms: u64,
) -> Result<&LastTurn, Refusal> {
    let last = last.filter(|last| Some(last.token) == token);
    let last = last.ok_or(Refusal::TurnLost)?;
    match last.held(now_ms) {
        Some(_) => Ok(last),
        None => Err(Refusal::TurnNotHeld {
            number: last.number,
            operation: None,
        }),
    }
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

/// Grants a turn, unless another turn is held. The caller sets [`TurnGranted::in_doubt`].
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
    let TurnNumbers {
        last: number,
        complete,
    } = numbers(last.as_deref());
    let number = number.saturating_add(1);
    *last = Some(Box::new(LastTurn {
        token: take.token,
        ends_ms,
        number,
        complete,
        exclusive: take.exclusive,
        awaited: false,
        response: last.as_ref().and_then(|last| last.response),
    }));
    Ok(TurnGranted {
        token: take.token,
        ends_ms,
        number,
        in_doubt: 0,
        replayed: false,
    })
}

/// Renews a turn, even if it has expired. Fails if the turn was released or a later turn was granted.
/// The caller sets [`TurnGranted::in_doubt`].
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
        number: last.number,
        in_doubt: 0,
        replayed: false,
    })
}

/// Releases a turn. Returns whether another caller is waiting for the turn to end.
pub fn end_turn(
    last: Option<&mut LastTurn>,
    token: TurnToken,
    release: Release,
    now_ms: u64,
) -> Result<bool, Refusal> {
    let Some(last) = last else {
        return Ok(false);
    };
    if last.token == token {
        last.release(release);
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
        let no_holder = TurnToken(NO_HOLDER).to_string();
        for bad in [
            "",
            "turn_",
            "turn_zz",
            "0123456789abcdef0123456789abcdef",
            &no_holder,
        ] {
            assert_eq!(bad.parse::<TurnToken>(), Err(TurnTokenError));
        }
    }
}
