//! Answers that are remembered for a repeat with the same idempotency key.

use std::collections::{HashMap, VecDeque};

use super::super::Destroyed;
use crate::domain::idempotency::{MOST, NEWEST, REMEMBERED};
use crate::domain::{Fingerprint, IdempotencyKey, Refusal, Written};
use crate::store::millis;

/// An answer that was given.
#[derive(Debug, Clone)]
pub(super) enum Answered {
    Written(Written),
    Destroyed(Destroyed),
}

/// The answers that one id has given, by idempotency key: each for at least a minute, the newest
/// for as long as the thread was to live.
#[derive(Debug, Default)]
pub(super) struct Records {
    by_key: HashMap<Fingerprint, (Fingerprint, Answered)>,
    /// When each was added, the oldest first.
    order: VecDeque<(u64, Fingerprint)>,
    ends_ms: u64,
}

impl Records {
    pub(super) fn ends_ms(&self) -> u64 {
        self.ends_ms
    }

    /// The answer that the same request was given before, marked as replayed.
    pub(super) fn find(
        &self,
        key: IdempotencyKey,
        now_ms: u64,
    ) -> Result<Option<Answered>, Refusal> {
        match self.by_key.get(&key.digest) {
            Some((request, answered)) if *request == key.request => Ok(Some(answered.replayed())),
            Some(_) => Err(Refusal::IdempotencyKeyReused),
            None => self.check_room(now_ms).map(|()| None),
        }
    }

    fn check_room(&self, now_ms: u64) -> Result<(), Refusal> {
        match self.order.front() {
            Some((added_ms, _)) if self.order.len() as u64 >= MOST => {
                match (added_ms + millis(REMEMBERED)).checked_sub(now_ms) {
                    None | Some(0) => Ok(()),
                    Some(retry_after_ms) => Err(Refusal::TooManyIdempotencyKeys { retry_after_ms }),
                }
            }
            _ => Ok(()),
        }
    }

    /// Remembers an answer, and forgets, of those past the newest, the two oldest whose minute is
    /// over: more than come in.
    pub(super) fn add(
        &mut self,
        key: IdempotencyKey,
        answered: Answered,
        now_ms: u64,
        thread_ends_ms: u64,
    ) {
        for _ in 0..2 {
            match self.order.front() {
                Some((added_ms, oldest))
                    if self.order.len() as u64 >= NEWEST
                        && added_ms + millis(REMEMBERED) <= now_ms =>
                {
                    self.by_key.remove(oldest);
                    self.order.pop_front();
                }
                _ => break,
            }
        }
        self.by_key.insert(key.digest, (key.request, answered));
        self.order.push_back((now_ms, key.digest));
        // an earlier answer may be remembered for longer than this one
        let ends_ms = self.ends_ms.max(thread_ends_ms);
        self.end_by(ends_ms, now_ms);
    }

    /// Forgets all at that time, but not before a minute from now.
    pub(super) fn end_by(&mut self, ends_ms: u64, now_ms: u64) {
        self.ends_ms = ends_ms.max(now_ms + millis(REMEMBERED));
    }

    pub(super) fn sweep(&mut self, now_ms: u64) {
        if self.ends_ms <= now_ms && !self.order.is_empty() {
            *self = Self::default();
        }
    }
}

impl Answered {
    fn replayed(&self) -> Self {
        match self {
            Self::Written(written) => Self::Written(Written {
                replayed: true,
                ..written.clone()
            }),
            Self::Destroyed(destroyed) => Self::Destroyed(Destroyed {
                replayed: true,
                ..*destroyed
            }),
        }
    }
}
