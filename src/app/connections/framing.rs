/// Maximum size of a request head. Prevents a panic in actix if a header name has 65,536 bytes. Heads between 32 KiB,
/// the documented limit, and this maximum are rejected with a problem object.
const HEAD_BYTES_MAX: usize = 65_535;
/// Maximum size of a header field that determines where a request ends, such as `content-length`. Also the maximum
/// number of bytes that are stored from an unfinished line.
const FIELD_BYTES_MAX: usize = 256;

/// Finds the end of each request in the bytes of a connection, by the same rules as actix.
///
/// actix parses the bytes again, and rejects malformed requests. If this parser and actix disagree about the end of a
/// request, bytes are held back until the request or the connection times out.
#[derive(Debug)]
pub(super) enum Framing {
    Head(Head),
    Body {
        remaining_bytes: u64,
    },
    Chunks(Chunks),
    Complete,
    /// All later bytes belong to this request.
    Endless,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the head of a request has more than {HEAD_BYTES_MAX} bytes")]
pub(super) struct HeadTooLarge;

#[derive(Debug, Default)]
pub(super) struct Head {
    bytes: usize,
    has_begun: bool,
    line: Vec<u8>,
    line_bytes: usize,
    body: DeclaredBody,
}

#[derive(Debug, Default)]
struct DeclaredBody {
    length: Option<u64>,
    is_chunked: bool,
    is_websocket: bool,
    is_connect: bool,
}

#[derive(Debug)]
pub(super) enum Chunks {
    Size {
        size: u64,
        is_number: bool,
    },
    Data {
        remaining_bytes: u64,
    },
    Trailer {
        is_empty: bool,
        is_after_return: bool,
    },
}

impl Default for Framing {
    fn default() -> Self {
        Self::Head(Head::default())
    }
}

impl Framing {
    /// Consumes bytes up to the end of the request, and returns the number of bytes consumed.
    pub(super) fn advance(&mut self, bytes: &[u8]) -> Result<usize, HeadTooLarge> {
        let mut end = 0;
        while end < bytes.len() && !self.is_complete() {
            let rest = &bytes[end..];
            end += match self {
                Self::Head(head) => {
                    let (count, is_complete) = head.advance(rest)?;
                    if is_complete {
                        *self = head.body.framing();
                    }
                    count
                }
                Self::Body { remaining_bytes } => {
                    let count = take(remaining_bytes, rest);
                    if *remaining_bytes == 0 {
                        *self = Self::Complete;
                    }
                    count
                }
                Self::Chunks(chunks) => {
                    let (count, next) = chunks.advance(rest);
                    if let Some(next) = next {
                        *self = next;
                    }
                    count
                }
                Self::Complete => 0,
                Self::Endless => rest.len(),
            };
        }
        Ok(end)
    }

    pub(super) fn is_complete(&self) -> bool {
        matches!(self, Self::Complete)
    }

    /// Returns whether no byte of a request has arrived.
    pub(super) fn is_new(&self) -> bool {
        matches!(self, Self::Head(head) if head.bytes == 0)
    }
}

impl Head {
    /// Consumes bytes up to the end of the head. Returns how many bytes, and whether the head is complete.
    fn advance(&mut self, bytes: &[u8]) -> Result<(usize, bool), HeadTooLarge> {
        let mut start = 0;
        let mut is_complete = false;
        for line_feed in memchr::memchr_iter(b'\n', bytes) {
            is_complete = self.end_line(&bytes[start..line_feed])?;
            start = line_feed + 1;
            if is_complete {
                break;
            }
        }
        if !is_complete {
            let rest = &bytes[start..];
            let kept_bytes = rest
                .len()
                .min(FIELD_BYTES_MAX.saturating_sub(self.line.len()));
            self.line.extend_from_slice(&rest[..kept_bytes]);
            self.line_bytes += rest.len();
            start = bytes.len();
        }
        self.bytes += start;
        match self.bytes > HEAD_BYTES_MAX {
            true => Err(HeadTooLarge),
            false => Ok((start, is_complete)),
        }
    }

