//! A connection's stream.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use actix_web::rt::net::TcpStream;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use super::idleness::Idleness;
use crate::http::Turn;

/// A client for which something is waiting takes at least so much in each [`SPAN`]. It counts from
/// when the buffers of the system are full, so a stream of events that is read as it comes, however
/// little that is, is never looked at.
const LEAST_BYTES: usize = 16_384;
const SPAN: Duration = Duration::from_secs(60);

/// A stream whose client has to get on.
#[derive(Debug)]
pub(super) struct PacedStream {
    stream: TcpStream,
    idleness: Idleness,
    taking: Option<Taking>,
    span: Duration,
}

/// A client that does not take all at once.
#[derive(Debug)]
struct Taking {
    taken_bytes: usize,
    end: Pin<Box<Sleep>>,
}

impl PacedStream {
    pub(super) fn new(stream: TcpStream, idleness: Idleness) -> Self {
        Self {
            stream,
            idleness,
            taking: None,
            span: SPAN,
        }
    }

    /// Whose turn it is.
    pub(super) fn turn(&self) -> Turn {
        self.idleness.turn()
    }

    /// What comes of bytes that the system does not take for now.
    fn poll_taken(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let span = self.span;
        let taking = self.taking.get_or_insert_with(|| Taking {
            taken_bytes: 0,
            end: Box::pin(sleep(span)),
        });
        if taking.end.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        // the system tells of room only when there is much of it: the client may have taken more
        let more = SockRef::from(&self.stream).send(bytes).unwrap_or_default();
        let is_enough = taking.taken_bytes + more >= LEAST_BYTES;
        self.taking = None;
        match (is_enough, more) {
            (false, _) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            (true, 0) => self.poll_taken(cx, bytes),
            (true, more) => Poll::Ready(Ok(more)),
        }
    }
}

impl AsyncRead for PacedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = buffer.filled().len();
        match Pin::new(&mut this.stream).poll_read(cx, buffer) {
            Poll::Pending => {
                if this.taking.is_some() {
                    // it is to ask for something only when it has what it asked for
                    this.idleness.restart();
                }
                this.idleness.poll(cx)
            }
            Poll::Ready(read) => {
                if buffer.filled().len() > before {
                    this.idleness.heard();
                }
                Poll::Ready(read)
            }
        }
    }
}

impl AsyncWrite for PacedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        let written = Pin::new(&mut this.stream).poll_write(cx, bytes);
        match (&written, &mut this.taking) {
            (Poll::Pending, _) => this.poll_taken(cx, bytes),
            (Poll::Ready(Ok(taken)), Some(taking)) => {
                taking.taken_bytes += taken;
                written
            }
            _ => written,
        }
    }

    /// All that there was is with the system.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.taking = None;
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use actix_web::rt::net::TcpListener;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// A stream that waits for its client for a fifth of a second, and the client.
    async fn pair() -> (PacedStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let client = TcpStream::connect(address).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        // else the system takes megabytes before anybody waits
        SockRef::from(&stream).set_send_buffer_size(65_536).unwrap();
        SockRef::from(&client).set_recv_buffer_size(65_536).unwrap();
        let idleness = Idleness::new(Turn::default(), Duration::from_secs(75));
        let paced = PacedStream {
            span: Duration::from_millis(200),
            ..PacedStream::new(stream, idleness)
        };
        (paced, client)
    }

    #[actix_web::test]
    async fn a_client_that_takes_a_byte_now_and_then_is_given_up() {
        let (mut paced, mut client) = pair().await;
        let dripping = actix_web::rt::spawn(async move {
            while client.read_u8().await.is_ok() {
                sleep(Duration::from_millis(5)).await;
            }
        });

        let written = paced.write_all(&vec![b'x'; 4 << 20]).await;

        assert_eq!(written.unwrap_err().kind(), io::ErrorKind::TimedOut);
        // what the system holds for it would take minutes
        dripping.abort();
    }

    #[actix_web::test]
    async fn a_slow_client_that_gets_on_has_it_all() {
        let (mut paced, mut client) = pair().await;
        let reading = actix_web::rt::spawn(async move {
            let (mut all, mut part) = (0, [0; 32_768]);
            loop {
                match client.read(&mut part).await.unwrap() {
                    0 => return all,
                    count => all += count,
                }
                sleep(Duration::from_millis(20)).await;
            }
        });

        let bytes = vec![b'x'; 2 << 20];
        paced.write_all(&bytes).await.unwrap();
        paced.shutdown().await.unwrap();

        assert_eq!(reading.await.unwrap(), bytes.len());
    }
}
