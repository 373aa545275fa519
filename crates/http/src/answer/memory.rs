//! Limits the memory that a worker holds for large responses that clients have not read yet.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use actix_web::body::{BodySize, MessageBody};
use actix_web::web::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

use threadkeep_trace as trace;
use threadkeep_trace::Phase;

/// Size of the chunks of a response. Responses of up to one chunk do not count towards the limit, because actix copies
/// about two chunks into a connection's write buffer anyway.
const PART_BYTES: usize = 16_384;
/// Minimum rate at which a client must read while other responses are waiting for memory, averaged over [`CREDIT`]. The
/// operating system reports progress in steps of up to a third of its buffer, so [`CREDIT`] spans several such steps.
const BYTES_PER_SECOND: u64 = 262_144;
const CREDIT: Duration = Duration::from_secs(3);
/// Time limit for a response that waits for memory.
const WAIT_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval between checks for slow clients while responses are waiting for memory.
const SLOW_CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// Divisor that limits the total size of waiting responses to a quarter of the memory limit. Waiting responses occupy
/// memory in addition to that limit.
const WAITING_DIVISOR: usize = 4;

/// Holds the large responses of one worker, up to a limit.
///
/// `AnswerMemory` owns the bytes. A connection has only a `HeldResponse` that refers to them. Dropping the bytes
/// therefore frees memory at once, even if the client never reads.
#[derive(Debug, Clone)]
pub struct AnswerMemory(Rc<Pool>);

#[derive(Debug)]
struct Pool {
    limit_bytes: usize,
    /// One permit per byte.
    room: Arc<Semaphore>,
    waiting_bytes: Cell<usize>,
    next_look: Cell<Instant>,
    next_number: Cell<u64>,
    timeout: Duration,
    leaving: RefCell<BTreeMap<u64, PendingResponse>>,
}

#[derive(Debug)]
struct PendingResponse {
    rest: Bytes,
    /// After this time, the response is dropped if other responses are waiting for memory.
    due: Instant,
    room: Option<OwnedSemaphorePermit>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no memory is left for the answer")]
pub(crate) struct NoRoom;

impl AnswerMemory {
    #[must_use]
    pub fn new(limit_bytes: u64) -> Self {
        Self::with_timeout(limit_bytes, WAIT_TIMEOUT)
    }

    fn with_timeout(limit_bytes: u64, timeout: Duration) -> Self {
        let limit_bytes = usize::try_from(limit_bytes).unwrap_or(usize::MAX);
        let limit_bytes = limit_bytes.min(Semaphore::MAX_PERMITS);
        Self(Rc::new(Pool {
            limit_bytes,
            room: Arc::new(Semaphore::new(limit_bytes)),
            waiting_bytes: Cell::default(),
            next_look: Cell::new(Instant::now()),
            next_number: Cell::default(),
            timeout,
            leaving: RefCell::default(),
        }))
    }

    pub(crate) fn counts(bytes: u64) -> bool {
        bytes > PART_BYTES as u64
    }

    /// Holds the response to a read. If there is no room, waits for up to [`WAIT_TIMEOUT`]. Fails at once if too many
    /// responses are already waiting.
    pub(crate) async fn hold(&self, answer: Bytes) -> Result<HeldResponse, NoRoom> {
        let wanted = self.wanted(&answer);
        let room = match self.try_acquire(wanted) {
            Some(room) => room,
            None => self.wait(wanted).await?,
        };
        Ok(self.insert(answer, Some(room)))
    }

    /// Holds the response to a completed write, which must not fail. If there is no room, drops the responses of the
    /// slowest clients.
    pub(crate) fn hold_or_evict(&self, answer: Bytes) -> HeldResponse {
        let wanted = self.wanted(&answer);
        let room = self.try_acquire(wanted);
        let room = room.or_else(|| self.evict_slowest(wanted));
        self.insert(answer, room)
    }

    /// Returns the number of permits that `answer` needs. A response that exceeds the limit needs all of them.
    fn wanted(&self, answer: &Bytes) -> u32 {
        let wanted = answer.len().min(self.0.limit_bytes);
        u32::try_from(wanted).unwrap_or(u32::MAX)
    }

    fn try_acquire(&self, wanted: u32) -> Option<OwnedSemaphorePermit> {
        let room = Arc::clone(&self.0.room);
        room.try_acquire_many_owned(wanted).ok()
    }

