use std::mem;

use actix_http::ws::{CloseReason, Codec, Frame, Item, ProtocolError};
use bytes::{Bytes, BytesMut};
use tokio_util::codec::Decoder as _;

use super::error::RequestError;
use super::limits::START_BYTES;
use super::oversize::{CONTROL_MAX_BYTES, DroppedPayload, Head};

#[derive(Debug)]
pub(super) enum Message {
    /// Text that may not be valid UTF-8.
    Text(Bytes),
    /// The beginning of a rejected message.
    Refused { why: RequestError, start: Bytes },
    /// A ping. The pong must carry the same bytes.
    Ping(Bytes),
    /// A pong, which may be unsolicited (RFC 6455, section 5.5.3).
    Pong(Bytes),
    /// A close frame with an optional reason (RFC 6455, section 5.5.1).
    Close(Option<CloseReason>),
}

/// Reads messages. Buffers at most one message, and the bytes received after it.
#[derive(Debug)]
pub(super) struct Reader {
    codec: Codec,
    unread: BytesMut,
    max_bytes: u64,
    dropped_payload: Option<DroppedPayload>,
    parts: Option<Parts>,
}

/// A message whose last frame has not arrived yet.
#[derive(Debug)]
struct Parts {
    is_text: bool,
    size_bytes: u64,
    max_bytes: u64,
    /// The text so far, or only its beginning if the message is too large or binary.
    bytes: BytesMut,
}

impl Reader {
    pub(super) fn new(max_bytes: u64) -> Self {
        let mut reader = Self {
            codec: Codec::new(),
            unread: BytesMut::new(),
            max_bytes: 0,
            dropped_payload: None,
            parts: None,
        };
        reader.allow(max_bytes);
        reader
    }

    /// Sets the maximum size of messages, beginning with the next message.
    pub(super) fn allow(&mut self, max_bytes: u64) {
        let max_size = usize::try_from(max_bytes).unwrap_or(usize::MAX);
        self.codec = mem::take(&mut self.codec).max_size(max_size);
        self.max_bytes = max_bytes;
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        if self.unread.is_empty() {
            // starts a new buffer, because the empty `unread` may keep the buffer of a large message allocated
            self.unread = BytesMut::from(bytes);
        } else {
            self.unread.extend_from_slice(bytes);
        }
    }

    /// Returns the next complete message.
    ///
    /// # Errors
    /// [`ProtocolError`] for a malformed frame, or a frame that is not allowed at this point.
    pub(super) fn next(&mut self) -> Result<Option<Message>, ProtocolError> {
        while let Some((frame, size_bytes)) = self.frame()? {
            if let Some(message) = self.take(frame, size_bytes) {
                return Ok(Some(message));
            }
        }
        Ok(None)
    }

    /// Returns the next frame and its payload size. The payload of an oversized frame is truncated.
    fn frame(&mut self) -> Result<Option<(Frame, u64)>, ProtocolError> {
        if self.dropped_payload.is_none() {
            let head = Head::read(&self.unread);
            let Some(head) = head.filter(|head| self.is_too_large(*head)) else {
                let size_bytes = head.map_or(0, |head| head.payload_bytes);
                let frame = self.codec.decode(&mut self.unread)?;
                return Ok(frame.map(|frame| (frame, size_bytes)));
            };
            if head.is_control() {
                return Err(ProtocolError::BadOpCode);
            }
            let frame = self.codec.decode(&mut head.emptied())?;
            self.dropped_payload = frame.map(|frame| head.drop_payload(frame, &mut self.unread));
        }
        let unread = &mut self.unread;
        let complete = self
            .dropped_payload
            .take_if(|frame| frame.drop_payload(unread));
        Ok(complete.map(DroppedPayload::into_frame))
    }

    fn is_too_large(&self, head: Head) -> bool {
        let before = match &self.parts {
            _ if head.is_control() => return head.payload_bytes > CONTROL_MAX_BYTES,
            Some(parts) if head.is_continuation() => parts.size_bytes,
            _ => 0,
        };
        head.payload_bytes > self.max_bytes.saturating_sub(before)
    }

