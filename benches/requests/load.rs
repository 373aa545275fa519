//! Load by a fixed number of connections, each of which waits for an answer before it asks again.

use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;

use super::connection::Connection;

/// Connections to each server.
pub(super) const CONNECTIONS: usize = 32;

/// Requests without end.
pub(super) trait Requests {
    /// The request of that number.
    fn nth(&self, n: usize) -> &[u8];
}

/// All in turn.
impl Requests for [Vec<u8>] {
    fn nth(&self, n: usize) -> &[u8] {
        &self[n % self.len()]
    }
}

/// Open connections, and the requests that they send.
pub(super) struct Load<'a, R: ?Sized = [Vec<u8>]> {
    pub(super) connections: Vec<Connection>,
    pub(super) requests: &'a R,
    /// The number of the next request.
    pub(super) next: Cell<usize>,
}

/// The results.
#[derive(Default)]
pub(super) struct Outcome {
    /// How long it really took.
    pub(super) time: Duration,
    /// How long each request took.
    pub(super) latencies: Vec<Duration>,
}

impl<'a> Load<'a> {
    pub(super) async fn open(address: SocketAddr, requests: &'a [Vec<u8>]) -> io::Result<Self> {
        Self::to(&[address], requests).await
    }
}

impl<'a, R: Requests + ?Sized> Load<'a, R> {
    /// Load for several servers. Each connection takes the next request.
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

    /// Sends requests for that time, and waits for the last answers.
    pub(super) async fn run(&mut self, time: Duration) -> io::Result<Outcome> {
        let requests = self.requests;
        let ask = async |connection: &mut Connection, n| {
            connection.exchange(requests.nth(n)).await.map(drop)
        };
        by_all(&mut self.connections, &self.next, time, ask).await
    }
}

/// Lets each connection ask again and again for that time, and waits for the last answers. `ask` gets the number of the
/// request, counted on from `next`.
pub(super) async fn by_all<C>(
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
