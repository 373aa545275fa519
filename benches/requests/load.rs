//! Load by a fixed number of connections, each of which waits for an answer before it asks again.

use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;

use super::connection::Connection;

const CONNECTIONS: usize = 32;

/// Open connections, and the requests that they send in turn.
pub(super) struct Load<'a> {
    connections: Vec<Connection>,
    requests: &'a [Vec<u8>],
    next: Cell<usize>,
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
        let opening = (0..CONNECTIONS).map(|_| Connection::open(address));
        Ok(Self {
            connections: try_join_all(opening).await?,
            requests,
            next: Cell::new(0),
        })
    }

    /// Sends requests for that time, and waits for the last answers.
    pub(super) async fn run(&mut self, time: Duration) -> io::Result<Outcome> {
        let start = Instant::now();
        let (requests, next) = (self.requests, &self.next);
        let running = self.connections.iter_mut().map(|connection| async move {
            let mut latencies = Vec::new();
            loop {
                let sent = Instant::now();
                if sent - start >= time {
                    return Ok::<_, io::Error>(latencies);
                }
                let place = next.replace(next.get() + 1) % requests.len();
                connection.exchange(&requests[place]).await?;
                latencies.push(sent.elapsed());
            }
        });
        let latencies = try_join_all(running).await?.concat();
        let time = start.elapsed();
        Ok(Outcome { time, latencies })
    }
}
