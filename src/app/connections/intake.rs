//! How much of what a client sends is passed on at a time.

use actix_web::web::Bytes;
use bytes::Buf as _;
use tokio::io::ReadBuf;

/// Bytes that are passed on in a round: large bodies lose little by it, and the dispatcher of actix, which
/// keeps all that it is given, has little to keep.
const ROUND_BYTES: usize = 16_384;
/// Blank lines that are passed on in a round. A head ends with one, so no more requests than these wait
/// for the one that is being answered; each costs about 7 KiB, most of it an empty map of headers.
const ROUND_HEADS: usize = 4;

/// Passes on what a client sends in rounds.
///
/// The dispatcher decodes all that it has read before it answers, so a client that pipelines could have it
/// keep thousands of requests. A round ends when the dispatcher has answered what it could.
#[derive(Debug)]
pub(super) struct Intake {
    round_bytes: usize,
    round_heads: usize,
    is_line_blank: bool,
    /// Bytes that were read and are for the next round.
    backlog: Bytes,
}

impl Default for Intake {
    fn default() -> Self {
        Self {
            round_bytes: 0,
            round_heads: 0,
            is_line_blank: true,
            backlog: Bytes::new(),
        }
    }
}

impl Intake {
    /// Whether nothing more is passed on in this round.
    pub(super) fn is_full(&self) -> bool {
        self.round_bytes >= ROUND_BYTES || self.round_heads >= ROUND_HEADS
    }

    pub(super) fn begin_round(&mut self) {
        self.round_bytes = 0;
        self.round_heads = 0;
    }

    /// Whether bytes that were read are still to be passed on.
    pub(super) fn has_backlog(&self) -> bool {
        !self.backlog.is_empty()
    }

    /// Passes on what was read before and is not passed on yet.
    pub(super) fn pass_backlog(&mut self, buffer: &mut ReadBuf<'_>) {
        let start = buffer.filled().len();
        let count = self.backlog.len().min(buffer.remaining());
        buffer.put_slice(&self.backlog[..count]);
        let end = self.end_of_round(&buffer.filled()[start..]);
        buffer.set_filled(start + end);
        self.backlog.advance(end);
    }

    /// Keeps back what was read into the buffer after `start` and is too much for this round.
    pub(super) fn pass(&mut self, buffer: &mut ReadBuf<'_>, start: usize) {
        let read = &buffer.filled()[start..];
        let end = self.end_of_round(read);
        if end < read.len() {
            self.backlog = Bytes::copy_from_slice(&read[end..]);
            buffer.set_filled(start + end);
        }
    }

    /// Counts bytes up to the blank line that ends the round, or all of them.
    fn end_of_round(&mut self, bytes: &[u8]) -> usize {
        let mut start = 0;
        for line_feed in memchr::memchr_iter(b'\n', bytes) {
            let is_blank = self.is_line_blank && is_blank(&bytes[start..line_feed]);
            self.is_line_blank = true;
            start = line_feed + 1;
            if is_blank {
                self.round_heads += 1;
            }
            if self.round_heads >= ROUND_HEADS {
                self.round_bytes += start;
                return start;
            }
        }
        self.is_line_blank &= is_blank(&bytes[start..]);
        self.round_bytes += bytes.len();
        bytes.len()
    }
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(|byte| *byte == b'\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is passed on in each round, of bytes that are read in parts of this size.
    fn rounds(bytes: &[u8], part_bytes: usize) -> Vec<Vec<u8>> {
        let mut intake = Intake::default();
        let mut parts = bytes.chunks(part_bytes);
        let mut rounds = Vec::new();
        loop {
            intake.begin_round();
            let mut round = Vec::new();
            while !intake.is_full() {
                let mut memory = [0; 1_000];
                let mut buffer = ReadBuf::new(&mut memory);
                if intake.has_backlog() {
                    intake.pass_backlog(&mut buffer);
                } else {
                    let Some(part) = parts.next() else { break };
                    buffer.put_slice(part);
                    intake.pass(&mut buffer, 0);
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
    fn a_round_has_few_heads_however_they_come() {
        for head in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"GET / HTTP/1.1\n\n"] {
            let heads = head.repeat(11);
            for part_bytes in [1, 2, 7, 100, 1_000] {
                let rounds = rounds(&heads, part_bytes);

                assert_eq!(rounds.concat(), heads);
                let sizes: Vec<_> = rounds
                    .iter()
                    .map(|round| round.len() / head.len())
                    .collect();
                assert_eq!(sizes, [4, 4, 3]);
            }
        }
    }

    #[test]
    fn a_round_of_a_body_ends_at_its_bytes() {
        let body = vec![b'x'; 100_000];

        let rounds = rounds(&body, 1_000);

        assert_eq!(rounds.concat(), body);
        assert_eq!(rounds[0].len(), 17_000);
    }

    #[test]
    fn more_than_a_buffer_takes_is_left_for_the_next() {
        let mut intake = Intake {
            backlog: Bytes::from_static(b"abc"),
            ..Intake::default()
        };
        let mut memory = [0; 2];
        let mut buffer = ReadBuf::new(&mut memory);

        intake.pass_backlog(&mut buffer);
        assert_eq!(buffer.filled(), b"ab");
        buffer.clear();
        intake.pass_backlog(&mut buffer);

        assert_eq!(buffer.filled(), b"c");
        assert!(!intake.has_backlog());
    }
}
