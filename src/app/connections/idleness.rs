use std::io;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::Instant;

use threadkeep_http::ConnectionState;
use threadkeep_store::Alarm;

/// Maximum time to receive a request head, starting with its first byte.
pub(super) const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// Time without requests after which a connection is parked.
const PARK_AFTER: Duration = Duration::from_secs(2);

/// Limits the time that the server waits for a client to send bytes.
///
/// actix also limits the time between requests, but does not apply this limit if the first bytes of a request arrive
/// together with the previous request.
#[derive(Debug)]
pub(super) struct Idleness {
    connection_state: ConnectionState,
    keep_alive: Duration,
    waiting: Option<Waiting>,
    alarm: Alarm,
}

#[derive(Debug, Clone, Copy)]
struct Waiting {
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

    pub(super) fn wants_bytes(&self) -> bool {
        self.connection_state.wants_bytes()
    }

    pub(super) fn wants_head(&self) -> bool {
        self.connection_state.idle_request_count().is_some()
    }

    /// Returns whether the last request was abandoned before it was answered.
    pub(super) fn is_abandoned(&self) -> bool {
        self.connection_state.is_abandoned()
    }

    pub(super) fn bytes_received(&mut self) {
        self.update_timer(true);
    }

    /// Restarts the timer. A client that has received only part of its response may not send its next request yet.
    pub(super) fn restart(&mut self) {
        self.waiting = None;
    }

    /// Polls the timer. When the connection has been idle long enough to be parked, returns the end of the keep-alive
    /// time, if `may_park` is true. Fails when the client has been silent for too long.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        may_park: bool,
    ) -> Poll<io::Result<Instant>> {
        self.update_timer(false);
        let Some(waiting) = self.waiting else {
            return Poll::Pending;
        };
        let end = waiting.since + self.time_limit(&waiting);
        let park = waiting.since + PARK_AFTER;
        if may_park && waiting.requests > 0 && !waiting.has_begun && park < end {
            return self.alarm.poll(cx, park).map(|()| Ok(end));
        }
        let is_over = self.alarm.poll(cx, end);
        is_over.map(|()| Err(io::ErrorKind::TimedOut.into()))
    }

    fn time_limit(&self, waiting: &Waiting) -> Duration {
        match waiting.has_begun {
            true => HEAD_TIMEOUT,
            // actix answers 408 if the first head is late
            false if waiting.requests == 0 => self.keep_alive + HEAD_TIMEOUT,
            false => self.keep_alive.max(HEAD_TIMEOUT),
        }
    }

    fn update_timer(&mut self, has_begun: bool) {
        let Some(requests) = self.connection_state.idle_request_count() else {
            self.waiting = None;
            return;
        };
        let is_same_wait = self.waiting.is_some_and(|waiting| {
            waiting.requests == requests && (waiting.has_begun || !has_begun)
        });
        if !is_same_wait {
            self.waiting = Some(Waiting {
                requests,
                has_begun,
                since: Instant::now(),
            });
        }
    }
}
