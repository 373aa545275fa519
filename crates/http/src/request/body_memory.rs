//! Limits the memory that a worker holds for request bodies.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::time::Instant;

/// Number of bytes per body that do not count towards the limit. Small bodies can therefore arrive even if large bodies
/// fill the memory.
const FREE_BYTES: u64 = 16_384;
/// Minimum rate of a body while other bodies are waiting for memory, averaged over [`CREDIT`]. Without a minimum rate,
/// a slow client could block other clients at little cost.
const BYTES_PER_SECOND: u64 = 262_144;
const CREDIT: Duration = Duration::from_secs(2);
/// Interval between checks for slow bodies while other bodies are waiting for memory.
pub(crate) const SLOW_CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// Limits the memory that request bodies use, from the arrival of a body until its request is done.
///
/// Bytes count only once they arrive, because a client could otherwise fill the memory by announcing bodies. The oldest
/// incomplete body may use all of the memory. All other bodies must leave memory for one body of maximum size.
/// Incomplete bodies therefore cannot block each other, because the oldest body either makes progress or is dropped.
#[derive(Debug, Clone)]
pub struct BodyMemory(Rc<Pool>);

#[derive(Debug)]
struct Pool {
    limit_bytes: u64,
    /// Number of bytes that only the oldest incomplete body may use. Equals the maximum size of a body.
    reserved_bytes: u64,
    used_bytes: Cell<u64>,
    next_number: Cell<u64>,
    next_slow_check: Cell<Option<Instant>>,
    /// Incomplete bodies larger than [`FREE_BYTES`], oldest first.
    arriving: RefCell<BTreeMap<u64, Arrival>>,
}

#[derive(Debug)]
struct Arrival {
    waker: Waker,
    state: ArrivalState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ArrivalState {
    /// After this time, the body may be dropped if other bodies are waiting for memory.
    Receiving(Instant),
    Waiting,
    Evicted,
}

/// The memory of one body. Dropping the share frees the memory.
#[derive(Debug)]
pub struct Share {
    memory: BodyMemory,
    bytes: u64,
    /// Key of this body in `arriving`.
    number: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no memory is left for the body")]
pub(crate) struct Evicted;

impl BodyMemory {
    #[must_use]
    pub fn new(limit_bytes: u64, largest_bytes: u64) -> Self {
        Self(Rc::new(Pool {
            limit_bytes,
            reserved_bytes: largest_bytes,
            used_bytes: Cell::new(0),
            next_number: Cell::new(0),
            next_slow_check: Cell::default(),
            arriving: RefCell::default(),
        }))
    }

    pub(super) fn share(&self) -> Share {
        Share {
            memory: self.clone(),
            bytes: 0,
            number: None,
        }
    }

    fn drop_slow(&self, now: Instant) {
        for arrival in self.0.arriving.borrow_mut().values_mut() {
            if matches!(arrival.state, ArrivalState::Receiving(deadline) if deadline < now) {
                arrival.state = ArrivalState::Evicted;
                arrival.waker.wake_by_ref();
            }
        }
    }

    fn has_room(&self, number: u64, bytes: u64) -> bool {
        let arriving = self.0.arriving.borrow();
        let is_oldest = arriving.keys().next() == Some(&number);
        let reserved_bytes = match is_oldest {
            true => 0,
            false => self.0.reserved_bytes,
        };
        let mut older = arriving.range(..number);
        let is_first = older.all(|(_, arrival)| arrival.state != ArrivalState::Waiting);
        let available_bytes = self.0.limit_bytes.saturating_sub(reserved_bytes);
        is_first && self.0.used_bytes.get() + bytes <= available_bytes
    }

