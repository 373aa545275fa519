//! A TCP proxy that fails on demand.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::AbortHandle;

/// Passes connections on to another address, as long as it lives.
#[derive(Debug)]
pub(crate) struct Proxy {
    address: SocketAddr,
    control: Arc<watch::Sender<Control>>,
    accepting: AbortHandle,
}

/// What the proxy does with bytes and connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Passes everything on.
    Open,
    /// Closes new connections at once.
    Refusing,
    /// Keeps connections open and passes nothing on.
    Hanging,
}

#[derive(Debug, Clone, Copy)]
struct Control {
    mode: Mode,
    /// How often all connections were cut.
    cuts: u64,
}

impl Proxy {
    /// A proxy for that address, on a port of its own.
    pub(crate) async fn start(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let control = Arc::new(watch::Sender::new(Control {
            mode: Mode::Open,
            cuts: 0,
        }));
        let accepting = tokio::spawn(accept(listener, target, Arc::clone(&control)));
        Self {
            address,
            control,
            accepting: accepting.abort_handle(),
        }
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Changes what it does from now on.
    pub(crate) fn set(&self, mode: Mode) {
        self.control.send_modify(|control| control.mode = mode);
    }

    /// Closes all connections in the midst of whatever they carry; new ones are served.
    pub(crate) fn cut(&self) {
        self.control.send_modify(|control| control.cuts += 1);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
        self.cut();
    }
}

async fn accept(listener: TcpListener, target: SocketAddr, control: Arc<watch::Sender<Control>>) {
    while let Ok((client, _)) = listener.accept().await {
        let control = control.subscribe();
        if control.borrow().mode != Mode::Refusing {
            tokio::spawn(serve(client, target, control));
        }
    }
}

/// Carries one connection until either side or a cut ends it.
async fn serve(client: TcpStream, target: SocketAddr, mut control: watch::Receiver<Control>) {
    let cuts = control.borrow_and_update().cuts;
    let Ok(server) = TcpStream::connect(target).await else {
        return;
    };
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let up = pump(from_client, to_server, control.clone());
    let down = pump(from_server, to_client, control.clone());
    tokio::select! {
        () = up => {}
        () = down => {}
        _ = control.wait_for(|control| control.cuts > cuts) => {}
    }
}

async fn pump(
    mut from: impl AsyncReadExt + Unpin,
    mut to: impl AsyncWriteExt + Unpin,
    mut control: watch::Receiver<Control>,
) {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let Ok(count @ 1..) = from.read(&mut buffer).await else {
            return;
        };
        let opened = control
            .wait_for(|control| control.mode != Mode::Hanging)
            .await
            .is_ok();
        if !opened || to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}
