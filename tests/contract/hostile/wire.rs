//! A client connection that can send arbitrary bytes, and parses answers as strictly as a proxy does.

use std::fmt;
use std::net::SocketAddr;
use std::pin::pin;
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

use super::verdict::shortened;

/// Maximum time from the first byte of a request to its answer, on a busy machine.
pub(super) const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// How long a connection is reused after its last answer. Shorter than the server's keep-alive timeout.
const REUSED_FOR: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Link {
    stream: TcpStream,
    used: Instant,
    /// Bytes of the last request, to be reported if the connection ends before the next answer.
    last: Vec<u8>,
    /// Received bytes that have not been parsed as an answer.
    unread: Vec<u8>,
}

#[derive(Debug, Clone)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: Vec<u8>,
    pub(super) is_last: bool,
}

impl Answer {
    pub(super) fn is_stream(&self) -> bool {
        let types = ["text/event-stream", "application/x-ndjson"];
        let has_type = |media_type: &str| {
            self.head
                .contains(&format!("\r\ncontent-type: {media_type}"))
        };
        self.is_last && types.into_iter().any(has_type)
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Sent<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) is_end: bool,
}

#[derive(Debug)]
pub(super) enum Fault {
    Refused(std::io::Error),
    Silent {
        /// Bytes of the earlier requests on this connection. They were answered.
        before: Vec<u8>,
    },
    Cut(Vec<u8>),
    Late,
    Malformed(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(error) => write!(f, "no connection: {error}"),
            Self::Silent { before } => write!(
                f,
                "the connection ended without an answer, after {}",
                shortened(before)
            ),
            Self::Cut(read) => write!(
                f,
                "the connection ended within an answer: {}",
                read.escape_ascii()
            ),
            Self::Late => write!(f, "no whole answer within {LONGEST_WAIT:?}"),
            Self::Malformed(why) => write!(f, "the answer is not HTTP: {why}"),
        }
    }
}

impl Link {
    /// Opens a connection that is reset when it is dropped. Without resets, a million closed connections would use up
    /// the local ports.
    pub(super) async fn open(address: SocketAddr) -> Result<Self, Fault> {
        let stream = TcpStream::connect(address).await.map_err(Fault::Refused)?;
        let socket = SockRef::from(&stream);
        socket
            .set_linger(Some(Duration::ZERO))
            .map_err(Fault::Refused)?;
        socket.set_tcp_nodelay(true).map_err(Fault::Refused)?;
        let unread = Vec::new();
        let used = Instant::now();
        let last = Vec::new();
        Ok(Self {
            stream,
            used,
            last,
            unread,
        })
    }

    /// Returns whether the server is certain to accept another request on this connection.
    pub(super) fn is_fresh(&self) -> bool {
        self.used.elapsed() < REUSED_FOR
    }

    /// Sends bytes and reads the answers at the same time. Stops after an answer that closes the connection.
    /// `are_heads` has one element per request, true for `HEAD`.
    pub(super) async fn answers(
        &mut self,
        sent: Sent<'_>,
        are_heads: &[bool],
    ) -> Result<Vec<Answer>, Fault> {
        let (mut reader, mut writer) = self.stream.split();
        let unread = &mut self.unread;
        let writing = async {
            // a server that rejects a request early may stop reading
            if writer.write_all(sent.bytes).await.is_ok() && sent.is_end {
                let _ = writer.shutdown().await;
            }
            std::future::pending::<()>().await;
        };
        let reading = async {
            let mut answers = Vec::new();
            for is_head in are_heads {
                let answer = read_answer(&mut reader, unread, *is_head).await?;
                let is_last = answer.is_last;
                answers.push(answer);
                if is_last {
                    break;
                }
            }
            Ok(answers)
        };
        let answers = within(async {
            tokio::select! {
                answers = reading => answers,
                () = pin!(writing) => unreachable!("it waits for the answers"),
            }
        });
        let answers = answers.await;
        self.used = Instant::now();
        let before = std::mem::replace(&mut self.last, sent.bytes.to_vec());
        answers.map_err(|fault| match fault {
            Fault::Silent { .. } => Fault::Silent { before },
            other => other,
        })
    }

    pub(super) async fn rest(mut self) -> Result<Vec<u8>, Fault> {
        let reading = async {
            let mut rest = std::mem::take(&mut self.unread);
            // a reset connection also counts as closed
            let _ = self.stream.read_to_end(&mut rest).await;
            Ok(rest)
        };
        within(reading).await
    }

    /// Returns the next bytes, or an empty vector after the end.
    pub(super) async fn bytes(&mut self) -> Result<Vec<u8>, Fault> {
        if !self.unread.is_empty() {
            return Ok(std::mem::take(&mut self.unread));
        }
        let mut bytes = vec![0; 65_536];
        let count =
            within(async { Ok(self.stream.read(&mut bytes).await.unwrap_or_default()) }).await?;
        bytes.truncate(count);
        Ok(bytes)
    }

