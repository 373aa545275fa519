use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;
use std::{io, iter, mem};

use bytes::{Bytes, BytesMut};
use redis::RedisError;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};

use super::{Calls, Queue, ReplyKind, Scan, Taken, Waiter, earlier, give_up_late, malformed};
use crate::transport::fault::Fault;
use threadkeep_store::Alarm;

const READ_BYTES: usize = 64 * 1024;
/// Minimum free space in the buffer for a read. If there is less, the buffer grows.
const MIN_READ_BYTES: usize = 4 * 1024;
/// Maximum size of a buffer that is reused. The memory of a larger buffer is released.
const KEPT_BYTES: usize = 64 * 1024;

pub(super) struct Driver<S> {
    stream: S,
    queue: Arc<Queue>,
    calls: Calls,
    sent: usize,
    is_flushed: bool,
    /// Callers that wait for replies, in order.
    waiting: VecDeque<Waiter>,
    read: BytesMut,
    scan: Option<Scan>,
    /// Errors that the next callers receive instead of their replies.
    refusals: iter::RepeatN<Bytes>,
    /// Time of the next check for missed deadlines, which may be before the earliest deadline. One timer serves all
    /// calls, because few calls miss their deadline.
    earliest: Option<Instant>,
    alarm: Alarm,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Driver<S> {
    pub(super) fn new(stream: S, queue: Arc<Queue>) -> Self {
        Self {
            stream,
            queue,
            calls: Calls::default(),
            sent: 0,
            is_flushed: true,
            waiting: VecDeque::new(),
            read: BytesMut::with_capacity(READ_BYTES),
            scan: None,
            refusals: iter::repeat_n(Bytes::new(), 0),
            earliest: None,
            alarm: Alarm::default(),
        }
    }

    pub(super) async fn run(mut self) {
        let error = poll_fn(|context| self.poll(context)).await;
        self.end(&error);
    }

    /// Resolves to the error that ends the connection. Reads replies first, even while the server accepts no data, so
    /// that replies that the server sent before it closed the connection are delivered.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<RedisError> {
        if let Poll::Ready(error) = self.poll_read(context) {
            return Poll::Ready(error);
        }
        let sent = self.poll_send(context);
        if sent.is_pending() {
            self.poll_late(context);
        }
        sent
    }

    /// Fails calls that have missed their deadline, including calls that the server does not accept.
    fn poll_late(&mut self, context: &mut Context<'_>) {
        loop {
            let unsent = match self.sent < self.calls.bytes.len() {
                true => self.queue.earliest(),
                false => None,
            };
            let Some(earliest) = earlier(self.earliest, unsent) else {
                return;
            };
            let is_set = self.alarm.poll(context, earliest.into()).is_pending();
            let now = Instant::now();
            // also checks the clock, because a Tokio timer never fires in a task that has used up its cooperative
            // scheduling budget, for example by reading constantly
            if is_set && now < earliest {
                return;
            }
            self.queue.give_up_late(now);
            self.earliest = give_up_late(&mut self.waiting, now);
        }
    }

    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<RedisError> {
        loop {
            if self.sent == self.calls.bytes.len() {
                self.sent = 0;
                self.calls.bytes.clear();
                self.calls.bytes.shrink_to(KEPT_BYTES);
                match self.queue.take(&mut self.calls, context.waker()) {
                    Taken::Calls(earliest) => {
                        self.waiting.extend(self.calls.waiters.drain(..));
                        self.earliest = earlier(self.earliest, earliest);
                    }
                    Taken::Nothing if self.is_flushed => return Poll::Pending,
                    // TLS may still hold back data
                    Taken::Nothing => {
                        let flushed = ready!(Pin::new(&mut self.stream).poll_flush(context));
                        if let Err(error) = flushed {
                            return Poll::Ready(error.into());
                        }
                        self.is_flushed = true;
                        return Poll::Pending;
                    }
                    Taken::Abandoned => return Poll::Ready(super::ended()),
                }
            }
            let rest = &self.calls.bytes[self.sent..];
            match Pin::new(&mut self.stream).poll_write(context, rest) {
                Poll::Ready(Ok(0)) => return Poll::Ready(super::ended()),
                Poll::Ready(Ok(count)) => self.sent += count,
                Poll::Ready(Err(error)) => return Poll::Ready(error.into()),
                // does not wait for a hanging server once all callers are gone
                Poll::Pending if self.queue.is_abandoned(context.waker()) => {
                    return Poll::Ready(super::ended());
                }
                Poll::Pending => return Poll::Pending,
            }
            self.is_flushed = false;
        }
    }

    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<RedisError> {
        loop {
            self.make_room();
            let read = pin!(self.stream.read_buf(&mut self.read));
            match ready!(read.poll(context)) {
                Ok(0) => {
                    let end = io::Error::new(io::ErrorKind::UnexpectedEof, "Redis has hung up");
                    return Poll::Ready(end.into());
                }
                Ok(_) => {}
                Err(error) => return Poll::Ready(error.into()),
            }
            if let Err(error) = self.answer() {
                return Poll::Ready(error);
            }
        }
    }

