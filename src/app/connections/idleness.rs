//! Limits how long the server waits for a client.

use std::io;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::Instant;

use threadkeep_http::ConnectionState;
use threadkeep_store::Alarm;

/// How long the head of a request may take, from its first byte on.
pub(super) const HEAD: Duration = Duration::from_secs(5);

/// Watches a connection while the server waits for its client.
///
/// Between requests, actix does this too, but not if part of a head arrived together with the
/// previous request.
#[derive(Debug)]
pub(super) struct Idleness {
    connection_state: ConnectionState,
    keep_alive: Duration,
    waiting: Option<Waiting>,
    alarm: Alarm,
}

/// The reasons to wait for a client.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    /// The number of earlier requests.
    requests: u64,
    has_begun: bool,
    since: Instant,
}

impl Idleness {
    pub(super) fn new(connection_state: ConnectionState, keep_alive: Duration) -> Self {
        Self {
            connection_state,
            keep_alive,
            waiting: None,
            alarm: Alarm::default(),
        }
    }

    pub(super) fn connection_state(&self) -> ConnectionState {
        self.connection_state.clone()
    }

    /// Whether the server waits for bytes of the client.
    pub(super) fn wants_bytes(&self) -> bool {
        self.connection_state.wants_bytes()
    }

    /// Whether the server waits for a head.
    pub(super) fn wants_head(&self) -> bool {
        self.connection_state.of_client().is_some()
    }

    /// Whether the last request was given up before it had an answer.
    pub(super) fn is_abandoned(&self) -> bool {
        self.connection_state.is_abandoned()
    }

    /// Notes that bytes have arrived.
    pub(super) fn heard(&mut self) {
        self.wait(true);
    }

    /// Notes that the client has received only a part of its answer: its time starts again.
    pub(super) fn restart(&mut self) {
        self.waiting = None;
    }

    /// Notes that nothing has arrived.
    ///
    /// # Errors
    /// If the client was silent for too long.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.wait(false);
        let Some(waiting) = self.waiting else {
            return Poll::Pending;
        };
        let end = waiting.since + self.time_limit(&waiting);
        let is_over = self.alarm.poll(cx, end);
        is_over.map(|()| Err(io::ErrorKind::TimedOut.into()))
    }

    fn time_limit(&self, waiting: &Waiting) -> Duration {
        match waiting.has_begun {
            true => HEAD,
            // actix answers 408 to a first head that does not come
            false if waiting.requests == 0 => self.keep_alive + HEAD,
            false => self.keep_alive.max(HEAD),
        }
    }

    fn wait(&mut self, has_begun: bool) {
        let Some(requests) = self.connection_state.of_client() else {
            self.waiting = None;
            return;
        };
        let is_known = self.waiting.is_some_and(|waiting| {
            waiting.requests == requests && (waiting.has_begun || !has_begun)
        });
        if !is_known {
            self.waiting = Some(Waiting {
                requests,
                has_begun,
                since: Instant::now(),
            });
        }
    }
}