    pub(super) async fn send(&mut self, sent: Sent<'_>) {
        let sending = async {
            let is_sent = self.stream.write_all(sent.bytes).await.is_ok();
            if is_sent && sent.is_end {
                let _ = self.stream.shutdown().await;
            }
            Ok(())
        };
        let _ = within(sending).await;
    }
}

async fn within<T>(doing: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
    let end = Instant::now() + LONGEST_WAIT;
    timeout_at(end, doing).await.unwrap_or(Err(Fault::Late))
}

async fn read_answer(
    reader: &mut (impl tokio::io::AsyncRead + Unpin),
    unread: &mut Vec<u8>,
    is_head: bool,
) -> Result<Answer, Fault> {
    let mut is_end = false;
    loop {
        if let Some((answer, length)) = parse(unread, is_head, is_end).map_err(Fault::Malformed)? {
            unread.drain(..length);
            match answer.status {
                // an interim answer; the final answer follows
                100..=199 if answer.status != 101 => continue,
                _ => return Ok(answer),
            }
        }
        if is_end {
            return Err(match unread.is_empty() {
                true => Fault::Silent { before: Vec::new() },
                false => Fault::Cut(std::mem::take(unread)),
            });
        }
        is_end = !matches!(reader.read_buf(unread).await, Ok(count) if count > 0);
    }
}

/// Parses the first answer in `bytes`. Returns the answer and its length, or `None` if the answer is incomplete.
pub(super) fn parse(
    bytes: &[u8],
    is_head: bool,
    is_end: bool,
) -> Result<Option<(Answer, usize)>, String> {
    let Some(end) = memchr::memmem::find(bytes, b"\r\n\r\n") else {
        return Ok(None);
    };
    let head = str::from_utf8(&bytes[..end]).map_err(|error| error.to_string())?;
    let head = head.to_ascii_lowercase();
    let status = head
        .strip_prefix("http/1.1 ")
        .or_else(|| head.strip_prefix("http/1.0 "));
    let status = status.and_then(|rest| rest.get(..3)?.parse().ok());
    let status: u16 = status.ok_or_else(|| format!("no status line: {head}"))?;
    let field = |name: &str| {
        let mut lines = head.lines();
        lines
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
            .map(str::trim)
    };
    // `connection` is a list (RFC 9110, section 7.6.1), which also contains `upgrade` in a 426 response
    let mut options = field("connection").unwrap_or_default().split(',');
    let is_closing = options.any(|option| option.trim() == "close");
    let start = end + 4;
    let answer = |body: &[u8], is_last: bool, length: usize| {
        let is_last = is_last || is_closing || status == 101;
        let (head, body) = (head.clone(), body.to_vec());
        Ok(Some((
            Answer {
                status,
                head,
                body,
                is_last,
            },
            length,
        )))
    };
    if is_head || matches!(status, 100..=199 | 204 | 304) {
        return answer(b"", false, start);
    }
    if let Some(length) = field("content-length") {
        let length: usize = length.parse().map_err(|_| format!("bad length: {head}"))?;
        return match bytes.get(start..start + length) {
            Some(body) => answer(body, false, start + length),
            None => Ok(None),
        };
    }
    let media_type = field("content-type").unwrap_or_default();
    if media_type.starts_with("text/event-stream") || media_type.starts_with("application/x-ndjson")
    {
        // these streams do not end, so only the head is parsed
        return answer(b"", true, bytes.len());
    }
    if field("transfer-encoding") == Some("chunked") {
        return match unchunk(&bytes[start..])? {
            Some((body, length)) => answer(&body, false, start + length),
            None => Ok(None),
        };
    }
    // the body ends when the server closes the connection, after lingering for up to 5 s
    match is_end || is_closing {
        true => answer(&bytes[start..], true, bytes.len()),
        false => Ok(None),
    }
}

/// Parses a chunked body. Returns the decoded body and its encoded length, or `None` if the body is incomplete.
fn unchunk(bytes: &[u8]) -> Result<Option<(Vec<u8>, usize)>, String> {
    let (mut body, mut at) = (Vec::new(), 0);
    loop {
        let Some(line) = memchr::memmem::find(&bytes[at..], b"\r\n") else {
            return Ok(None);
        };
        let size = str::from_utf8(&bytes[at..at + line]).map_err(|error| error.to_string())?;
        let size = usize::from_str_radix(size, 16).map_err(|_| format!("bad chunk: {size}"))?;
        let start = at + line + 2;
        let Some(chunk) = bytes.get(start..start + size + 2) else {
            return Ok(None);
        };
        if !chunk.ends_with(b"\r\n") {
            return Err("a chunk has no end".into());
        }
        body.extend(&chunk[..size]);
        at = start + size + 2;
        if size == 0 {
            return Ok(Some((body, at)));
        }
    }
}