    /// Completes the unfinished line with `bytes`. Returns whether this line is the last line of the head.
    fn end_line(&mut self, bytes: &[u8]) -> Result<bool, HeadTooLarge> {
        if self.line_bytes == 0 {
            return self.read(bytes, bytes.len());
        }
        let mut line = std::mem::take(&mut self.line);
        let line_bytes = std::mem::take(&mut self.line_bytes) + bytes.len();
        let kept_bytes = bytes.len().min(FIELD_BYTES_MAX.saturating_sub(line.len()));
        line.extend_from_slice(&bytes[..kept_bytes]);
        self.read(&line, line_bytes)
    }

    /// Reads a line of `line_bytes` bytes. `line` holds its beginning.
    fn read(&mut self, line: &[u8], line_bytes: usize) -> Result<bool, HeadTooLarge> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            // empty lines may precede a request
            return Ok(self.has_begun);
        }
        if !self.has_begun {
            self.has_begun = true;
            self.body.is_connect = line.starts_with(b"CONNECT ");
            return Ok(false);
        }
        let Some(colon) = memchr::memchr(b':', line) else {
            return Ok(false);
        };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        let body = &mut self.body;
        if name.eq_ignore_ascii_case(b"content-length") {
            body.length = std::str::from_utf8(value)
                .ok()
                .and_then(|length| length.parse().ok());
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            // actix rejects any other coding
            body.is_chunked = true;
        } else if name.eq_ignore_ascii_case(b"upgrade") {
            body.is_websocket |= value.eq_ignore_ascii_case(b"websocket");
        } else {
            return Ok(false);
        }
        match line_bytes > FIELD_BYTES_MAX {
            true => Err(HeadTooLarge),
            false => Ok(false),
        }
    }
}

impl DeclaredBody {
    fn framing(&self) -> Framing {
        let length = self.length.unwrap_or_default();
        if self.is_chunked {
            Framing::Chunks(Chunks::SIZE)
        } else if self.is_websocket || self.is_connect && length == 0 {
            Framing::Endless
        } else if length > 0 {
            Framing::Body {
                remaining_bytes: length,
            }
        } else {
            Framing::Complete
        }
    }
}

impl Chunks {
    const SIZE: Self = Self::Size {
        size: 0,
        is_number: true,
    };
    const TRAILER: Self = Self::Trailer {
        is_empty: true,
        is_after_return: false,
    };

    /// Consumes bytes of the current part of the body. Returns the number of bytes consumed, and the next part if the
    /// current part has ended.
    fn advance(&mut self, bytes: &[u8]) -> (usize, Option<Framing>) {
        match self {
            Self::Data { remaining_bytes } => {
                let count = take(remaining_bytes, bytes);
                let next = (*remaining_bytes == 0).then_some(Framing::Chunks(Self::SIZE));
                (count, next)
            }
            Self::Size { size, is_number } => {
                for (index, byte) in bytes.iter().enumerate() {
                    let next = match (byte, hex_digit(*byte)) {
                        (b'\n', _) if *size == 0 => Some(Self::TRAILER),
                        (b'\n', _) => Some(Self::Data {
                            remaining_bytes: size.saturating_add(2),
                        }),
                        (_, Some(digit)) if *is_number => {
                            // actix rejects sizes that overflow
                            *size = size.saturating_mul(16).saturating_add(digit);
                            None
                        }
                        _ => {
                            *is_number = false;
                            None
                        }
                    };
                    if let Some(next) = next {
                        return (index + 1, Some(Framing::Chunks(next)));
                    }
                }
                (bytes.len(), None)
            }
            Self::Trailer {
                is_empty,
                is_after_return,
            } => {
                for (index, byte) in bytes.iter().enumerate() {
                    if *is_after_return {
                        let next = match *is_empty {
                            true => Framing::Complete,
                            false => Framing::Chunks(Self::TRAILER),
                        };
                        return (index + 1, Some(next));
                    }
                    match byte {
                        b'\r' => *is_after_return = true,
                        _ => *is_empty = false,
                    }
                }
                (bytes.len(), None)
            }
        }
    }
}

