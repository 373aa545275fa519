use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use std::{io, thread};

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use super::idleness::Idleness;
use super::intake::Intake;
use super::outbox::{Outbox, Outlet};
use threadkeep_http::ConnectionState;

/// Minimum number of bytes that a client must receive in each [`SPAN`] of time while data is waiting. A span starts
/// only when the system's buffers are full, so clients that keep up are not affected.
const BYTES_PER_SPAN_MIN: usize = 16_384;
const SPAN: Duration = Duration::from_secs(60);

/// The error response for a request that actix drops without answering it.
#[derive(Debug, Clone, Copy)]
enum Refusal {
    /// The body contains a malformed chunk, and the response has not started.
    Malformed,
    HeadTooLarge,
}

impl Refusal {
    fn answer(self) -> &'static [u8] {
        match self {
            Self::Malformed => {
                b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            }
            Self::HeadTooLarge => {
                b"HTTP/1.1 431 Request Header Fields Too Large\r\n\
                content-length: 0\r\nconnection: close\r\n\r\n"
            }
        }
    }
}

/// A stream that fails if the client receives data too slowly. The server does not read further requests until the
/// client has received its responses.
pub(super) struct PacedStream {
    outlet: Rc<Outlet>,
    outbox: Outbox,
    idleness: Idleness,
    intake: Intake,
    refusal: Option<Refusal>,
    /// True if the task that reads must be woken when it can continue to read.
    is_reader_waiting: bool,
    progress: Option<SendProgress>,
    span: Duration,
}

/// How many bytes a client has received in the current span, while more bytes are waiting.
#[derive(Debug)]
struct SendProgress {
    taken_bytes: usize,
    end: Pin<Box<Sleep>>,
}

impl PacedStream {
    pub(super) fn new(outlet: Rc<Outlet>, idleness: Idleness, outbox: Outbox) -> Self {
        Self {
            outlet,
            outbox,
            idleness,
            intake: Intake::default(),
            refusal: None,
            is_reader_waiting: false,
            progress: None,
            span: SPAN,
        }
    }

    pub(super) fn connection_state(&self) -> ConnectionState {
        self.idleness.connection_state()
    }

