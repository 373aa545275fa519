use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use std::{io, mem};

use actix_web::rt::net::TcpStream;
use actix_web::rt::spawn;
use tokio::io::{AsyncRead as _, AsyncWrite as _, ReadBuf};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

/// Maximum number of bytes that the outbox holds back per connection. Larger writes are sent immediately.
const HELD_BYTES_MAX: usize = 16_384;
/// Time limit for the remaining writes and reads on a closing connection.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// When the outbox holds back this many bytes for all connections together, it sends them immediately. Otherwise, a
/// client might have to wait until responses for a hundred other clients are ready.
const BATCH_BYTES_MAX: usize = 65_536;

/// Maximum number of closing connections that a worker still reads from. They do not count towards the worker's
/// connection limit, so without this maximum, clients could keep any number of them open.
const LINGERING_MAX: usize = 64;

/// Holds back small writes to a worker's connections until all other ready tasks have run.
///
/// The held writes are then sent as a batch, which wakes the reader, such as a proxy on the same machine, only once.
/// Without batches, each response would wake the reader, and the reader would take CPU time from the server to send
/// more requests.
#[derive(Clone, Default)]
pub(super) struct Outbox(Rc<Shared>);

#[derive(Default)]
struct Shared {
    held: RefCell<Held>,
    is_held: Notify,
}

#[derive(Default)]
struct Held {
    bytes: Vec<u8>,
    parts: Vec<(Rc<Outlet>, usize)>,
    /// Closing connections that may have bytes to write.
    closing: Vec<Rc<Outlet>>,
}

pub(super) struct Outlet {
    pub(super) stream: RefCell<TcpStream>,
    held: Cell<usize>,
    /// Bytes that the system did not accept.
    rest: RefCell<Vec<u8>>,
    /// The task that writes `rest`.
    writer: RefCell<Option<Waker>>,
    /// The end of the keep-alive time, if the connection is parked.
    parked: Cell<Option<Instant>>,
}

impl Outbox {
    pub(super) fn start() -> Self {
        let outbox = Self::default();
        let sending = outbox.clone();
        let lingering = Arc::new(Semaphore::new(LINGERING_MAX));
        spawn(async move {
            loop {
                sending.0.is_held.notified().await;
                sending.send();
                let closing = mem::take(&mut sending.0.held.borrow_mut().closing);
                for outlet in closing.into_iter().filter(|outlet| outlet.has_rest()) {
                    let permit = Arc::clone(&lingering).try_acquire_owned().ok();
                    spawn(timeout(CLOSE_TIMEOUT, outlet.end(permit)));
                }
            }
        });
        outbox
    }

    /// Holds back `bytes` and returns true, or returns false if the connection would then hold over [`HELD_BYTES_MAX`].
    pub(super) fn hold(&self, outlet: &Rc<Outlet>, cx: &mut Context<'_>, bytes: &[u8]) -> bool {
        let held_bytes = outlet.held.get() + bytes.len();
        if held_bytes > HELD_BYTES_MAX {
            return false;
        }
        outlet.held.set(held_bytes);
        match &mut *outlet.writer.borrow_mut() {
            Some(writer) => writer.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        let mut held = self.0.held.borrow_mut();
        if held.parts.is_empty() {
            self.0.is_held.notify_one();
        }
        held.bytes.extend_from_slice(bytes);
        let end = held.bytes.len();
        held.parts.push((Rc::clone(outlet), end));
        if end >= BATCH_BYTES_MAX {
            drop(held);
            self.send();
        }
        true
    }

    /// Takes over a connection that no longer has a writer.
    pub(super) fn adopt(&self, outlet: &Rc<Outlet>) {
        if outlet.is_held() || outlet.has_rest() {
            self.0.held.borrow_mut().closing.push(Rc::clone(outlet));
            self.0.is_held.notify_one();
        }
    }

    pub(super) fn send(&self) {
        let mut held = mem::take(&mut *self.0.held.borrow_mut());
        let mut start = 0;
        for (outlet, end) in held.parts.drain(..) {
            outlet.send(&held.bytes[start..end]);
            start = end;
        }
        held.bytes.clear();
        *self.0.held.borrow_mut() = held;
    }
}

impl Outlet {
    pub(super) fn new(stream: TcpStream) -> Rc<Self> {
        Rc::new(Self {
            stream: RefCell::new(stream),
            held: Cell::new(0),
            rest: RefCell::default(),
            writer: RefCell::default(),
            parked: Cell::default(),
        })
    }