    fn take(&mut self, frame: Frame, size_bytes: u64) -> Option<Message> {
        let begin =
            |is_text, bytes: &[u8]| Parts::begin(is_text, self.max_bytes).with(size_bytes, bytes);
        match frame {
            Frame::Text(text) if size_bytes <= self.max_bytes => Some(Message::Text(text)),
            Frame::Text(text) => Some(begin(true, &text).into_message()),
            Frame::Binary(bytes) => Some(begin(false, &bytes).into_message()),
            Frame::Continuation(Item::FirstText(text)) => {
                self.parts = Some(begin(true, &text));
                None
            }
            Frame::Continuation(Item::FirstBinary(bytes)) => {
                self.parts = Some(begin(false, &bytes));
                None
            }
            Frame::Continuation(Item::Continue(bytes)) => {
                self.parts = Some(self.parts.take()?.with(size_bytes, &bytes));
                None
            }
            Frame::Continuation(Item::Last(bytes)) => {
                Some(self.parts.take()?.with(size_bytes, &bytes).into_message())
            }
            Frame::Ping(bytes) => Some(Message::Ping(bytes)),
            Frame::Pong(bytes) => Some(Message::Pong(bytes)),
            Frame::Close(reason) => Some(Message::Close(reason)),
        }
    }
}

impl Parts {
    fn begin(is_text: bool, max_bytes: u64) -> Self {
        Self {
            is_text,
            size_bytes: 0,
            max_bytes,
            bytes: BytesMut::new(),
        }
    }

    /// Adds a part with a complete size of `size_bytes`. `bytes` may contain only the beginning of the part. If the
    /// message is too large or binary, stores only its beginning.
    fn with(mut self, size_bytes: u64, bytes: &[u8]) -> Self {
        self.size_bytes = self.size_bytes.saturating_add(size_bytes);
        if !self.is_too_large() && self.is_text {
            self.bytes.extend_from_slice(bytes);
            return self;
        }
        // copies the beginning, so that the buffer of a large message is freed
        let mut start = BytesMut::with_capacity(START_BYTES);
        start.extend_from_slice(&self.bytes[..self.bytes.len().min(START_BYTES)]);
        let copied = (START_BYTES - start.len()).min(bytes.len());
        start.extend_from_slice(&bytes[..copied]);
        self.bytes = start;
        self
    }

    fn is_too_large(&self) -> bool {
        self.size_bytes > self.max_bytes
    }

    fn into_message(self) -> Message {
        let why = if self.is_too_large() {
            let limit_bytes = self.max_bytes;
            RequestError::TooLarge { limit_bytes }
        } else if self.is_text {
            return Message::Text(self.bytes.freeze());
        } else {
            RequestError::Binary
        };
        let start = self.bytes.freeze();
        Message::Refused { why, start }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MAX_BYTES: u64 = 200;
    const FIN: u8 = 0x80;
    const CONTINUATION: u8 = 0;
    const TEXT: u8 = 1;
    const BINARY: u8 = 2;
    const CLOSE: u8 = 8;
    const PING: u8 = 9;

    /// Builds a masked frame, as sent by clients (RFC 6455, section 5.2).
    fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![first];
        match payload.len() {
            length @ ..126 => frame.push(0x80 | length as u8),
            length @ ..65_536 => {
                frame.push(0x80 | 126);
                frame.extend((length as u16).to_be_bytes());
            }
            length => {
                frame.push(0x80 | 127);
                frame.extend((length as u64).to_be_bytes());
            }
        }
        let mask = [0x12, 0xff, 0x00, 0x77];
        frame.extend(mask);
        let masked = payload.iter().zip(mask.iter().cycle());
        frame.extend(masked.map(|(byte, mask)| byte ^ mask));
        frame
    }

    fn read(bytes: &[u8], chunk_bytes: usize) -> Result<Vec<String>, ProtocolError> {
        let mut reader = Reader::new(MAX_BYTES);
        let mut messages = Vec::new();
        for piece in bytes.chunks(chunk_bytes) {
            reader.push(piece);
            while let Some(message) = reader.next()? {
                messages.push(describe(message));
            }
        }
        Ok(messages)
    }

    fn describe(message: Message) -> String {
        let text = |bytes: Bytes| String::from_utf8_lossy(&bytes).into_owned();
        match message {
            Message::Text(bytes) => text(bytes),
            Message::Refused { why, start } => format!("{why}: {}", text(start)),
            Message::Ping(bytes) => format!("ping {}", text(bytes)),
            Message::Pong(bytes) => format!("pong {}", text(bytes)),
            Message::Close(reason) => format!("close {:?}", reason.map(|reason| reason.code)),
        }
    }

