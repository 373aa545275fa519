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

/// Size of the chunks of a response. Responses up to this size do not count towards the limit, because actix copies up
/// to about two chunks of any response into the connection's write buffer anyway.
const CHUNK_BYTES: usize = 16_384;
/// Minimum rate at which a client must read while other responses are waiting for memory, averaged over [`CREDIT`]. The
/// operating system reports progress in steps of up to a third of its send buffer, so [`CREDIT`] spans several steps.
const BYTES_PER_SECOND: u64 = 262_144;
const CREDIT: Duration = Duration::from_secs(3);
/// Time limit for a response that waits for memory.
const WAIT_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval between checks for slow clients while responses are waiting for memory.
const SLOW_CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// Limits the total size of waiting responses to the memory limit divided by this number. Waiting responses need their
/// own limit, because they do not count towards the memory limit.
const WAITING_DIVISOR: usize = 4;

/// Holds the large responses of one worker, up to a limit.
///
/// `AnswerMemory` owns the bytes. A connection has only a `HeldResponse`, which refers to the bytes. `AnswerMemory` can
/// therefore free the bytes at any time, even if the client never reads the response.
#[derive(Debug, Clone)]
pub struct AnswerMemory(Rc<Pool>);

#[derive(Debug)]
struct Pool {
    limit_bytes: usize,
    /// One permit per byte.
    permits: Arc<Semaphore>,
    waiting_bytes: Cell<usize>,
    next_slow_check: Cell<Instant>,
    next_id: Cell<u64>,
    timeout: Duration,
    pending: RefCell<BTreeMap<u64, PendingResponse>>,
}

#[derive(Debug)]
struct PendingResponse {
    unsent: Bytes,
    /// Time after which the response may be dropped if other responses are waiting for memory.
    deadline: Instant,
    permit: Option<OwnedSemaphorePermit>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no memory is left for the answer")]
pub(crate) struct MemoryFull;

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
            permits: Arc::new(Semaphore::new(limit_bytes)),
            waiting_bytes: Cell::default(),
            next_slow_check: Cell::new(Instant::now()),
            next_id: Cell::default(),
            timeout,
            pending: RefCell::default(),
        }))
    }

    pub(crate) fn is_counted(bytes: u64) -> bool {
        bytes > CHUNK_BYTES as u64
    }

    /// Holds the response to a read. If the memory is full, waits for up to [`WAIT_TIMEOUT`]. Fails at once if too many
    /// responses are already waiting.
    pub(crate) async fn hold(&self, response: Bytes) -> Result<HeldResponse, MemoryFull> {
        let permits = self.permits_for(&response);
        let permit = match self.try_acquire(permits) {
            Some(permit) => permit,
            None => self.wait(permits).await?,
        };
        Ok(self.insert(response, Some(permit)))
    }

    /// Holds the response to a completed write, which must not fail. If the memory is full, drops the responses of
    /// the slowest clients.
    pub(crate) fn hold_or_evict(&self, response: Bytes) -> HeldResponse {
        let permits = self.permits_for(&response);
        let permit = self.try_acquire(permits);
        let permit = permit.or_else(|| self.evict_slowest(permits));
        self.insert(response, permit)
    }

    /// Returns the number of permits that `response` needs. A response that exceeds the memory limit needs all permits.
    fn permits_for(&self, response: &Bytes) -> u32 {
        let permits = response.len().min(self.0.limit_bytes);
        u32::try_from(permits).unwrap_or(u32::MAX)
    }

    fn try_acquire(&self, permits: u32) -> Option<OwnedSemaphorePermit> {
        let semaphore = Arc::clone(&self.0.permits);
        semaphore.try_acquire_many_owned(permits).ok()
    }

    async fn wait(&self, permits: u32) -> Result<OwnedSemaphorePermit, MemoryFull> {
        let _reservation = WaitReservation::take(&self.0, permits as usize)?;
        let _spending = trace::spend(Phase::Waiting);
        let mut acquiring = pin!(Arc::clone(&self.0.permits).acquire_many_owned(permits));
        let end = Instant::now() + self.0.timeout;
        loop {
            let now = Instant::now();
            if now >= end {
                return Err(MemoryFull);
            }
            self.drop_slow(now);
            if let Ok(permit) = timeout(SLOW_CHECK_INTERVAL.min(end - now), &mut acquiring).await {
                return permit.map_err(|_| MemoryFull);
            }
        }
    }

    /// Drops the responses of slow clients. Every waiting response calls this function, but it does nothing within
    /// [`SLOW_CHECK_INTERVAL`] of the previous check.
    fn drop_slow(&self, now: Instant) {
        if now < self.0.next_slow_check.get() {
            return;
        }
        self.0.next_slow_check.set(now + SLOW_CHECK_INTERVAL);
        let mut pending = self.0.pending.borrow_mut();
        pending.retain(|_, response| response.deadline >= now);
    }

    /// Frees memory by dropping the responses of the slowest clients. Returns fewer permits than `needed` if the
    /// dropped responses do not hold enough.
    fn evict_slowest(&self, needed: u32) -> Option<OwnedSemaphorePermit> {
        let mut pending = self.0.pending.borrow_mut();
        let mut freed: Option<OwnedSemaphorePermit> = None;
        loop {
            let slowest = pending.iter().min_by_key(|(_, response)| response.deadline);
            let Some(id) = slowest.map(|(id, _)| *id) else {
                return freed;
            };
            let permit = pending.remove(&id).and_then(|response| response.permit);
            match (&mut freed, permit) {
                (Some(freed), Some(permit)) => freed.merge(permit),
                (Some(_), None) => {}
                (none, permit) => *none = permit,
            }
            if let Some(enough) = freed
                .as_mut()
                .and_then(|freed| freed.split(needed as usize))
            {
                return Some(enough);
            }
        }
    }

    fn insert(&self, response: Bytes, permit: Option<OwnedSemaphorePermit>) -> HeldResponse {
        let id = self.0.next_id.get();
        self.0.next_id.set(id + 1);
        let held = HeldResponse {
            memory: self.clone(),
            id,
            bytes: response.len() as u64,
        };
        let response = PendingResponse {
            unsent: response,
            deadline: Instant::now() + CREDIT,
            permit,
        };
        self.0.pending.borrow_mut().insert(id, response);
        held
    }
}

