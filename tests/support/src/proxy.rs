use std::future::pending;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy, sink};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::sync::watch;

/// Forwards connections to another address until the proxy is dropped.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    control: watch::Sender<Control>,
    blocked: Arc<Mutex<Vec<u8>>>,
    accepted: Arc<AtomicU64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Open,
    Refusing,
    /// Keeps connections open and reads all bytes, but forwards none.
    Hanging,
    /// Keeps connections open, but discards the bytes from both sides. A connection that has lost bytes never recovers,
    /// as if the network dropped packets for longer than TCP resends them.
    Losing,
}

#[derive(Debug, Clone, Copy)]
struct Control {
    mode: Mode,
    cuts: u64,
}

impl Proxy {
    /// Starts a proxy for `target` on its own thread, because a test may block while it waits for a server to start.
    pub fn start(target: SocketAddr) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let control = watch::Sender::new(Control {
            mode: Mode::Open,
            cuts: 0,
        });
        let link = Link {
            target,
            control: control.subscribe(),
            blocked: Arc::default(),
            accepted: Arc::default(),
            is_lost: Arc::default(),
        };
        let (blocked, accepted) = (Arc::clone(&link.blocked), Arc::clone(&link.accepted));
        thread::spawn(move || link.run(listener));
        Self {
            address,
            control,
            blocked,
            accepted,
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns whether the proxy, in [`Mode::Hanging`], holds back `text` from a client.
    pub fn is_holding(&self, text: &str) -> bool {
        self.count_held(text) > 0
    }

    pub fn count_held(&self, text: &str) -> usize {
        let blocked = self.blocked.lock().unwrap_or_else(PoisonError::into_inner);
        memchr::memmem::find_iter(&blocked, text.as_bytes()).count()
    }

    pub fn accepted(&self) -> u64 {
        self.accepted.load(Ordering::Relaxed)
    }

    pub fn set(&self, mode: Mode) {
        self.control.send_modify(|control| control.mode = mode);
    }

    /// Closes all open connections, even in the middle of a message. The proxy still accepts new connections.
    pub fn cut(&self) {
        self.control.send_modify(|control| control.cuts += 1);
    }
}

#[derive(Debug, Clone)]
struct Link {
    target: SocketAddr,
    control: watch::Receiver<Control>,
    blocked: Arc<Mutex<Vec<u8>>>,
    accepted: Arc<AtomicU64>,
    is_lost: Arc<AtomicBool>,
}

impl Link {
    /// Runs until the proxy is dropped. Then the connections close, because the runtime is dropped.
    fn run(self, listener: std::net::TcpListener) {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let mut control = self.control.clone();
        runtime.block_on(async {
            listener.set_nonblocking(true).unwrap();
            let listener = TcpListener::from_std(listener).unwrap();
            tokio::select! {
                () = self.accept(listener) => {}
                _ = control.wait_for(|_| false) => {}
            }
        });
    }

    async fn accept(self, listener: TcpListener) {
        while let Ok((client, _)) = listener.accept().await {
            self.accepted.fetch_add(1, Ordering::Relaxed);
            if self.control.borrow().mode != Mode::Refusing {
                tokio::spawn(self.clone().serve(client));
            }
        }
    }

    async fn serve(mut self, mut client: TcpStream) {
        let cuts = self.control.borrow().cuts;
        self.is_lost = Arc::default();
        if self.control.borrow().mode == Mode::Losing {
            let _ = copy(&mut client, &mut sink()).await;
            return;
        }
        let Ok(server) = TcpStream::connect(self.target).await else {
            return;
        };
        // disable Nagle's algorithm, which delays part of an answer until the previous part is acknowledged
        for side in [&client, &server] {
            if side.set_nodelay(true).is_err() {
                return;
            }
        }
        let (from_client, to_client) = client.into_split();
        let (from_server, to_server) = server.into_split();
        let up = self.clone().pump(from_client, to_server);
        let down = self.clone().pump(from_server, to_client);
        tokio::select! {
            () = up => {}
            () = down => {}
            _ = self.control.wait_for(|control| control.cuts > cuts) => {}
        }
    }

    async fn pump(mut self, mut from: OwnedReadHalf, mut to: OwnedWriteHalf) {
        let mut buffer = vec![0; 64 * 1024];
        let mut held = Vec::new();
        let mut recorded = 0;
        loop {
            tokio::select! {
                read = from.read(&mut buffer) => match read {
                    Ok(count @ 1..) => held.extend_from_slice(&buffer[..count]),
                    // the other side is not closed either
                    _ if self.is_lost.load(Ordering::Relaxed) => pending().await,
                    _ => return,
                },
                changed = self.control.changed(), if !held.is_empty() => {
                    if changed.is_err() {
                        return;
                    }
                }
            }
            if self.control.borrow().mode == Mode::Losing && !held.is_empty() {
                self.is_lost.store(true, Ordering::Relaxed);
            }
            if self.is_lost.load(Ordering::Relaxed) {
                held.clear();
            } else if self.control.borrow().mode == Mode::Hanging {
                let blocked = self.blocked.lock();
                let mut blocked = blocked.unwrap_or_else(PoisonError::into_inner);
                blocked.extend_from_slice(&held[recorded..]);
                recorded = held.len();
            } else if to.write_all(&held).await.is_err() {
                return;
            } else {
                held.clear();
                recorded = 0;
            }
        }
    }
}