    /// Wakes the oldest waiting body. Once that body has reserved memory, it wakes the next waiting body.
    fn wake_waiting(&self) {
        let arriving = self.0.arriving.borrow();
        let mut arrivals = arriving.values();
        if let Some(waiting) = arrivals.find(|arrival| arrival.state == ArrivalState::Waiting) {
            waiting.waker.wake_by_ref();
        }
    }
}

/// Creates an unlimited `BodyMemory`, for connections that do not have one.
impl Default for BodyMemory {
    fn default() -> Self {
        Self::new(u64::MAX, 0)
    }
}

impl Share {
    /// Reserves memory for `bytes` received bytes. Waits until memory is free and no older body is waiting. Fails if
    /// the body was dropped.
    pub(super) fn poll_reserve(
        &mut self,
        cx: &Context<'_>,
        bytes: u64,
        now: Instant,
    ) -> Poll<Result<(), Evicted>> {
        if self.bytes + bytes <= FREE_BYTES {
            self.bytes += bytes;
            return Poll::Ready(Ok(()));
        }
        let number = *self
            .number
            .get_or_insert_with(|| self.memory.0.register(now));
        let counted_before = self.counted_bytes();
        let counted_bytes = (self.bytes + bytes).saturating_sub(FREE_BYTES) - counted_before;
        let has_room = self.memory.has_room(number, counted_bytes);
        let pool = &self.memory.0;
        let mut arriving = pool.arriving.borrow_mut();
        let Some(arrival) = arriving.get_mut(&number) else {
            return Poll::Ready(Ok(()));
        };
        let deadline = match arrival.state {
            ArrivalState::Evicted => return Poll::Ready(Err(Evicted)),
            ArrivalState::Receiving(deadline) => deadline,
            ArrivalState::Waiting => now + CREDIT,
        };
        if !has_room {
            arrival.state = ArrivalState::Waiting;
            arrival.waker.clone_from(cx.waker());
            return Poll::Pending;
        }
        let did_wait = arrival.state == ArrivalState::Waiting;
        let earned = Duration::from_micros(bytes * 1_000_000 / BYTES_PER_SECOND);
        arrival.state = ArrivalState::Receiving((deadline + earned).min(now + CREDIT));
        drop(arriving);
        self.bytes += bytes;
        pool.used_bytes.set(pool.used_bytes.get() + counted_bytes);
        if did_wait {
            self.memory.wake_waiting();
        }
        Poll::Ready(Ok(()))
    }

