//! What all connections to a server share.

use std::sync::Arc;
use std::time::{Duration, Instant};

use redis::Pipeline;
use tokio::time::{timeout, timeout_at};

use super::breaker::{Begun, Breaker};
use super::fault::Fault;
use super::line::Line;
use super::origin::Origin;
use super::roll::Roll;

/// A server: how it is reached, and whether it is there.
#[derive(Debug)]
pub(in crate::store::redis) struct Server {
    pub(super) origin: Origin,
    pub(super) breaker: Breaker,
    pub(super) roll: Arc<Roll>,
    /// How long a call may take, and a probe.
    timeout: Duration,
}

/// A question to a server whether it is there. It is over with the value.
#[derive(Debug)]
pub(super) struct Probe {
    server: Arc<Server>,
    begun: Begun,
}

/// A call that is on its way. Who gives one up after a good part of the time has not heard from the
/// server either: a whole operation may have a deadline of its own, a little before that of the call.
#[derive(Debug)]
struct Unheard<'a> {
    server: &'a Server,
    since: Instant,
    is_over: bool,
}

impl Server {
    pub(in crate::store::redis) fn new(origin: Origin, timeout: Duration, roll: Arc<Roll>) -> Self {
        Self {
            breaker: Breaker::new(origin.name(), Arc::clone(&roll), Instant::now()),
            roll,
            origin,
            timeout,
        }
    }

    /// Whether calls to it are refused.
    pub(in crate::store::redis) fn is_open(&self) -> bool {
        self.breaker.is_open()
    }

    /// Waits for what was called, until that time. After a timeout that connection is not used again:
    /// one that has lost its other end without a word would stay so for a quarter of an hour. What
    /// else came of it the breaker is told.
    pub(super) async fn until<T>(
        &self,
        deadline: Instant,
        line: &Line,
        call: impl Future<Output = Result<T, Fault>>,
    ) -> Result<T, Fault> {
        let mut unheard = Unheard::of(self);
        let called = timeout_at(deadline.into(), call).await;
        unheard.is_over = true;
        match called {
            Ok(called) => {
                if called.as_ref().err().is_none_or(Fault::is_an_answer) {
                    self.breaker.answered();
                }
                called
            }
            Err(_) => {
                line.give_up();
                self.breaker.unanswered();
                Err(Fault::Timeout)
            }
        }
    }

    /// Begins a probe if one is due.
    pub(super) fn probe(self: &Arc<Self>) -> Option<Probe> {
        let begun = self.breaker.begin(Instant::now())?;
        Some(Probe {
            server: Arc::clone(self),
            begun,
        })
    }
}

impl<'a> Unheard<'a> {
    fn of(server: &'a Server) -> Self {
        Self {
            server,
            since: Instant::now(),
            is_over: false,
        }
    }
}

impl Drop for Unheard<'_> {
    fn drop(&mut self) {
        if !self.is_over && self.since.elapsed() >= self.server.timeout / 2 {
            self.server.breaker.unanswered();
        }
    }
}

impl Probe {
    /// Whether connections that there are go on being used.
    pub(super) fn spares_connections(&self) -> bool {
        self.begun.spares_connections
    }

    /// Asks by a new connection, as who is in trouble may be the old one, for as long as a call may
    /// take: where it takes that long to connect, a shorter probe would never succeed. But a quarter
    /// of that is enough to suspect a server for which others have waited in vain.
    pub(super) async fn run(self, line: Arc<Line>) {
        let deadline = Instant::now() + self.server.timeout;
        let mut ping = Pipeline::new();
        ping.cmd("PING");
        let mut ping = Box::pin(line.send(&ping));
        if self.begun.is_suspicion {
            match timeout(self.server.timeout / 4, &mut ping).await {
                Ok(answered) => return self.tell(answered.is_ok()),
                Err(_) => self.server.breaker.silent(Instant::now()),
            }
        }
        match timeout_at(deadline.into(), ping).await {
            Ok(answered) => self.tell(answered.is_ok()),
            Err(_) => line.give_up(),
        }
    }

    /// A connection that could not be made is told of by itself.
    fn tell(&self, is_answered: bool) {
        if is_answered {
            self.server.breaker.answered();
        }
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        self.server.breaker.end(Instant::now());
    }
}
