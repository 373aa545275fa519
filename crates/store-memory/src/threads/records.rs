//! Remembers results, so that a retry with the same idempotency key gets the first result.

use std::collections::{HashMap, VecDeque};

use threadkeep_domain::heap::Heap;
use threadkeep_domain::idempotency::{
    ANSWER_TTL_MAX, ANSWER_TTL_MIN, ANSWERS_MAX, COST_BYTES_MAX, LONG_LIVED_ANSWERS_MAX,
};
use threadkeep_domain::{Fingerprint, IdempotencyKey, Refusal, heap};
use threadkeep_store::millis;

pub(crate) trait Remembered: Heap {
    /// Returns the number of bytes that count toward the size limit for the results of one id.
    fn cost_bytes(&self) -> u64;
}

/// The results of one id, by idempotency key. A result is kept for at least a minute. The newest results are kept for
/// as long as the id exists, up to a day.
#[derive(Debug)]
pub(crate) struct Records<A> {
    by_key: HashMap<Fingerprint, Record<A>>,
    order: VecDeque<(u64, Fingerprint)>,
    cost_bytes: u64,
    heap_bytes: u64,
    ends_ms: u64,
}

#[derive(Debug)]
struct Record<A> {
    request: Fingerprint,
    answered: A,
}

impl<A> Default for Records<A> {
    fn default() -> Self {
        Self {
            by_key: HashMap::new(),
            order: VecDeque::new(),
            cost_bytes: 0,
            heap_bytes: 0,
            ends_ms: 0,
        }
    }
}

impl<A: Remembered> Records<A> {
    /// Returns the time at which all results have expired, or 0 if there are no results.
    pub(crate) fn ends_ms(&self) -> u64 {
        self.ends_ms
    }

    pub(crate) fn find(&self, key: IdempotencyKey, now_ms: u64) -> Result<Option<&A>, Refusal> {
        match self.by_key.get(&key.digest) {
            Some(record) if record.request == key.request => Ok(Some(&record.answered)),
            Some(_) => Err(Refusal::IdempotencyKeyReused),
            None => self.check_room(now_ms).map(|()| None),
        }
    }

    /// Like [`Self::find`], but returns the result as converted by `read`. Rejects the key if it was used for a
    /// different kind of request.
    pub(crate) fn replay<T>(
        &self,
        key: Option<IdempotencyKey>,
        now_ms: u64,
        read: impl FnOnce(&A) -> Option<T>,
    ) -> Result<Option<T>, Refusal> {
        let Some(key) = key else {
            return Ok(None);
        };
        let first = self.find(key, now_ms)?;
        first.map_or(Ok(None), |first| {
            let first = read(first).ok_or(Refusal::IdempotencyKeyReused)?;
            Ok(Some(first))
        })
    }

    pub(crate) fn remember(
        &mut self,
        key: Option<IdempotencyKey>,
        now_ms: u64,
        subject_end_ms: u64,
        answer: impl FnOnce() -> A,
    ) {
        if let Some(key) = key {
            self.add(key, answer(), now_ms, subject_end_ms);
        }
    }

    /// Returns whether a result is stored for `key`. If so, a write with `key` is a retry, which does not add data.
    pub(crate) fn has_answer(&self, key: IdempotencyKey, now_ms: u64) -> bool {
        self.ends_ms > now_ms && self.by_key.contains_key(&key.digest)
    }

    fn check_room(&self, now_ms: u64) -> Result<(), Refusal> {
        let is_full = self.order.len() as u64 >= ANSWERS_MAX || self.cost_bytes >= COST_BYTES_MAX;
        let oldest_ends_ms = self
            .order
            .front()
            .map_or(0, |(added_ms, _)| added_ms + millis(ANSWER_TTL_MIN));
        if is_full && oldest_ends_ms > now_ms {
            return Err(Refusal::TooManyIdempotencyKeys {
                retry_after_ms: oldest_ends_ms - now_ms,
            });
        }
        Ok(())
    }

    /// Remembers a result for a thread, scope or namespace that ends at `subject_end_ms`.
    ///
    /// Drops results older than a day. If there are [`LONG_LIVED_ANSWERS_MAX`] results, also drops up to two results
    /// that are older than a minute, which suffices because each call adds only one result.
    pub(crate) fn add(
        &mut self,
        key: IdempotencyKey,
        answered: A,
        now_ms: u64,
        subject_end_ms: u64,
    ) {
        for step in 0..LONG_LIVED_ANSWERS_MAX {
            let is_needed = step >= 2 || (self.order.len() as u64) < LONG_LIVED_ANSWERS_MAX;
            let ttl = if is_needed {
                ANSWER_TTL_MAX
            } else {
                ANSWER_TTL_MIN
            };
            match self.order.front() {
                Some((added_ms, _)) if added_ms + millis(ttl) <= now_ms => self.forget_oldest(),
                _ => break,
            }
        }
        self.cost_bytes += answered.cost_bytes();
        self.heap_bytes += answered.heap_bytes();
        let request = key.request;
        self.by_key.insert(key.digest, Record { request, answered });
        self.order.push_back((now_ms, key.digest));
        // an earlier result may last longer than this one
        let longest_ms = now_ms + millis(ANSWER_TTL_MAX);
        let ends_ms = self.ends_ms.max(subject_end_ms.min(longest_ms));
        self.ends_ms = ends_ms.max(now_ms + millis(ANSWER_TTL_MIN));
    }

    fn forget_oldest(&mut self) {
        let oldest = self.order.pop_front();
        if let Some(record) = oldest.and_then(|(_, digest)| self.by_key.remove(&digest)) {
            self.cost_bytes -= record.answered.cost_bytes();
            self.heap_bytes -= record.answered.heap_bytes();
        }
    }

    /// Makes all results expire at `ends_ms`, or a minute from now if that is later. Call this when the thread or scope
    /// that the results belong to has ended. Does not revive expired results.
    pub(crate) fn expire_by(&mut self, ends_ms: u64, now_ms: u64) {
        self.sweep(now_ms);
        if !self.order.is_empty() {
            self.ends_ms = ends_ms.max(now_ms + millis(ANSWER_TTL_MIN));
        }
    }

    pub(crate) fn sweep(&mut self, now_ms: u64) {
        if self.ends_ms <= now_ms && !self.order.is_empty() {
            *self = Self::default();
        }
    }
}

impl<A> Heap for Records<A> {
    fn heap_bytes(&self) -> u64 {
        heap::table::<(Fingerprint, Record<A>)>(self.by_key.capacity())
            + heap::array::<(u64, Fingerprint)>(self.order.capacity())
            + self.heap_bytes
    }
}
