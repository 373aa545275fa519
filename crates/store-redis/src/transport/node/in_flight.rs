use std::time::Instant;

use super::server::Server;
use crate::transport::fault::Fault;

/// A call in flight. If the caller abandons it after at least half of the server's timeout, it counts as unanswered.
/// Otherwise, callers with short deadlines would never notice a silent server.
#[derive(Debug)]
pub(super) struct InFlight<'a> {
    server: &'a Server,
    since: Instant,
    has_ended: bool,
}

impl<'a> InFlight<'a> {
    pub(super) fn new(server: &'a Server) -> Self {
        Self {
            server,
            since: Instant::now(),
            has_ended: false,
        }
    }

    pub(super) fn end<T>(mut self, outcome: &Result<T, Fault>) {
        self.has_ended = true;
        match outcome {
            Err(Fault::Timeout) => self.server.breaker.unanswered(),
            Err(fault) if !fault.is_an_answer() => {}
            _ => self.server.breaker.answered(),
        }
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        if !self.has_ended && self.since.elapsed() >= self.server.timeout / 2 {
            self.server.breaker.unanswered();
        }
    }
}
