//! A proxy to Redis that cuts all connections at a chosen command. To Redis, the client then seems to have crashed at
//! this command.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy, sink};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::sync::watch;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    Before,
    /// Redis runs the command, but the client does not get the reply.
    After,
}

/// Selects the commands to count. All other commands, such as those of background work, are forwarded until the cut.
#[derive(Debug)]
pub struct Counted {
    pub names: &'static [&'static str],
    /// A command is counted only if it contains one of these strings.
    pub about: Vec<String>,
}

/// Forwards connections to Redis until a chosen command arrives, and then stops forwarding on all connections.
///
/// A crash test repeats a call with `passed` = 0, 1, 2, and so on, until the call completes without a cut.
#[derive(Debug)]
pub struct CuttingProxy {
    address: SocketAddr,
    plan: Arc<Plan>,
}

#[derive(Debug)]
struct Plan {
    target: SocketAddr,
    counted: Counted,
    /// Number of counted commands that remain, including the chosen command.
    remaining: AtomicU64,
    cut: Cut,
    stage: watch::Sender<Stage>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
enum Stage {
    Open,
    Chosen,
    /// Redis has executed the chosen command, or will never receive it.
    Cut,
}

impl CuttingProxy {
    /// Starts a proxy on its own OS thread, which ends when the proxy is dropped. Does not cut before [`Self::arm`].
    pub fn start(target: SocketAddr, counted: Counted, cut: Cut) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let plan = Arc::new(Plan {
            target,
            counted,
            remaining: AtomicU64::new(u64::MAX),
            cut,
            stage: watch::Sender::new(Stage::Open),
        });
        let shared = Arc::clone(&plan);
        thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(shared.accept(listener));
        });
        Self { address, plan }
    }

    pub fn url(&self) -> String {
        format!("redis://{}", self.address)
    }

    /// Forwards the next `passed` counted commands, and cuts at the following counted command.
    pub fn arm(&self, passed: u64) {
        self.plan.remaining.store(passed + 1, Ordering::SeqCst);
    }

    /// Returns whether the chosen command has arrived. If so, first waits until the command's effects are complete.
    pub async fn was_cut(&self) -> bool {
        let mut stage = self.plan.stage.subscribe();
        if *stage.borrow() == Stage::Open {
            return false;
        }
        stage.wait_for(|stage| *stage == Stage::Cut).await.unwrap();
        true
    }
}

impl Counted {
    fn has(&self, name: &str, command: &[u8]) -> bool {
        let mut about = self.about.iter();
        self.names.contains(&name)
            && about.any(|text| memchr::memmem::find(command, text.as_bytes()).is_some())
    }
}

impl Drop for CuttingProxy {
    fn drop(&mut self) {
        self.plan.stage.send_replace(Stage::Cut);
    }
}

impl Plan {
    async fn accept(self: Arc<Self>, listener: std::net::TcpListener) {
        let listener = TcpListener::from_std(listener).unwrap();
        let mut stage = self.stage.subscribe();
        loop {
            tokio::select! {
                accepted = listener.accept() => {
                    let (client, _) = accepted.unwrap();
                    tokio::spawn(Arc::clone(&self).serve(client));
                }
                _ = stage.wait_for(|stage| *stage >= Stage::Chosen) => break,
            }
        }
        drop(listener);
        // the connections close when the runtime is dropped
        let _ = stage.wait_for(|stage| *stage == Stage::Cut).await;
    }

    async fn serve(self: Arc<Self>, client: TcpStream) {
        let server = TcpStream::connect(self.target).await.unwrap();
        let (from_client, mut to_client) = client.into_split();
        let (mut from_server, mut to_server) = server.into_split();
        let mut stage = self.stage.subscribe();
        let is_chosen = tokio::select! {
            is_chosen = self.pass(from_client, &mut to_server) => is_chosen,
            _ = copy(&mut from_server, &mut to_client) => false,
            _ = stage.wait_for(|stage| *stage >= Stage::Chosen) => false,
        };
        if !is_chosen {
            return;
        }
        drop(to_client);
        if self.cut == Cut::After {
            // when Redis closes its side, it has executed all earlier commands
            let _ = to_server.shutdown().await;
            let _ = copy(&mut from_server, &mut sink()).await;
        }
        self.stage.send_replace(Stage::Cut);
    }

    /// Forwards commands. Returns true if the chosen command arrived, and false if the connection ended first.
    async fn pass(&self, mut from: OwnedReadHalf, to: &mut OwnedWriteHalf) -> bool {
        let mut buffer = Vec::new();
        loop {
            while let Some((end, name)) = first_command(&buffer) {
                let is_counted = self.counted.has(&name, &buffer[..end]);
                let remaining = if is_counted {
                    self.count_down()
                } else {
                    u64::MAX
                };
                let is_chosen = remaining == 1;
                if remaining == 0 {
                    return false;
                }
                let is_passed = !is_chosen || self.cut == Cut::After;
                if is_passed && to.write_all(&buffer[..end]).await.is_err() {
                    return false;
                }
                if is_chosen {
                    self.stage.send_replace(Stage::Chosen);
                    return true;
                }
                buffer.drain(..end);
            }
            match from.read_buf(&mut buffer).await {
                Ok(1..) => {}
                _ => return false,
            }
        }
    }

    /// Decrements `remaining`, but not below 0. Returns the previous value.
    fn count_down(&self) -> u64 {
        let decrement = |remaining: u64| Some(remaining.saturating_sub(1));
        let previous = self
            .remaining
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, decrement);
        previous.unwrap_or_default()
    }
}

pub fn first_command(bytes: &[u8]) -> Option<(usize, String)> {
    let (mut at, count) = number(bytes, 0)?;
    let mut name = None;
    for _ in 0..count {
        let (start, length) = number(bytes, at)?;
        let argument = bytes.get(start..start + length)?;
        name.get_or_insert_with(|| String::from_utf8_lossy(argument).to_uppercase());
        at = start + length + 2;
    }
    (bytes.len() >= at).then_some((at, name?))
}

pub fn number(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let line = bytes.get(at..)?;
    let end = memchr::memchr(b'\n', line)?;
    let digits = str::from_utf8(&line[1..end - 1]).unwrap();
    Some((at + end + 1, digits.parse().unwrap()))
}