    /// Marks the connection as parked until `end`. Its stream then ends, and its next request gets a new stream.
    pub(super) fn park(&self, end: Instant) {
        self.parked.set(Some(end));
    }

    pub(super) fn is_parked(&self) -> bool {
        self.parked.get().is_some()
    }

    /// Resumes a parked connection. Returns the end of its keep-alive time, or `None` if the connection was not parked.
    pub(super) fn unpark(&self) -> Option<Instant> {
        self.parked.take()
    }

    /// Becomes ready with true when the client has sent bytes, which stay unread, and with false when the client has closed
    /// or reset the connection.
    pub(super) fn poll_bytes(&self, cx: &mut Context<'_>) -> Poll<bool> {
        let mut byte = [0];
        let stream = self.stream.borrow();
        let peeked = stream.poll_peek(cx, &mut ReadBuf::new(&mut byte));
        peeked.map(|peeked| peeked.is_ok_and(|count| count > 0))
    }

    pub(super) fn is_held(&self) -> bool {
        self.held.get() > 0
    }

    /// Removes and returns the unsent bytes, which the caller must send before any other bytes.
    pub(super) fn take_rest(&self) -> Vec<u8> {
        self.rest.take()
    }

    pub(super) fn put_rest(&self, rest: Vec<u8>) {
        self.rest.replace(rest);
    }

    pub(super) fn has_rest(&self) -> bool {
        !self.rest.borrow().is_empty()
    }

    /// Writes the unsent bytes, then reads until the client closes the connection. Without `permit`, only writes.
    ///
    /// If the server closed a connection with unread bytes, the client would get a reset and could lose its response.
    async fn end(self: Rc<Self>, permit: Option<OwnedSemaphorePermit>) -> io::Result<()> {
        self.write_rest().await?;
        let Some(_permit) = permit else {
            return Ok(());
        };
        let stream = &self.stream;
        poll_fn(|cx| Pin::new(&mut *stream.borrow_mut()).poll_shutdown(cx)).await?;
        let mut memory = [0; 1_024];
        loop {
            let mut buffer = ReadBuf::new(&mut memory);
            poll_fn(|cx| Pin::new(&mut *stream.borrow_mut()).poll_read(cx, &mut buffer)).await?;
            if buffer.filled().is_empty() {
                return Ok(());
            }
        }
    }

    async fn write_rest(&self) -> io::Result<()> {
        let rest = self.take_rest();
        let mut written = 0;
        while written < rest.len() {
            let writing = poll_fn(|cx| {
                let mut stream = self.stream.borrow_mut();
                Pin::new(&mut *stream).poll_write(cx, &rest[written..])
            });
            match writing.await? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                count => written += count,
            }
        }
        Ok(())
    }