    fn poll_rest(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut rest = self.outlet.take_rest();
        while !rest.is_empty() {
            match self.poll_send(cx, &rest) {
                Poll::Ready(sent) => drop(rest.drain(..sent?)),
                Poll::Pending => {
                    self.outlet.put_rest(rest);
                    return Poll::Pending;
                }
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Waits until no held or unsent bytes remain.
    fn poll_held(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.outlet.is_held() {
            self.outbox.send();
        }
        self.poll_rest(cx)
    }

    fn refuse(&self, refusal: Refusal) {
        if self.outlet.is_held() {
            self.outbox.send();
        }
        let mut rest = self.outlet.take_rest();
        rest.extend_from_slice(refusal.answer());
        self.outlet.put_rest(rest);
    }

    fn poll_send(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut stream = self.outlet.stream.borrow_mut();
        let sent = Pin::new(&mut *stream).poll_write(cx, bytes);
        drop(stream);
        match (&sent, &mut self.progress) {
            (Poll::Pending, _) => self.poll_progress(cx, bytes),
            (Poll::Ready(Ok(taken)), Some(progress)) => {
                progress.taken_bytes += taken;
                sent
            }
            _ => sent,
        }
    }

    fn poll_progress(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let span = self.span;
        let progress = self.progress.get_or_insert_with(|| SendProgress {
            taken_bytes: 0,
            end: Box::pin(sleep(span)),
        });
        if progress.end.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        // tries to send, because there may be free space: the system does not report small amounts of it
        let stream = self.outlet.stream.borrow();
        let more = SockRef::from(&*stream).send(bytes).unwrap_or_default();
        drop(stream);
        if more == bytes.len() {
            // the system accepted all bytes, so none are waiting; the current span also applies to the next bytes
            progress.taken_bytes += more;
            return Poll::Ready(Ok(more));
        }
        let is_enough = progress.taken_bytes + more >= BYTES_PER_SPAN_MIN;
        self.progress = None;
        match (is_enough, more) {
            (false, _) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            (true, 0) => self.poll_progress(cx, bytes),
            (true, more) => Poll::Ready(Ok(more)),
        }
    }

    fn wants_bytes(&self) -> bool {
        self.idleness.wants_bytes() && !self.intake.is_complete()
    }

    fn is_response_waiting(&self) -> bool {
        self.progress.is_some() || self.outlet.has_rest()
    }

    /// Becomes ready when the client has closed or reset the connection. Does not consume received bytes.
    fn poll_disconnected(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.intake.has_backlog() {
            self.is_reader_waiting = true;
            return Poll::Pending;
        }
        if !ready!(self.outlet.poll_bytes(cx)) {
            return Poll::Ready(());
        }
        self.is_reader_waiting = true;
        Poll::Pending
    }

    fn begin_round(&mut self, cx: &Context<'_>) {
        self.intake.begin_round();
        if self.idleness.wants_head() {
            self.intake.begin_request();
        }
        if self.is_reader_waiting && self.wants_bytes() {
            self.is_reader_waiting = false;
            cx.waker().wake_by_ref();
        }
    }
}

impl AsyncRead for PacedStream {
    /// Reads the bytes of at most one round. Does not read while a response is unsent or a request is in progress.
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.is_response_waiting() {
            // the idle time starts again, because a client may wait for the whole response before its next request
            this.idleness.restart();
            this.is_reader_waiting = true;
            return Poll::Pending;
        }
        if !this.wants_bytes() {
            ready!(this.poll_disconnected(cx));
            this.connection_state().mark_disconnected();
        }
        if this.intake.is_full() {
            // the dispatcher polls again when it has handled these bytes
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let start = buffer.filled().len();
        let passed = if this.intake.has_backlog() {
            this.intake.pass_backlog(buffer)
        } else {
            let limit = this.intake.remaining_bytes() as u64;
            let mut stream = this.outlet.stream.borrow_mut();
            match Pin::new(&mut (&mut *stream).take(limit)).poll_read(cx, buffer) {
                Poll::Pending => {
                    // actix closes a connection with an unfinished request
                    let may_park = this.intake.is_between_requests();
                    let end = ready!(this.idleness.poll(cx, may_park))?;
                    // an empty read tells the dispatcher that the connection has ended
                    this.outlet.park(end);
                    return Poll::Ready(Ok(()));
                }
                Poll::Ready(read) => read?,
            }
            this.intake.pass(buffer, start)
        };
        if let Err(error) = passed {
            this.refusal = Some(Refusal::HeadTooLarge);
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, error)));
        }
        if buffer.filled().len() > start {
            this.idleness.bytes_received();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for PacedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_rest(cx))?;
        if self.outbox.hold(&self.outlet, cx, bytes) {
            return Poll::Ready(Ok(bytes.len()));
        }
        ready!(self.poll_held(cx))?;
        self.poll_send(cx, bytes)
    }

    /// Waits until all unsent bytes are written, except bytes that the outbox holds back and sends later.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_rest(cx))?;
        self.progress = None;
        // If no handler reads a chunked body, actix stops reading and waits for the rest of the body without a time
        // limit. Therefore, the timer for the client starts here, and the next read reports the timeout.
        let may_park = self.intake.is_between_requests();
        let _ = self.idleness.poll(cx, may_park);
        self.begin_round(cx);
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_held(cx))?;
        if self.outlet.is_parked() {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut *self.outlet.stream.borrow_mut()).poll_shutdown(cx)
    }
}

/// On drop, the outbox takes over held and unsent bytes, because these bytes were already reported as written.
impl Drop for PacedStream {
    fn drop(&mut self) {
        if self.idleness.is_abandoned() {
            self.refusal.get_or_insert(Refusal::Malformed);
        }
        // after a panic, the client is not at fault
        if let Some(refusal) = self.refusal
            && !thread::panicking()
        {
            self.refuse(refusal);
        }
        self.outbox.adopt(&self.outlet);
    }
}

#[cfg(test)]
mod tests;
