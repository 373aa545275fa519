//! Queues frames until the client reads them.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use actix_http::ws::{CloseReason, OpCode, Parser};
use bytes::{Bytes, BytesMut};
use futures_util::Stream;
use futures_util::stream::unfold;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::limits::{CHUNK_BYTES, UNSENT_BYTES_MAX};

/// Queues the frames of one connection. An answer waits until it fits, and its request counts as in flight until then.
#[derive(Debug)]
pub(super) struct Outbox {
    frames: RefCell<Option<UnboundedSender<Frame>>>,
    free_bytes: Arc<Semaphore>,
    last_progress: Rc<Cell<Instant>>,
}

/// The unsent part of a frame, and one permit for each byte of its estimated size.
#[derive(Debug)]
struct Frame {
    bytes: Bytes,
    _permits: Option<OwnedSemaphorePermit>,
}

struct Sending {
    frames: UnboundedReceiver<Frame>,
    frame: Option<Frame>,
    last_progress: Rc<Cell<Instant>>,
}

pub(super) fn outbox() -> (Outbox, impl Stream<Item = Bytes>) {
    let (sender, frames) = unbounded_channel();
    let last_progress = Rc::new(Cell::new(Instant::now()));
    let sending = Sending {
        frames,
        frame: None,
        last_progress: Rc::clone(&last_progress),
    };
    let outbox = Outbox {
        frames: RefCell::new(Some(sender)),
        free_bytes: Arc::new(Semaphore::new(UNSENT_BYTES_MAX)),
        last_progress,
    };
    (outbox, unfold(sending, Sending::next))
}

impl Outbox {
    /// Sends the text frame that `make` builds, or drops it if the outbox is closed.
    ///
    /// Waits until `estimated_bytes` bytes are free. Calls `make` only then, so that a waiting frame takes no memory.
    pub(super) async fn text(&self, estimated_bytes: usize, make: impl FnOnce() -> String) {
        self.send(OpCode::Text, estimated_bytes, || make().into_bytes())
            .await;
    }

    pub(super) async fn pong(&self, bytes: Bytes) {
        self.send(OpCode::Pong, bytes.len(), || bytes).await;
    }

    async fn send<B: AsRef<[u8]>>(
        &self,
        kind: OpCode,
        estimated_bytes: usize,
        make: impl FnOnce() -> B,
    ) {
        if !self.is_waiting() {
            self.last_progress.set(Instant::now());
        }
        let bytes = estimated_bytes.clamp(1, UNSENT_BYTES_MAX) as u32;
        let permits = Arc::clone(&self.free_bytes).acquire_many_owned(bytes).await;
        if let Ok(permits) = permits {
            let mut frame = BytesMut::new();
            Parser::write_message(&mut frame, make(), kind, true, false);
            self.put(frame, Some(permits));
        }
    }

    /// Sends a ping after all earlier frames. Pings do not wait for free bytes, because they are few: at most one ping
    /// per answer, plus one ping per interval.
    pub(super) fn ping(&self, bytes: [u8; 8]) {
        if self.free_bytes.is_closed() {
            return;
        }
        let mut frame = BytesMut::new();
        Parser::write_message(&mut frame, bytes, OpCode::Ping, true, false);
        self.put(frame, None);
    }

    /// Sends the close frame, unless it was already sent. Drops the frames that still wait for free bytes.
    pub(super) fn close(&self, reason: Option<CloseReason>) {
        if self.free_bytes.is_closed() {
            return;
        }
        self.free_bytes.close();
        let mut frame = BytesMut::new();
        Parser::write_close(&mut frame, reason, false);
        self.put(frame, None);
    }

    /// Ends the connection once all frames are sent.
    pub(super) fn end(&self) {
        self.free_bytes.close();
        self.frames.take();
    }

    /// Returns the time at which the client last read part of a frame, or `None` if no frame is waiting.
    pub(super) fn stuck_since(&self) -> Option<Instant> {
        self.is_waiting().then(|| self.last_progress.get())
    }

    fn is_waiting(&self) -> bool {
        self.free_bytes.available_permits() < UNSENT_BYTES_MAX
    }

    fn put(&self, frame: BytesMut, permits: Option<OwnedSemaphorePermit>) {
        let frame = Frame {
            bytes: frame.freeze(),
            _permits: permits,
        };
        if let Some(frames) = &*self.frames.borrow() {
            // fails only if the client is gone
            frames.send(frame).ok();
        }
    }
}

impl Sending {
    async fn next(mut self) -> Option<(Bytes, Self)> {
        let mut frame = match self.frame.take() {
            Some(frame) => frame,
            None => self.frames.recv().await?,
        };
        let chunk = frame.bytes.split_to(frame.bytes.len().min(CHUNK_BYTES));
        if !frame.bytes.is_empty() {
            self.frame = Some(frame);
        }
        self.last_progress.set(Instant::now());
        Some((chunk, self))
    }
}