    fn read_all(frames: &[Vec<u8>]) -> Vec<String> {
        read(&frames.concat(), usize::MAX).unwrap()
    }

    #[test]
    fn fragments_are_joined_across_control_frames() {
        let frames = [
            frame(TEXT, b"a"),
            frame(FIN | PING, b"there?"),
            frame(CONTINUATION, b""),
            frame(FIN | CONTINUATION, b"b"),
            frame(FIN | TEXT, b""),
            frame(FIN | CLOSE, b""),
        ];

        assert_eq!(read_all(&frames), ["ping there?", "ab", "", "close None"]);
    }

    #[test]
    fn an_oversized_message_is_rejected_and_the_next_one_is_read() {
        let large: Vec<u8> = (b'a'..=b'z').cycle().take(70_000).collect();
        let start = str::from_utf8(&large[..START_BYTES]).unwrap();
        let rejection = format!("a message has at most 200 bytes: {start}");

        let unfragmented = [frame(FIN | TEXT, &large), frame(FIN | TEXT, b"next")];
        assert_eq!(read_all(&unfragmented), [&rejection, "next"]);

        let mut parts = vec![frame(TEXT, &large[..150])];
        parts.extend(
            large[150..]
                .chunks(100)
                .map(|part| frame(CONTINUATION, part)),
        );
        parts.push(frame(FIN | PING, b""));
        parts.push(frame(FIN | CONTINUATION, b"!"));
        parts.push(frame(FIN | TEXT, b"next"));
        assert_eq!(read_all(&parts), ["ping ", &rejection, "next"]);

        let edge = [frame(TEXT, &large[..150]), frame(FIN, &large[..50])];
        assert_eq!(read_all(&edge)[0].len(), 200);
    }

    #[test]
    fn an_oversized_message_is_not_buffered() {
        let large = frame(FIN | TEXT, &vec![b'a'; 1_000_000]);
        let mut reader = Reader::new(MAX_BYTES);

        for piece in large.chunks(1_000) {
            reader.push(piece);
            let message = reader.next().unwrap();
            assert!(message.is_none() || reader.unread.is_empty());
            assert!(reader.unread.capacity() < 10_000);
        }
    }

    #[test]
    fn binary_messages_are_rejected() {
        let frames = [
            frame(FIN | BINARY, b"a"),
            frame(BINARY, b"b"),
            frame(FIN | CONTINUATION, b"c"),
        ];

        let why = "a message must be text";
        assert_eq!(
            read_all(&frames),
            [format!("{why}: a"), format!("{why}: bc")]
        );
    }

    #[test]
    fn protocol_violations_are_errors() {
        let large = vec![0; 300];
        let unmasked = vec![FIN | TEXT, 1, b'a'];
        let endless = vec![FIN | TEXT, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0];
        for bytes in [
            unmasked,
            [endless, vec![0; 4]].concat(),
            frame(FIN | 0x40 | TEXT, b"a"),
            frame(FIN | 0x40 | TEXT, &large),
            frame(FIN | 3, b"a"),
            frame(FIN | CONTINUATION, b"a"),
            frame(FIN | CONTINUATION, &large),
            [frame(TEXT, b"a"), frame(TEXT, &large)].concat(),
            frame(PING, b""),
            frame(FIN | PING, &large)[..8].to_vec(),
            frame(FIN | CLOSE, b"1"),
        ] {
            assert!(read(&bytes, usize::MAX).is_err(), "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn messages_do_not_depend_on_how_the_bytes_are_split(chunk_bytes in 1..400_usize) {
            let frames = [
                frame(TEXT, b"a"),
                frame(FIN | PING, b"p"),
                frame(FIN | CONTINUATION, &[b'b'; 130]),
                frame(FIN | TEXT, &[b'c'; 3_000]),
                frame(BINARY, &[b'd'; 201]),
                frame(FIN | CONTINUATION, &[b'e'; 5]),
                frame(FIN | TEXT, &[b'f'; 200]),
            ]
            .concat();

            let unsplit = read(&frames, usize::MAX).unwrap();
            prop_assert_eq!(read(&frames, chunk_bytes).unwrap(), unsplit);
        }

        #[test]
        fn any_bytes_are_read_or_rejected(bytes: Vec<u8>, chunk_bytes in 1..9_usize) {
            drop(read(&bytes.repeat(3), chunk_bytes));
        }
    }
}
