//! Discards the payload of an oversized frame as it arrives, except for the first bytes of the payload.
//!
//! The codec buffers a frame of any length before it checks the limit, so this module checks the length first. The
//! codec then receives the frame with an empty payload, so that it can still check whether the client may send such a
//! frame now.

use actix_http::ws::{Frame, Item};
use bytes::{Buf, Bytes, BytesMut};

use super::limits::START_BYTES;

/// Maximum payload size of a control frame (RFC 6455, section 5.5).
pub(super) const CONTROL_MAX_BYTES: u64 = 125;
/// Maximum payload size of any frame. The most significant bit of a length must be 0 (RFC 6455, section 5.2).
const PAYLOAD_MAX_BYTES: u64 = i64::MAX as u64;
const IS_MASKED: u8 = 0x80;
const IS_CONTROL: u8 = 0x08;
const OPCODE: u8 = 0x0f;

/// The header of a frame from a client (RFC 6455, section 5.2).
#[derive(Debug, Clone, Copy)]
pub(super) struct Head {
    first: u8,
    mask: [u8; 4],
    /// Size of the header.
    bytes: usize,
    pub(super) payload_bytes: u64,
}

impl Head {
    /// Parses a header. Returns `None` if the header is incomplete, or if the codec will reject the frame.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let (&first, rest) = bytes.split_first()?;
        let (&second, rest) = rest.split_first()?;
        if second & IS_MASKED == 0 {
            return None;
        }
        let (payload_bytes, rest) = match second & !IS_MASKED {
            126 => {
                let (length, rest) = rest.split_first_chunk()?;
                (u64::from(u16::from_be_bytes(*length)), rest)
            }
            127 => {
                let (length, rest) = rest.split_first_chunk()?;
                (u64::from_be_bytes(*length), rest)
            }
            length => (u64::from(length), rest),
        };
        let (mask, rest) = rest.split_first_chunk()?;
        (payload_bytes <= PAYLOAD_MAX_BYTES).then_some(Self {
            first,
            mask: *mask,
            bytes: bytes.len() - rest.len(),
            payload_bytes,
        })
    }

    /// Returns whether the frame is a ping, a pong or a close frame.
    pub(super) fn is_control(self) -> bool {
        self.first & IS_CONTROL != 0
    }

    pub(super) fn is_continuation(self) -> bool {
        self.first & OPCODE == 0
    }

    /// Builds the same frame without a payload.
    pub(super) fn emptied(self) -> BytesMut {
        BytesMut::from(&[self.first, IS_MASKED, 0, 0, 0, 0][..])
    }

    /// Skips the header of a frame whose payload will be dropped.
    pub(super) fn drop_payload(self, frame: Frame, unread: &mut BytesMut) -> DroppedPayload {
        unread.advance(self.bytes);
        DroppedPayload {
            frame,
            head: self,
            remaining: self.payload_bytes,
            start: BytesMut::new(),
        }
    }
}

#[derive(Debug)]
pub(super) struct DroppedPayload {
    frame: Frame,
    head: Head,
    remaining: u64,
    start: BytesMut,
}

impl DroppedPayload {
    /// Drops the received part of the payload, except for its beginning. Returns whether the whole payload has arrived.
    pub(super) fn drop_payload(&mut self, unread: &mut BytesMut) -> bool {
        let remaining = usize::try_from(self.remaining).unwrap_or(usize::MAX);
        let available = remaining.min(unread.len());
        let copied = START_BYTES.saturating_sub(self.start.len()).min(available);
        let index = self.start.len();
        self.start.extend_from_slice(&unread[..copied]);
        for (at, byte) in self.start.iter_mut().enumerate().skip(index) {
            *byte ^= self.head.mask[at % 4];
        }
        unread.advance(available);
        self.remaining -= available as u64;
        self.remaining == 0
    }

    /// Returns the frame with the beginning of its payload, and the size of the complete payload.
    pub(super) fn into_frame(self) -> (Frame, u64) {
        let start = self.start.freeze();
        (with_payload(self.frame, start), self.head.payload_bytes)
    }
}

fn with_payload(frame: Frame, payload: Bytes) -> Frame {
    match frame {
        Frame::Text(_) => Frame::Text(payload),
        Frame::Binary(_) => Frame::Binary(payload),
        Frame::Continuation(item) => Frame::Continuation(match item {
            Item::FirstText(_) => Item::FirstText(payload),
            Item::FirstBinary(_) => Item::FirstBinary(payload),
            Item::Continue(_) => Item::Continue(payload),
            Item::Last(_) => Item::Last(payload),
        }),
        control => control,
    }
}