    async fn wait(&self, wanted: u32) -> Result<OwnedSemaphorePermit, NoRoom> {
        let _place = Place::take(&self.0, wanted as usize)?;
        let _spending = trace::spend(Phase::Waiting);
        let mut acquiring = pin!(Arc::clone(&self.0.room).acquire_many_owned(wanted));
        let end = Instant::now() + self.0.timeout;
        loop {
            let now = Instant::now();
            if now >= end {
                return Err(NoRoom);
            }
            self.drop_slow(now);
            if let Ok(room) = timeout(SLOW_CHECK_INTERVAL.min(end - now), &mut acquiring).await {
                return room.map_err(|_| NoRoom);
            }
        }
    }

    /// Drops the responses of slow clients. All waiting responses share one check per [`SLOW_CHECK_INTERVAL`].
    fn drop_slow(&self, now: Instant) {
        if now < self.0.next_look.get() {
            return;
        }
        self.0.next_look.set(now + SLOW_CHECK_INTERVAL);
        let mut leaving = self.0.leaving.borrow_mut();
        leaving.retain(|_, answer| answer.due >= now);
    }

    /// Frees memory by dropping the responses of the slowest clients. Returns fewer permits than `wanted` if all
    /// responses together hold fewer.
    fn evict_slowest(&self, wanted: u32) -> Option<OwnedSemaphorePermit> {
        let mut leaving = self.0.leaving.borrow_mut();
        let mut room: Option<OwnedSemaphorePermit> = None;
        loop {
            let furthest_behind = leaving.iter().min_by_key(|(_, answer)| answer.due);
            let Some(number) = furthest_behind.map(|(number, _)| *number) else {
                return room;
            };
            let freed = leaving.remove(&number).and_then(|answer| answer.room);
            match (&mut room, freed) {
                (Some(room), Some(freed)) => room.merge(freed),
                (Some(_), None) => {}
                (none, freed) => *none = freed,
            }
            if let Some(enough) = room.as_mut().and_then(|room| room.split(wanted as usize)) {
                return Some(enough);
            }
        }
    }

    fn insert(&self, answer: Bytes, room: Option<OwnedSemaphorePermit>) -> HeldResponse {
        let number = self.0.next_number.get();
        self.0.next_number.set(number + 1);
        let held = HeldResponse {
            memory: self.clone(),
            number,
            bytes: answer.len() as u64,
        };
        let leaving = PendingResponse {
            rest: answer,
            due: Instant::now() + CREDIT,
            room,
        };
        self.0.leaving.borrow_mut().insert(number, leaving);
        held
    }
}

impl PendingResponse {
    /// Returns the next chunk and extends `due`, because the client has read the earlier chunks.
    fn next(&mut self, now: Instant) -> Bytes {
        let part = self.rest.split_to(self.rest.len().min(PART_BYTES));
        let earned = Duration::from_micros(part.len() as u64 * 1_000_000 / BYTES_PER_SECOND);
        self.due = (self.due + earned).min(now + CREDIT);
        part
    }
}

struct Place<'a> {
    pool: &'a Pool,
    bytes: usize,
}

impl<'a> Place<'a> {
    fn take(pool: &'a Pool, bytes: usize) -> Result<Self, NoRoom> {
        let waiting_bytes = pool.waiting_bytes.get() + bytes;
        if waiting_bytes > pool.limit_bytes / WAITING_DIVISOR {
            return Err(NoRoom);
        }
        pool.waiting_bytes.set(waiting_bytes);
        Ok(Self { pool, bytes })
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let waiting_bytes = &self.pool.waiting_bytes;
        waiting_bytes.set(waiting_bytes.get() - self.bytes);
    }
}

/// Body of a response whose bytes are in [`AnswerMemory`]. If `AnswerMemory` drops the response, the body ends early,
/// and actix closes the connection.
#[derive(Debug)]
pub(crate) struct HeldResponse {
    memory: AnswerMemory,
    number: u64,
    bytes: u64,
}

impl MessageBody for HeldResponse {
    type Error = Infallible;

    fn size(&self) -> BodySize {
        BodySize::Sized(self.bytes)
    }

