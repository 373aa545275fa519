use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::ops::Range;

use memchr::memmem;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub(super) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    pub(super) async fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            buffer: Vec::with_capacity(1 << 16),
        })
    }

    /// Sends a request and reads its response, which must be a success or a 304. Returns the body.
    pub(super) async fn exchange(&mut self, request: &[u8]) -> io::Result<&[u8]> {
        self.stream.write_all(request).await?;
        self.buffer.clear();
        let mut body = 0..usize::MAX;
        while self.buffer.len() < body.end {
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            if body.end == usize::MAX {
                body = self.body()?.unwrap_or(body);
            }
        }
        if self.buffer.get(9) == Some(&b'2') || self.is_not_modified() {
            return Ok(&self.buffer[body]);
        }
        let answer = String::from_utf8_lossy(&self.buffer);
        Err(io::Error::other(format!("the server answered {answer}")))
    }

    pub(super) async fn stream(&mut self, request: &[u8]) -> io::Result<()> {
        const END: &[u8] = b"\r\n0\r\n\r\n";
        self.stream.write_all(request).await?;
        self.buffer.clear();
        let mut has_status = false;
        loop {
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            if !has_status && self.buffer.get(9).is_some_and(|digit| *digit != b'2') {
                let answer = String::from_utf8_lossy(&self.buffer);
                return Err(io::Error::other(format!("the server answered {answer}")));
            }
            if self.buffer.ends_with(END) {
                return Ok(());
            }
            has_status |= self.buffer.len() > 9;
            let past = self.buffer.len().saturating_sub(END.len());
            if has_status {
                self.buffer.drain(..past);
            }
        }
    }

    pub(super) fn is_not_modified(&self) -> bool {
        self.buffer.get(9..12) == Some(b"304")
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let end = memmem::find(&self.buffer, b"\r\n\r\n")?;
        let head = str::from_utf8(&self.buffer[..end]).ok()?;
        head.split("\r\n").find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then_some(value)
        })
    }

    fn body(&self) -> io::Result<Option<Range<usize>>> {
        let Some(head) = memmem::find(&self.buffer, b"\r\n\r\n") else {
            return Ok(None);
        };
        let start = head + 4;
        if self.is_not_modified() {
            // a 304 has no body, although its `content-length` may be that of the content (RFC 9110, section 8.6)
            return Ok(Some(start..start));
        }
        let length = self.header("content-length");
        let length: Option<usize> = length.and_then(|n| n.parse().ok());
        length
            .map(|length| Some(start..start + length))
            .ok_or_else(|| io::Error::other("an answer without content-length"))
    }
}
