use std::sync::Arc;
use std::time::Instant;

use tokio::time::timeout;

use super::connection::Connection;
use super::server::Server;
use crate::transport::fault::Fault;
use crate::transport::{Begun, Call, command};

/// A probe in progress. It ends when dropped.
#[derive(Debug)]
pub(super) struct Probe {
    server: Arc<Server>,
    begun: Begun,
}

impl Probe {
    pub(super) fn begin(server: &Arc<Server>) -> Option<Self> {
        let begun = server.breaker.begin(Instant::now())?;
        Some(Self {
            server: Arc::clone(server),
            begun,
        })
    }

    pub(super) fn spares_connections(&self) -> bool {
        self.begun.spares_connections
    }

    /// Sends PING over a new connection, because the fault may be limited to the old connection. PING has the same time
    /// limit as a call, because over a slow connection, every PING might exceed a shorter limit. However, if a call
    /// timeout prompted the probe, the server counts as silent after a quarter of that limit.
    pub(super) async fn run(self, connection: Arc<Connection>) {
        let deadline = Instant::now() + self.server.timeout;
        let ping = [command("PING")];
        let ping = Call::new(&ping, deadline);
        let mut ping = Box::pin(connection.exchange(&ping));
        if self.begun.is_suspicion {
            match timeout(self.server.timeout / 4, &mut ping).await {
                Ok(answered) => return self.report(answered.is_ok()),
                Err(_) => self.server.breaker.silent(Instant::now()),
            }
        }
        match ping.await {
            Err(Fault::Timeout) => connection.give_up(),
            answered => self.report(answered.is_ok()),
        }
    }

    /// Tells the breaker that PING was answered. If PING failed, the connection attempt has already reported its error.
    fn report(&self, is_answered: bool) {
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