impl PendingResponse {
    /// Returns the next chunk and extends `deadline`, because actix requests a chunk only if the client is reading.
    fn next(&mut self, now: Instant) -> Bytes {
        let chunk = self.unsent.split_to(self.unsent.len().min(CHUNK_BYTES));
        let earned = Duration::from_micros(chunk.len() as u64 * 1_000_000 / BYTES_PER_SECOND);
        self.deadline = (self.deadline + earned).min(now + CREDIT);
        chunk
    }
}

struct WaitReservation<'a> {
    pool: &'a Pool,
    bytes: usize,
}

impl<'a> WaitReservation<'a> {
    fn take(pool: &'a Pool, bytes: usize) -> Result<Self, MemoryFull> {
        let waiting_bytes = pool.waiting_bytes.get() + bytes;
        if waiting_bytes > pool.limit_bytes / WAITING_DIVISOR {
            return Err(MemoryFull);
        }
        pool.waiting_bytes.set(waiting_bytes);
        Ok(Self { pool, bytes })
    }
}

impl Drop for WaitReservation<'_> {
    fn drop(&mut self) {
        let waiting_bytes = &self.pool.waiting_bytes;
        waiting_bytes.set(waiting_bytes.get() - self.bytes);
    }
}

/// Body of a response that [`AnswerMemory`] holds. If `AnswerMemory` drops the response, the body ends early, and actix
/// closes the connection.
#[derive(Debug)]
pub(crate) struct HeldResponse {
    memory: AnswerMemory,
    id: u64,
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
        let mut pending = self.memory.0.pending.borrow_mut();
        let Some(response) = pending.get_mut(&self.id) else {
            return Poll::Ready(None);
        };
        let chunk = response.next(Instant::now());
        if response.unsent.is_empty() {
            pending.remove(&self.id);
        }
        Poll::Ready(Some(Ok(chunk)))
    }
}