    fn send(&self, bytes: &[u8]) {
        self.held.set(self.held.get() - bytes.len());
        let mut rest = self.rest.borrow_mut();
        let sent = match rest.is_empty() {
            true => self.stream.borrow().try_write(bytes),
            false => Ok(0),
        };
        // the writer gets the error too, and can report it
        let sent = sent.unwrap_or_default();
        if sent < bytes.len() {
            rest.extend_from_slice(&bytes[sent..]);
            if let Some(writer) = &*self.writer.borrow() {
                writer.wake_by_ref();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use actix_web::rt::net::TcpListener;
    use socket2::SockRef;
    use tokio::io::AsyncReadExt;
    use tokio::task::yield_now;

    use super::*;

    async fn pair() -> (Rc<Outlet>, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let client = TcpStream::connect(address).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        stream.writable().await.unwrap();
        (Outlet::new(stream), client)
    }

    fn hold(outbox: &Outbox, outlet: &Rc<Outlet>, bytes: &[u8]) -> bool {
        outbox.hold(outlet, &mut Context::from_waker(Waker::noop()), bytes)
    }

    fn has_received(client: &TcpStream) -> bool {
        client.try_read(&mut [0; 1]).is_ok()
    }

    #[actix_web::test]
    async fn responses_are_sent_together_and_in_order_after_ready_tasks() {
        let outbox = Outbox::start();
        let ((first, mut first_client), (second, mut second_client)) = (pair().await, pair().await);
        let late = {
            let (outbox, second) = (outbox.clone(), Rc::clone(&second));
            spawn(async move { assert!(hold(&outbox, &second, b"b")) })
        };

        assert!(hold(&outbox, &first, b"a"));
        assert!(hold(&outbox, &first, b"c"));
        assert!(!has_received(&first_client));
        late.await.unwrap();
        let mut both = [0; 2];
        first_client.read_exact(&mut both).await.unwrap();

        assert_eq!(both, *b"ac");
        assert_eq!(second_client.read_u8().await.unwrap(), b'b');
        assert!(!first.is_held() && !second.is_held());
    }

    #[actix_web::test]
    async fn held_bytes_are_sent_after_the_outlet_is_dropped() {
        let outbox = Outbox::start();
        let (outlet, mut client) = pair().await;

        assert!(hold(&outbox, &outlet, b"bye"));
        drop(outlet);

        let mut text = String::new();
        client.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "bye");
    }

    #[actix_web::test]
    async fn writes_over_the_limit_are_not_held() {
        let outbox = Outbox::start();
        let (outlet, mut client) = pair().await;
        let large = vec![b'x'; HELD_BYTES_MAX];

        assert!(!hold(&outbox, &outlet, &[&large[..], b"x"].concat()));
        assert!(hold(&outbox, &outlet, &large));
        assert!(!hold(&outbox, &outlet, b"x"));
        client
            .read_exact(&mut vec![0; HELD_BYTES_MAX])
            .await
            .unwrap();

        assert!(hold(&outbox, &outlet, b"x"));
    }

    #[actix_web::test]
    async fn a_full_outbox_sends_immediately() {
        let outbox = Outbox::default();
        let (first, client) = pair().await;
        assert!(hold(&outbox, &first, b"a"));
        for _ in 0..BATCH_BYTES_MAX / HELD_BYTES_MAX - 1 {
            assert!(hold(&outbox, &pair().await.0, &[b'x'; HELD_BYTES_MAX]));
        }
        assert!(first.is_held());

        assert!(hold(&outbox, &pair().await.0, &[b'x'; HELD_BYTES_MAX]));

        assert!(!first.is_held());
        client.readable().await.unwrap();
        assert!(has_received(&client));
    }

    #[actix_web::test]
    async fn unsent_bytes_remain_for_the_writer() {
        let outbox = Outbox::start();
        let (outlet, client) = pair().await;
        SockRef::from(&*outlet.stream.borrow())
            .set_send_buffer_size(4_096)
            .unwrap();
        let part = [b'x'; 4_096];
        let mut held_bytes = 0;
        let rest = loop {
            assert!(hold(&outbox, &outlet, &part));
            held_bytes += part.len();
            yield_now().await;
            let rest = outlet.take_rest();
            if !rest.is_empty() {
                break rest;
            }
        };

        outlet.put_rest(rest);
        assert!(hold(&outbox, &outlet, b"last"));
        yield_now().await;

        // later writes do not overtake the held bytes
        let rest = outlet.take_rest();
        assert!(rest.ends_with(b"xlast") && !outlet.is_held());
        let mut received = 0;
        while let Ok(count) = client.try_read(&mut [0; 65_536]) {
            received += count;
            client.readable().await.unwrap();
            if received + rest.len() == held_bytes + 4 {
                return;
            }
        }
        panic!("bytes were lost");
    }
}
