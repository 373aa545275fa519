//! A question to a server whether it is there.

use std::sync::Arc;
use std::time::Instant;

use tokio::time::timeout;

use super::connection::Connection;
use super::server::Server;
use crate::store::redis::transport::breaker::Begun;
use crate::store::redis::transport::call::Call;
use crate::store::redis::transport::commands::command;
use crate::store::redis::transport::fault::Fault;

/// A question that is on its way. It is over with the value.
#[derive(Debug)]
pub(super) struct Probe {
    server: Arc<Server>,
    begun: Begun,
}

impl Probe {
    /// Begins one if it is due.
    pub(super) fn begin(server: &Arc<Server>) -> Option<Self> {
        let begun = server.breaker.begin(Instant::now())?;
        Some(Self {
            server: Arc::clone(server),
            begun,
        })
    }

    /// Whether connections that there are go on being used.
    pub(super) fn spares_connections(&self) -> bool {
        self.begun.spares_connections
    }

    /// Asks by a new connection, as who is in trouble may be the old one, for as long as a call may
    /// take: where it takes that long to connect, a shorter probe would never succeed. But a quarter
    /// of that is enough to suspect a server for which others have waited in vain.
    pub(super) async fn run(self, connection: Arc<Connection>) {
        let deadline = Instant::now() + self.server.timeout;
        let ping = [command("PING")];
        let ping = Call::new(&ping, deadline);
        let mut ping = Box::pin(connection.exchange(&ping));
        if self.begun.is_suspicion {
            match timeout(self.server.timeout / 4, &mut ping).await {
                Ok(answered) => return self.tell(answered.is_ok()),
                Err(_) => self.server.breaker.silent(Instant::now()),
            }
        }
        match ping.await {
            Err(Fault::Timeout) => connection.give_up(),
            answered => self.tell(answered.is_ok()),
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