impl Drop for HeldResponse {
    fn drop(&mut self) {
        self.memory.0.pending.borrow_mut().remove(&self.id);
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

    fn response() -> Bytes {
        vec![b'x'; 64 * KIB].into()
    }

    async fn fill(memory: &AnswerMemory) -> Vec<HeldResponse> {
        let mut held = Vec::new();
        for _ in 0..4 {
            held.push(memory.hold(response()).await.unwrap());
        }
        held
    }

    fn next(held: &mut HeldResponse) -> Option<Bytes> {
        let mut cx = Context::from_waker(Waker::noop());
        match Pin::new(held).poll_next(&mut cx) {
            Poll::Ready(chunk) => chunk.map(|Ok(chunk)| chunk),
            Poll::Pending => panic!("a held response never waits"),
        }
    }

    fn read_all(held: &mut HeldResponse) -> usize {
        std::iter::from_fn(|| next(held).map(|chunk| chunk.len())).sum()
    }

    #[actix_web::test]
    async fn a_response_arrives_complete_and_its_memory_is_freed() {
        let memory = memory();
        let mut held = memory.hold(response()).await.unwrap();
        assert_eq!(memory.0.permits.available_permits(), 192 * KIB);

        assert_eq!(next(&mut held).unwrap().len(), CHUNK_BYTES);
        assert_eq!(read_all(&mut held), 64 * KIB - CHUNK_BYTES);

        assert_eq!(memory.0.permits.available_permits(), 256 * KIB);
        let unread = memory.hold(response()).await.unwrap();
        drop(unread);
        assert_eq!(memory.0.permits.available_permits(), 256 * KIB);
    }

    #[actix_web::test]
    async fn a_response_is_rejected_at_once_if_too_many_are_waiting() {
        let memory = memory();
        let held = fill(&memory).await;

        let mut waiting = pin!(memory.hold(response()));
        assert!(waiting.as_mut().now_or_never().is_none());
        let rejected = memory.hold(response()).now_or_never();

        assert_eq!(rejected.unwrap().unwrap_err(), MemoryFull);
        drop(held);
        assert!(waiting.await.is_ok());
        assert_eq!(memory.0.waiting_bytes.get(), 0);
    }

    fn advance(memory: &AnswerMemory, time: Duration) {
        for response in memory.0.pending.borrow_mut().values_mut() {
            response.deadline -= time;
        }
    }

    #[actix_web::test]
    async fn a_stalled_client_loses_its_response_and_a_reading_client_keeps_it() {
        let chunk_time = Duration::from_secs(CHUNK_BYTES as u64) / BYTES_PER_SECOND as u32;
        // retries, because on a slow machine, the deadline of the reading client may pass before the check
        for _ in 0..1_000 {
            let (memory, start) = (memory(), Instant::now());
            let mut held = fill(&memory).await;
            advance(&memory, CREDIT + chunk_time / 2);
            assert!(next(&mut held[3]).is_some());

            assert!(memory.hold(response()).await.is_ok());

            assert_eq!(read_all(&mut held[0]), 0);
            let unread = read_all(&mut held[3]);
            if start.elapsed() < chunk_time / 2 {
                assert_eq!(unread, 64 * KIB - CHUNK_BYTES);
                return;
            }
        }
        panic!("the machine is too slow");
    }

    #[actix_web::test]
    async fn a_response_is_rejected_if_no_memory_is_freed_in_time() {
        // retries, because on a slow machine, the deadlines of the held responses may pass, which frees memory
        for _ in 0..100 {
            let start = Instant::now();
            let memory = AnswerMemory::with_timeout(256 * KIB as u64, Duration::from_millis(20));
            let mut held = fill(&memory).await;

            let rejected = memory.hold(response()).await;
            if start.elapsed() >= CREDIT {
                continue;
            }

            assert_eq!(rejected.unwrap_err(), MemoryFull);
            assert_eq!(read_all(&mut held[0]), 64 * KIB);
            assert!(memory.hold(response()).await.is_ok());
            return;
        }
        panic!("the machine is too slow");
    }

    #[actix_web::test]
    async fn the_response_to_a_write_evicts_the_slowest_response() {
        let memory = memory();
        let mut held = fill(&memory).await;
        advance(&memory, CREDIT / 2);
        assert!(next(&mut held[0]).is_some());

        let mut done = memory.hold_or_evict(response());

        assert_eq!(read_all(&mut held[1]), 0);
        assert_eq!(read_all(&mut held[0]), 64 * KIB - CHUNK_BYTES);
        assert_eq!(read_all(&mut done), 64 * KIB);
    }
}
