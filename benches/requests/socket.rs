//! Load from one WebSocket with many requests in flight, like the load from an Agentuity runtime process.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use memchr::memmem;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::load::Outcome;
use super::product::API_KEY;

const IN_FLIGHT: usize = 64;
const TEXT: u8 = 0x81;
const PING: u8 = 0x89;
const PONG: u8 = 0x8a;

pub(super) struct Socket {
    stream: TcpStream,
    unread: Vec<u8>,
}

impl Socket {
    pub(super) async fn open(address: SocketAddr) -> io::Result<Self> {
        let mut stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let upgrade = "GET /thread/ws HTTP/1.1\r\nhost: localhost\r\nupgrade: websocket\r\n\
            connection: upgrade\r\nsec-websocket-version: 13\r\n\
            sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
        stream.write_all(upgrade.as_bytes()).await?;
        let mut this = Self {
            stream,
            unread: Vec::with_capacity(1 << 20),
        };
        let head = loop {
            this.receive().await?;
            if let Some(end) = memmem::find(&this.unread, b"\r\n\r\n") {
                break end + 4;
            }
        };
        this.unread.drain(..head);
        let key = format!(r#"{{"authorization":"{API_KEY}"}}"#);
        this.stream.write_all(&frame(TEXT, key.as_bytes())).await?;
        this.answer().await?;
        Ok(this)
    }

    /// Sends `requests` in turn for `time`, each with an id, and waits for the last responses.
    pub(super) async fn run(&mut self, requests: &[String], time: Duration) -> io::Result<Outcome> {
        let start = Instant::now();
        let mut latencies = Vec::new();
        let mut sent = [start; IN_FLIGHT];
        let (mut next, mut waiting) = (0, 0);
        for slot in 0..IN_FLIGHT {
            self.send(slot, &requests[next % requests.len()]).await?;
            (next, waiting) = (next + 1, waiting + 1);
        }
        while waiting > 0 {
            let slot = self.answer().await?;
            let slot = slot.ok_or_else(|| io::Error::other("an answer without id"))?;
            latencies.push(sent[slot].elapsed());
            waiting -= 1;
            if start.elapsed() < time {
                sent[slot] = Instant::now();
                self.send(slot, &requests[next % requests.len()]).await?;
                (next, waiting) = (next + 1, waiting + 1);
            }
        }
        let time = start.elapsed();
        Ok(Outcome { time, latencies })
    }

    async fn send(&mut self, slot: usize, request: &str) -> io::Result<()> {
        let message = format!(r#"{{"id":"{slot:02}",{request}}}"#);
        let frame = frame(TEXT, message.as_bytes());
        self.stream.write_all(&frame).await
    }

    /// Returns the id of the next response, or `None` if it has no id. Fails if the response is not a success.
    async fn answer(&mut self) -> io::Result<Option<usize>> {
        loop {
            let Some((kind, payload)) = self.frame() else {
                self.receive().await?;
                continue;
            };
            match kind {
                TEXT if memmem::find(&payload, br#""success":true"#).is_some() => {
                    let id = payload.strip_prefix(br#"{"id":""#);
                    let id = id.and_then(|id| str::from_utf8(id.get(..2)?).ok());
                    return Ok(id.and_then(|id| id.parse().ok()));
                }
                PING => self.stream.write_all(&frame(PONG, &payload)).await?,
                _ => return Err(io::Error::other(String::from_utf8_lossy(&payload))),
            }
        }
    }

    fn frame(&mut self) -> Option<(u8, Vec<u8>)> {
        let (kind, rest) = self.unread.split_first()?;
        let (length, rest) = rest.split_first()?;
        let (length, rest) = match length {
            126 => {
                let (length, rest) = rest.split_first_chunk()?;
                (usize::from(u16::from_be_bytes(*length)), rest)
            }
            127 => {
                let (length, rest) = rest.split_first_chunk()?;
                (u64::from_be_bytes(*length) as usize, rest)
            }
            length => (usize::from(*length), rest),
        };
        let (kind, payload) = (*kind, rest.get(..length)?.to_vec());
        let end = self.unread.len() - rest.len() + length;
        self.unread.drain(..end);
        Some((kind, payload))
    }

    async fn receive(&mut self) -> io::Result<()> {
        match self.stream.read_buf(&mut self.unread).await? {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}

/// Encodes a client's frame (RFC 6455, section 5.2), with a mask of zeros.
fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![kind];
    match payload.len() {
        length @ ..126 => frame.push(0x80 | length as u8),
        length => {
            frame.push(0x80 | 126);
            frame.extend((length as u16).to_be_bytes());
        }
    }
    frame.extend([0; 4]);
    frame.extend_from_slice(payload);
    frame
}
