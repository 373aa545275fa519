//! Load from a fixed number of connections. Each connection waits for a response before it sends the next request.

use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;

use super::connection::Connection;

pub(super) const CONNECTIONS: usize = 32;

pub(super) trait Requests {
    fn nth(&self, n: usize) -> &[u8];
}

impl Requests for [Vec<u8>] {
    fn nth(&self, n: usize) -> &[u8] {
        &self[n % self.len()]
    }
}

pub(super) struct Load<'a, R: ?Sized = [Vec<u8>]> {
    pub(super) connections: Vec<Connection>,
    pub(super) requests: &'a R,
    pub(super) next: Cell<usize>,
}

#[derive(Default)]
pub(super) struct Outcome {
    /// The actual duration.
    pub(super) time: Duration,
    pub(super) latencies: Vec<Duration>,
}

impl<'a> Load<'a> {
    pub(super) async fn open(address: SocketAddr, requests: &'a [Vec<u8>]) -> io::Result<Self> {
        Self::to(&[address], requests).await
    }
}

impl<'a, R: Requests + ?Sized> Load<'a, R> {
    pub(super) async fn to(addresses: &[SocketAddr], requests: &'a R) -> io::Result<Self> {
        let count = CONNECTIONS * addresses.len();
        let each = addresses.iter().cycle().take(count);
        let opening = each.map(|&address| Connection::open(address));
        Ok(Self {
            connections: try_join_all(opening).await?,
            requests,
            next: Cell::new(0),
        })
    }

    pub(super) async fn run(&mut self, time: Duration) -> io::Result<Outcome> {
        let requests = self.requests;
        let ask = async |connection: &mut Connection, n| {
            connection.exchange(requests.nth(n)).await.map(drop)
        };
        run_on_all(&mut self.connections, &self.next, time, ask).await
    }
}

/// Calls `ask` repeatedly on each connection for `time`, and waits for the last responses. Passes each call the number
/// of its request. Numbers start at `next`.
pub(super) async fn run_on_all<C>(
    connections: &mut [C],
    next: &Cell<usize>,
    time: Duration,
    ask: impl AsyncFn(&mut C, usize) -> io::Result<()>,
) -> io::Result<Outcome> {
    let (start, ask) = (Instant::now(), &ask);
    let running = connections.iter_mut().map(|connection| async move {
        let mut latencies = Vec::new();
        loop {
            let sent = Instant::now();
            if sent - start >= time {
                return Ok::<_, io::Error>(latencies);
            }
            ask(connection, next.replace(next.get() + 1)).await?;
            latencies.push(sent.elapsed());
        }
    });
    let latencies = try_join_all(running).await?.concat();
    let time = start.elapsed();
    Ok(Outcome { time, latencies })
}