fn take(remaining_bytes: &mut u64, bytes: &[u8]) -> usize {
    let count = usize::try_from(*remaining_bytes)
        .map_or(bytes.len(), |remaining| remaining.min(bytes.len()));
    *remaining_bytes -= count as u64;
    count
}

fn hex_digit(byte: u8) -> Option<u64> {
    char::from(byte).to_digit(16).map(u64::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEXT: &[u8] = b"HEAD / HTTP/1.1\r\n\r\n";

    /// Feeds `bytes` to the parser in parts of `part_bytes` bytes. Returns the size of the first request in `bytes`.
    fn end(bytes: &[u8], part_bytes: usize) -> Result<usize, HeadTooLarge> {
        let mut framing = Framing::default();
        let mut end = 0;
        for part in bytes.chunks(part_bytes) {
            end += framing.advance(part)?;
            if framing.is_complete() {
                return Ok(end);
            }
        }
        assert_eq!(end, bytes.len());
        Ok(end)
    }

    #[test]
    fn a_request_ends_where_its_body_ends() {
        let requests: [&[u8]; 12] = [
            b"GET / HTTP/1.1\r\n\r\n",
            b"GET / HTTP/1.1\n\n",
            b"\r\n\r\nGET / HTTP/1.1\r\na: b\r\n\r\n",
            b"PUT / HTTP/1.1\r\nContent-Length: 5 \r\n\r\n\n\n\n\n\n",
            b"PUT / HTTP/1.1\r\ncontent-length: 0\r\nx: content-length: 5\r\n\r\n",
            b"PUT / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
            b"PUT / HTTP/1.1\r\ntransfer-encoding:Chunked\r\n\r\n1\r\n\n\r\n0\r\n\r\n",
            b"PUT / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n0a;b=c\r\n0\r\n\r\n0\r\n\r\n\r\n0\r\n\r\n",
            b"PUT / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nA \r\n1234567890\r\n0\r\na: b\r\nc: d\r\n\r\n",
            b"PUT / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\n\r\n\r\n",
            b"CONNECT / HTTP/1.1\r\ncontent-length: 1\r\n\r\nx",
            b"GET / HTTP/1.1\r\nupgrade: h2c\r\n\r\n",
        ];
        for request in requests {
            let bytes = [request, NEXT].concat();
            for part_bytes in [1, 2, 3, 7, 1_000] {
                let shown = String::from_utf8_lossy(request);
                assert_eq!(end(&bytes, part_bytes), Ok(request.len()), "{shown:?}");
            }
        }
    }

    #[test]
    fn an_endless_request_consumes_all_further_bytes() {
        for request in [
            &b"GET / HTTP/1.1\r\nupgrade: WebSocket\r\n\r\n"[..],
            b"PUT / HTTP/1.1\r\ncontent-length: 1\r\nupgrade: websocket\r\n\r\n",
            b"CONNECT / HTTP/1.1\r\n\r\n",
        ] {
            let bytes = [request, NEXT].concat();
            assert_eq!(end(&bytes, 10), Ok(bytes.len()));
        }
    }

    #[test]
    fn only_heads_are_bounded() {
        let head = |name_bytes| {
            let name = "n".repeat(name_bytes);
            format!("PUT / HTTP/1.1\r\n{name}: v\r\ncontent-length: 200000\r\n\r\n")
        };
        for part_bytes in [1, 1_000, 200_000] {
            let body = vec![b'\n'; 200_000];
            let fits = [head(65_000).as_bytes(), &body].concat();
            assert_eq!(end(&fits, part_bytes), Ok(fits.len()));
            assert_eq!(end(head(70_000).as_bytes(), part_bytes), Err(HeadTooLarge));
            assert_eq!(end(&body, part_bytes), Err(HeadTooLarge));
        }
    }

    #[test]
    fn a_framing_field_over_the_limit_is_rejected() {
        let spaces = " ".repeat(1_000);
        let request = format!("PUT / HTTP/1.1\r\ncontent-length:{spaces}5\r\n\r\n");
        for part_bytes in [1, 100, 10_000] {
            assert_eq!(end(request.as_bytes(), part_bytes), Err(HeadTooLarge));
        }
    }
}