    /// Registers the task to be woken if the body is dropped while the task is waiting for the client. Fails if the
    /// body was already dropped.
    pub(super) fn await_client(&self, cx: &Context<'_>) -> Result<(), Evicted> {
        let Some(number) = self.number else {
            return Ok(());
        };
        let mut arriving = self.memory.0.arriving.borrow_mut();
        match arriving.get_mut(&number) {
            Some(arrival) if arrival.state == ArrivalState::Evicted => Err(Evicted),
            Some(arrival) => {
                arrival.waker.clone_from(cx.waker());
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Drops slow bodies. All waiting bodies call this function, but it does nothing within [`SLOW_CHECK_INTERVAL`] of
    /// the previous check.
    pub(crate) fn drop_slow(&self, now: Instant) {
        let next_slow_check = &self.memory.0.next_slow_check;
        if next_slow_check.get().is_none_or(|next| now >= next) {
            next_slow_check.set(Some(now + SLOW_CHECK_INTERVAL));
            self.memory.drop_slow(now);
        }
    }

    /// Marks the body as complete. The body counts towards the limit until the share is dropped.
    pub(super) fn complete(&mut self) {
        if let Some(number) = self.number.take() {
            self.memory.0.arriving.borrow_mut().remove(&number);
            self.memory.wake_waiting();
        }
    }

    pub(crate) fn clear(&mut self) {
        *self = self.memory.share();
    }

    fn counted_bytes(&self) -> u64 {
        self.bytes.saturating_sub(FREE_BYTES)
    }
}

impl Pool {
    fn register(&self, now: Instant) -> u64 {
        let number = self.next_number.get();
        self.next_number.set(number + 1);
        let arrival = Arrival {
            waker: Waker::noop().clone(),
            state: ArrivalState::Receiving(now + CREDIT),
        };
        self.arriving.borrow_mut().insert(number, arrival);
        number
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let pool = &self.memory.0;
        pool.used_bytes
            .set(pool.used_bytes.get() - self.counted_bytes());
        if let Some(number) = self.number {
            pool.arriving.borrow_mut().remove(&number);
        }
        if self.counted_bytes() > 0 || self.number.is_some() {
            self.memory.wake_waiting();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1_024;

    fn memory() -> BodyMemory {
        BodyMemory::new(256 * KIB, 64 * KIB)
    }

    fn reserve(share: &mut Share, bytes: u64) -> Poll<Result<(), Evicted>> {
        reserve_at(share, bytes, Instant::now())
    }

    fn reserve_at(share: &mut Share, bytes: u64, now: Instant) -> Poll<Result<(), Evicted>> {
        share.poll_reserve(&Context::from_waker(Waker::noop()), bytes, now)
    }

    const RESERVED: Poll<Result<(), Evicted>> = Poll::Ready(Ok(()));

    fn body(memory: &BodyMemory, bytes: u64) -> Share {
        let mut share = memory.share();
        assert_eq!(reserve(&mut share, FREE_BYTES + bytes), RESERVED);
        share
    }

    #[test]
    fn memory_is_freed_when_the_request_is_done() {
        let memory = memory();
        let mut share = body(&memory, 100 * KIB);
        assert_eq!(reserve(&mut share, 20 * KIB), RESERVED);
        assert_eq!(memory.0.used_bytes.get(), 120 * KIB);

        share.complete();
        assert_eq!(memory.0.used_bytes.get(), 120 * KIB);
        drop(share);

        assert_eq!(memory.0.used_bytes.get(), 0);
        assert!(memory.0.arriving.borrow().is_empty());
    }

    #[test]
    fn small_bodies_do_not_wait_for_large_ones() {
        let memory = memory();
        let _full = body(&memory, 256 * KIB);

        for _ in 0..100 {
            assert_eq!(reserve(&mut memory.share(), FREE_BYTES), RESERVED);
        }
        assert!(reserve(&mut memory.share(), FREE_BYTES + 1).is_pending());
    }

    #[test]
    fn incomplete_bodies_proceed_from_oldest_to_newest() {
        let memory = memory();
        let mut bodies: Vec<_> = (0..6).map(|_| body(&memory, 32 * KIB)).collect();
        for share in &mut bodies[1..] {
            assert!(reserve(share, 32 * KIB).is_pending());
        }

        for number in 0..6 {
            assert_eq!(reserve(&mut bodies[number], 32 * KIB), RESERVED, "{number}");
            if let Some(next) = bodies.get_mut(number + 1) {
                assert!(reserve(next, 32 * KIB).is_pending() || number > 0);
            }
            bodies[number] = memory.share();
        }
    }

    #[test]
    fn later_bodies_wait_for_earlier_bodies() {
        let memory = memory();
        let first = body(&memory, 192 * KIB);
        let mut second = body(&memory, 0);
        let mut third = body(&memory, 0);
        assert!(reserve(&mut second, 64 * KIB).is_pending());
        assert!(reserve(&mut third, 1).is_pending());

        drop(first);

        assert!(reserve(&mut third, 1).is_pending());
        assert_eq!(reserve(&mut second, 64 * KIB), RESERVED);
        assert_eq!(reserve(&mut third, 1), RESERVED);
    }

    #[test]
    fn a_stalled_body_is_dropped_and_a_steady_body_is_not() {
        let memory = memory();
        let start = Instant::now();
        let (mut stalled, mut steady) = (memory.share(), memory.share());
        assert_eq!(reserve_at(&mut stalled, 80 * KIB, start), RESERVED);
        let mut now = start;
        for _ in 0..4 {
            assert_eq!(reserve_at(&mut steady, 32 * KIB, now), RESERVED);
            now += Duration::from_millis(125);
            memory.drop_slow(now);
        }
        let cx = Context::from_waker(Waker::noop());
        assert_eq!(stalled.await_client(&cx), Ok(()));

        memory.drop_slow(start + CREDIT + Duration::from_millis(1));

        assert_eq!(stalled.await_client(&cx), Err(Evicted));
        assert_eq!(reserve(&mut stalled, 1), Poll::Ready(Err(Evicted)));
        assert_eq!(steady.await_client(&cx), Ok(()));
    }

    #[test]
    fn waiting_bodies_share_one_check_per_interval() {
        let memory = memory();
        let start = Instant::now();
        let mut late = memory.share();
        assert_eq!(reserve_at(&mut late, 80 * KIB, start), RESERVED);
        let waiting = memory.share();
        let cx = Context::from_waker(Waker::noop());

        waiting.drop_slow(start + CREDIT);
        waiting.drop_slow(start + CREDIT + SLOW_CHECK_INTERVAL / 2);
        assert_eq!(late.await_client(&cx), Ok(()));
        waiting.drop_slow(start + CREDIT + SLOW_CHECK_INTERVAL);

        assert_eq!(late.await_client(&cx), Err(Evicted));
    }

    #[test]
    fn a_body_is_not_slow_while_it_waits_for_memory() {
        let memory = memory();
        let start = Instant::now();
        let full = body(&memory, 256 * KIB);
        let mut waiting = memory.share();
        assert!(reserve_at(&mut waiting, 32 * KIB, start).is_pending());

        let late = start + 10 * CREDIT;
        memory.drop_slow(late);
        drop(full);

        assert_eq!(reserve_at(&mut waiting, 32 * KIB, late), RESERVED);
    }
}