    fn make_room(&mut self) {
        let (received, room) = (self.read.len(), self.read.capacity() - self.read.len());
        let missing = self.scan.as_ref().map_or(0, |scan| scan.missing(received));
        if room < MIN_READ_BYTES.max(missing) {
            self.read.reserve(READ_BYTES.max(missing));
        }
    }

    fn answer(&mut self) -> Result<(), RedisError> {
        while !self.read.is_empty() {
            let next = self.waiting.front().ok_or_else(malformed)?;
            let count = match next.expected {
                ReplyKind::Replies(count) => count,
                ReplyKind::OfAll(callers) => match self.open_batch(callers)? {
                    true => continue,
                    false => break,
                },
                ReplyKind::Guard(callers) => match self.pass_guard(callers) {
                    true => continue,
                    false => break,
                },
            };
            let scan = self.scan.get_or_insert_with(|| Scan::of(count));
            let Some(end) = scan.end(&self.read)? else {
                break;
            };
            let replies = self.read.split_to(end).freeze();
            if end > KEPT_BYTES {
                // the next read uses new memory
                let rest = mem::replace(&mut self.read, BytesMut::with_capacity(READ_BYTES));
                self.read.extend_from_slice(&rest);
            }
            self.scan = None;
            if let Some(waiter) = self.waiting.pop_front() {
                waiter.answer(Ok(match self.refusals.next() {
                    None => replies,
                    Some(refusal) => refusal.repeat(count).into(),
                }));
            }
        }
        Ok(())
    }
}

impl<S> Driver<S> {
    /// Reads the first line of the reply to a batch: an array with one element for each of the next `callers`. If the
    /// line is an error, all these callers get the error. Returns whether the line has arrived.
    fn open_batch(&mut self, callers: usize) -> Result<bool, RedisError> {
        let Some(line) = self.line() else {
            return Ok(false);
        };
        if line.starts_with(b"-") {
            for waiter in self.waiting.drain(..callers.min(self.waiting.len())) {
                waiter.answer(Ok(line.clone()));
            }
            return Ok(true);
        }
        let opened = line
            .strip_prefix(b"*")
            .and_then(|count| count.strip_suffix(b"\r\n"));
        match opened {
            Some(count) if count == itoa::Buffer::new().format(callers).as_bytes() => Ok(true),
            _ => Err(malformed()),
        }
    }

    /// Reads the reply to a guard, a write that fails on replicas. If the reply is an error, the next `callers` get the
    /// error. Returns whether the reply has arrived.
    fn pass_guard(&mut self, callers: usize) -> bool {
        let Some(line) = self.line() else {
            return false;
        };
        if line.starts_with(b"-") {
            self.refusals = iter::repeat_n(line, callers);
        }
        true
    }

    /// Removes and returns the next line, which no caller is waiting for. Returns `None` if the line has not arrived.
    fn line(&mut self) -> Option<Bytes> {
        let end = memchr::memchr(b'\n', &self.read)?;
        self.waiting.pop_front();
        Some(self.read.split_to(end + 1).freeze())
    }

    fn end(&mut self, error: &RedisError) {
        self.queue.end(error);
        for waiter in self.waiting.drain(..) {
            waiter.answer(Err(Fault::Call(error.clone())));
        }
    }
}

/// Fails all waiting calls, even if the runtime shuts down first.
impl<S> Drop for Driver<S> {
    fn drop(&mut self) {
        self.end(&super::ended());
    }
}
