//! Answers that are remembered for a repeat with the same idempotency key.

use std::collections::{HashMap, VecDeque};

use super::super::Destroyed;
use crate::domain::idempotency::{LONGEST, MOST, MOST_COST_BYTES, NEWEST, REMEMBERED};
use crate::domain::{Answer, Fingerprint, IdempotencyKey, Refusal, Written};
use crate::store::millis;

/// An answer that was given.
#[derive(Debug, Clone)]
pub(super) enum Answered {
    Written(Written),
    Destroyed(Destroyed),
}

/// The answers that one id has given, by idempotency key: each for at least a minute, the newest
/// for as long as the thread was to live, but no longer than a day.
#[derive(Debug, Default)]
pub(super) struct Records {
    by_key: HashMap<Fingerprint, Record>,
    /// When each was added, the oldest first.
    order: VecDeque<(u64, Fingerprint)>,
    cost_bytes: u64,
    ends_ms: u64,
}

#[derive(Debug)]
struct Record {
    request: Fingerprint,
    answered: Answered,
    /// Operations that answered nothing, which are not kept one by one.
    done: usize,
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
            Some(record) if record.request == key.request => Ok(Some(record.replay())),
            Some(_) => Err(Refusal::IdempotencyKeyReused),
            None => self.check_room(now_ms).map(|()| None),
        }
    }

    fn check_room(&self, now_ms: u64) -> Result<(), Refusal> {
        let is_full = self.order.len() as u64 >= MOST || self.cost_bytes >= MOST_COST_BYTES;
        let over_ms = self
            .order
            .front()
            .map_or(0, |(added_ms, _)| added_ms + millis(REMEMBERED));
        if is_full && over_ms > now_ms {
            return Err(Refusal::TooManyIdempotencyKeys {
                retry_after_ms: over_ms - now_ms,
            });
        }
        Ok(())
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
                Some((added_ms, _))
                    if self.order.len() as u64 >= NEWEST
                        && added_ms + millis(REMEMBERED) <= now_ms =>
                {
                    self.forget_oldest();
                }
                _ => break,
            }
        }
        let record = Record::new(key.request, answered);
        self.cost_bytes += record.cost_bytes();
        self.by_key.insert(key.digest, record);
        self.order.push_back((now_ms, key.digest));
        // an earlier answer may be remembered for longer than this one
        let longest_ms = now_ms + millis(LONGEST);
        let ends_ms = self.ends_ms.max(thread_ends_ms.min(longest_ms));
        self.end_by(ends_ms, now_ms);
    }

    fn forget_oldest(&mut self) {
        let oldest = self.order.pop_front();
        if let Some(record) = oldest.and_then(|(_, digest)| self.by_key.remove(&digest)) {
            self.cost_bytes -= record.cost_bytes();
        }
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

impl Record {
    fn new(request: Fingerprint, mut answered: Answered) -> Self {
        let mut done = 0;
        if let Answered::Written(written) = &mut answered
            && written.answers.iter().all(|answer| *answer == Answer::Done)
        {
            done = written.answers.len();
            written.answers = Vec::new();
        }
        Self {
            request,
            answered,
            done,
        }
    }

    /// The bytes of its metadata, and 8 for each result of an operation.
    fn cost_bytes(&self) -> u64 {
        let Answered::Written(written) = &self.answered else {
            return 0;
        };
        let results = written
            .answers
            .iter()
            .filter(|answer| **answer != Answer::Done);
        let metadata = written
            .thread
            .as_ref()
            .map_or(0, |thread| thread.metadata.as_str().len());
        (8 * results.count() + metadata) as u64
    }

    fn replay(&self) -> Answered {
        match &self.answered {
            Answered::Written(written) => {
                let mut written = written.clone();
                written.replayed = true;
                written
                    .answers
                    .resize(written.answers.len() + self.done, Answer::Done);
                Answered::Written(written)
            }
            Answered::Destroyed(destroyed) => Answered::Destroyed(Destroyed {
                replayed: true,
                ..*destroyed
            }),
        }
    }
}