    fn poll_next(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Infallible>>> {
        let mut leaving = self.memory.0.leaving.borrow_mut();
        let Some(answer) = leaving.get_mut(&self.number) else {
            return Poll::Ready(None);
        };
        let part = answer.next(Instant::now());
        if answer.rest.is_empty() {
            leaving.remove(&self.number);
        }
        Poll::Ready(Some(Ok(part)))
    }
}

impl Drop for HeldResponse {
    fn drop(&mut self) {
        self.memory.0.leaving.borrow_mut().remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use futures_util::FutureExt as _;

    use super::*;

    const KIB: usize = 1_024;

    fn memory() -> AnswerMemory {
        AnswerMemory::new(256 * KIB as u64)
    }

    fn answer() -> Bytes {
        vec![b'x'; 64 * KIB].into()
    }

    async fn fill(memory: &AnswerMemory) -> Vec<HeldResponse> {
        let mut held = Vec::new();
        for _ in 0..4 {
            held.push(memory.hold(answer()).await.unwrap());
        }
        held
    }

    fn next(held: &mut HeldResponse) -> Option<Bytes> {
        let mut cx = Context::from_waker(Waker::noop());
        match Pin::new(held).poll_next(&mut cx) {
            Poll::Ready(part) => part.map(|Ok(part)| part),
            Poll::Pending => panic!("an answer is there or given up"),
        }
    }

    fn rest(held: &mut HeldResponse) -> usize {
        std::iter::from_fn(|| next(held).map(|part| part.len())).sum()
    }

    #[actix_web::test]
    async fn an_answer_comes_whole_and_its_room_is_given_back() {
        let memory = memory();
        let mut held = memory.hold(answer()).await.unwrap();
        assert_eq!(memory.0.room.available_permits(), 192 * KIB);

        assert_eq!(next(&mut held).unwrap().len(), PART_BYTES);
        assert_eq!(rest(&mut held), 64 * KIB - PART_BYTES);

        assert_eq!(memory.0.room.available_permits(), 256 * KIB);
        let unread = memory.hold(answer()).await.unwrap();
        drop(unread);
        assert_eq!(memory.0.room.available_permits(), 256 * KIB);
    }

    #[actix_web::test]
    async fn those_that_find_the_line_full_are_refused_at_once() {
        let memory = memory();
        let held = fill(&memory).await;

        let mut waiting = pin!(memory.hold(answer()));
        assert!(waiting.as_mut().now_or_never().is_none());
        let refused = memory.hold(answer()).now_or_never();

        assert_eq!(refused.unwrap().unwrap_err(), NoRoom);
        drop(held);
        assert!(waiting.await.is_ok());
        assert_eq!(memory.0.waiting_bytes.get(), 0);
    }

    fn pass(memory: &AnswerMemory, time: Duration) {
        for answer in memory.0.leaving.borrow_mut().values_mut() {
            answer.due -= time;
        }
    }

    #[actix_web::test]
    async fn a_client_that_takes_nothing_makes_room_and_one_that_gets_on_does_not() {
        let part_time = Duration::from_secs(PART_BYTES as u64) / BYTES_PER_SECOND as u32;
        // retries, because on a slow machine, the reading client may fall behind too
        for _ in 0..1_000 {
            let (memory, start) = (memory(), Instant::now());
            let mut held = fill(&memory).await;
            pass(&memory, CREDIT + part_time / 2);
            assert!(next(&mut held[3]).is_some());

            assert!(memory.hold(answer()).await.is_ok());

            assert_eq!(rest(&mut held[0]), 0);
            let left = rest(&mut held[3]);
            if start.elapsed() < part_time / 2 {
                assert_eq!(left, 64 * KIB - PART_BYTES);
                return;
            }
        }
        panic!("the machine is too slow");
    }

    #[actix_web::test]
    async fn an_answer_that_finds_no_room_in_time_is_refused() {
        // retries, because on a slow machine, other clients may fall behind, which frees memory
        for _ in 0..100 {
            let start = Instant::now();
            let memory = AnswerMemory::with_timeout(256 * KIB as u64, Duration::from_millis(20));
            let mut held = fill(&memory).await;

            let refused = memory.hold(answer()).await;
            if start.elapsed() >= CREDIT {
                continue;
            }

            assert_eq!(refused.unwrap_err(), NoRoom);
            assert_eq!(rest(&mut held[0]), 64 * KIB);
            assert!(memory.hold(answer()).await.is_ok());
            return;
        }
        panic!("the machine is too slow");
    }

    #[actix_web::test]
    async fn an_answer_that_must_not_be_refused_takes_the_place_of_the_one_furthest_behind() {
        let memory = memory();
        let mut held = fill(&memory).await;
        pass(&memory, CREDIT / 2);
        assert!(next(&mut held[0]).is_some());

        let mut done = memory.hold_or_evict(answer());

        assert_eq!(rest(&mut held[1]), 0);
        assert_eq!(rest(&mut held[0]), 64 * KIB - PART_BYTES);
        assert_eq!(rest(&mut done), 64 * KIB);
    }
}
