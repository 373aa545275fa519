use actix_web::web::Bytes;
use bytes::Buf as _;
use tokio::io::ReadBuf;

use super::framing::{Framing, HeadTooLarge};

/// Maximum number of bytes that the actix dispatcher gets per round. The dispatcher's buffer grows to this size and
/// never shrinks, so the maximum is small. It hardly slows down large bodies.
const ROUND_BYTES_MAX: usize = 16_384;

/// Passes the bytes of a client to the actix dispatcher, one request at a time. In each round, the dispatcher gets up
/// to [`ROUND_BYTES_MAX`] bytes, and handles them before the next round.
///
/// Before the dispatcher answers a request, it decodes all bytes that it has read. A client that does not wait for
/// answers could therefore fill the memory with thousands of requests. The dispatcher also encodes each response for
/// the method, version and `connection` header of the last decoded request. For both reasons, the dispatcher does not
/// get bytes of the next request until it has written the response.
#[derive(Debug, Default)]
pub(super) struct Intake {
    round_bytes: usize,
    framing: Framing,
    backlog: Bytes,
}

impl Intake {
    pub(super) fn is_full(&self) -> bool {
        self.remaining_bytes() == 0
    }

    pub(super) fn remaining_bytes(&self) -> usize {
        ROUND_BYTES_MAX.saturating_sub(self.round_bytes)
    }

    /// Returns whether a whole request was passed to the dispatcher. Later bytes are held back until
    /// [`Self::begin_request`].
    pub(super) fn is_complete(&self) -> bool {
        self.framing.is_complete()
    }

    /// Returns whether all passed requests were complete, and no byte of the next request has arrived.
    pub(super) fn is_between_requests(&self) -> bool {
        (self.framing.is_complete() || self.framing.is_new()) && !self.has_backlog()
    }

    pub(super) fn begin_round(&mut self) {
        self.round_bytes = 0;
    }

    pub(super) fn begin_request(&mut self) {
        if self.framing.is_complete() {
            self.framing = Framing::default();
        }
    }

    pub(super) fn has_backlog(&self) -> bool {
        !self.backlog.is_empty()
    }

    /// Copies bytes from the backlog to `buffer`. After [`HeadTooLarge`], the caller must close the connection.
    pub(super) fn pass_backlog(&mut self, buffer: &mut ReadBuf<'_>) -> Result<(), HeadTooLarge> {
        let count = self
            .backlog
            .len()
            .min(buffer.remaining())
            .min(self.remaining_bytes());
        let end = self.framing.advance(&self.backlog[..count])?;
        buffer.put_slice(&self.backlog[..end]);
        self.backlog.advance(end);
        self.round_bytes += end;
        Ok(())
    }

    /// Moves bytes of the next request from `buffer` to the backlog. `start` is the offset of the bytes that were just
    /// read. After [`HeadTooLarge`], the caller must close the connection.
    pub(super) fn pass(
        &mut self,
        buffer: &mut ReadBuf<'_>,
        start: usize,
    ) -> Result<(), HeadTooLarge> {
        let read = &buffer.filled()[start..];
        let end = self.framing.advance(read)?;
        if end < read.len() {
            self.backlog = Bytes::copy_from_slice(&read[end..]);
            buffer.set_filled(start + end);
        }
        self.round_bytes += end;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Passes `bytes` through an [`Intake`] in reads of up to `part_bytes` bytes. Returns the bytes of each round.
    fn rounds(bytes: &[u8], part_bytes: usize) -> Vec<Vec<u8>> {
        let mut intake = Intake::default();
        let mut rest = bytes;
        let mut rounds = Vec::new();
        loop {
            intake.begin_round();
            intake.begin_request();
            let mut round = Vec::new();
            while !intake.is_full() && !intake.is_complete() {
                let mut memory = [0; 1_000];
                let mut buffer = ReadBuf::new(&mut memory);
                if intake.has_backlog() {
                    intake.pass_backlog(&mut buffer).unwrap();
                } else {
                    let count = part_bytes.min(intake.remaining_bytes()).min(rest.len());
                    if count == 0 {
                        break;
                    }
                    buffer.put_slice(&rest[..count]);
                    rest = &rest[count..];
                    intake.pass(&mut buffer, 0).unwrap();
                }
                round.extend_from_slice(buffer.filled());
            }
            if round.is_empty() {
                return rounds;
            }
            rounds.push(round);
        }
    }

    #[test]
    fn a_round_has_one_request_regardless_of_read_sizes() {
        for request in [
            &b"GET / HTTP/1.1\r\n\r\n"[..],
            b"GET / HTTP/1.1\n\n",
            b"PUT / HTTP/1.1\r\ncontent-length: 4\r\n\r\n\r\n\r\n",
        ] {
            let requests = request.repeat(5);
            for part_bytes in [1, 2, 7, 100, 1_000] {
                let rounds = rounds(&requests, part_bytes);

                assert_eq!(rounds, vec![request.to_vec(); 5]);
            }
        }
    }

    #[test]
    fn a_round_of_a_large_body_has_the_maximum_size() {
        let head = b"PUT / HTTP/1.1\r\ncontent-length: 100000\r\n\r\n";
        let request = [&head[..], &[b'\n'; 100_000]].concat();

        let rounds = rounds(&request, 1_000);

        assert_eq!(rounds.concat(), request);
        assert_eq!(rounds[0].len(), ROUND_BYTES_MAX);
    }

    #[test]
    fn bytes_that_do_not_fit_remain_in_the_backlog() {
        let mut intake = Intake {
            backlog: Bytes::from_static(b"abc"),
            ..Intake::default()
        };
        let mut memory = [0; 2];
        let mut buffer = ReadBuf::new(&mut memory);

        intake.pass_backlog(&mut buffer).unwrap();
        assert_eq!(buffer.filled(), b"ab");
        buffer.clear();
        intake.pass_backlog(&mut buffer).unwrap();

        assert_eq!(buffer.filled(), b"c");
        assert!(!intake.has_backlog());
    }
}
