//! What comes of calls, as the breaker is told.

use std::pin::Pin;
use std::time::Instant;

use super::server::Server;
use crate::store::redis::transport::fault::Fault;

/// A call that is on its way. Who gives one up after a good part of the time has not heard from the
/// server either: a whole operation may have a deadline of its own, a little before that of the call.
#[derive(Debug)]
struct Unheard<'a> {
    server: &'a Server,
    since: Instant,
    is_over: bool,
}

/// Waits for what was called, which knows its time, and tells the breaker what came of it.
///
/// The call stays where it is: it is large, and would be moved with every request.
pub(super) async fn until<T>(
    server: &Server,
    call: Pin<&mut impl Future<Output = Result<T, Fault>>>,
) -> Result<T, Fault> {
    let mut unheard = Unheard::of(server);
    let called = call.await;
    unheard.is_over = true;
    match &called {
        Err(Fault::Timeout) => server.breaker.unanswered(),
        Err(fault) if !fault.is_an_answer() => {}
        _ => server.breaker.answered(),
    }
    called
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
