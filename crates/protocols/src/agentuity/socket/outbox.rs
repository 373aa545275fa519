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

/// Queues the frames of one connection. An answer waits until there is room for it. Until then, its request counts as
/// in flight.
#[derive(Debug)]
pub(super) struct Outbox {
    frames: RefCell<Option<UnboundedSender<Frame>>>,
    room: Arc<Semaphore>,
    moved: Rc<Cell<Instant>>,
}

/// The unsent part of a frame, and the permits for the frame's room in the outbox.
#[derive(Debug)]
struct Frame {
    bytes: Bytes,
    _room: Option<OwnedSemaphorePermit>,
}

struct Sending {
    frames: UnboundedReceiver<Frame>,
    frame: Option<Frame>,
    moved: Rc<Cell<Instant>>,
}

pub(super) fn outbox() -> (Outbox, impl Stream<Item = Bytes>) {
    let (sender, frames) = unbounded_channel();
    let moved = Rc::new(Cell::new(Instant::now()));
    let sending = Sending {
        frames,
        frame: None,
        moved: Rc::clone(&moved),
    };
    let outbox = Outbox {
        frames: RefCell::new(Some(sender)),
        room: Arc::new(Semaphore::new(UNSENT_BYTES_MAX)),
        moved,
    };
    (outbox, unfold(sending, Sending::next))
}

impl Outbox {
    /// Sends a text frame once there is room for `about_bytes` bytes, the approximate size of the frame. Calls `make`
    /// only then, so a waiting frame takes no memory.
    ///
    /// Drops the frame if the outbox is closed.
    pub(super) async fn text(&self, about_bytes: usize, make: impl FnOnce() -> String) {
        self.send(OpCode::Text, about_bytes, || make().into_bytes())
            .await;
    }

    pub(super) async fn pong(&self, bytes: Bytes) {
        self.send(OpCode::Pong, bytes.len(), || bytes).await;
    }

    async fn send<B: AsRef<[u8]>>(
        &self,
        kind: OpCode,
        about_bytes: usize,
        make: impl FnOnce() -> B,
    ) {
        if !self.is_waiting() {
            self.moved.set(Instant::now());
        }
        let bytes = about_bytes.clamp(1, UNSENT_BYTES_MAX) as u32;
        let room = Arc::clone(&self.room).acquire_many_owned(bytes).await;
        if let Ok(room) = room {
            let mut frame = BytesMut::new();
            Parser::write_message(&mut frame, make(), kind, true, false);
            self.put(frame, Some(room));
        }
    }

    /// Sends a ping after all earlier frames. Pings do not wait for room, because there is at most one per answer, plus
    /// one per interval.
    pub(super) fn ping(&self, bytes: [u8; 8]) {
        if self.room.is_closed() {
            return;
        }
        let mut frame = BytesMut::new();
        Parser::write_message(&mut frame, bytes, OpCode::Ping, true, false);
        self.put(frame, None);
    }

    /// Sends the close frame, unless it was already sent. Drops the text frames that are still waiting for room.
    pub(super) fn close(&self, reason: Option<CloseReason>) {
        if self.room.is_closed() {
            return;
        }
        self.room.close();
        let mut frame = BytesMut::new();
        Parser::write_close(&mut frame, reason, false);
        self.put(frame, None);
    }

    /// Ends the connection once all frames are sent.
    pub(super) fn end(&self) {
        self.room.close();
        self.frames.take();
    }

    /// Returns the time at which the client last read part of a frame, or `None` if no frame is waiting.
    pub(super) fn stuck_since(&self) -> Option<Instant> {
        self.is_waiting().then(|| self.moved.get())
    }

    fn is_waiting(&self) -> bool {
        self.room.available_permits() < UNSENT_BYTES_MAX
    }

    fn put(&self, frame: BytesMut, room: Option<OwnedSemaphorePermit>) {
        let frame = Frame {
            bytes: frame.freeze(),
            _room: room,
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
        self.moved.set(Instant::now());
        Some((chunk, self))
    }
}
