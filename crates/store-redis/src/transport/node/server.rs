use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use redis::{RedisError, Value};

use super::origin::Origin;
use crate::transport::registry::ConnectionRegistry;
use crate::transport::{Breaker, Command, Endpoint, command, text};

#[derive(Debug)]
pub(crate) struct Server {
    pub(super) origin: Origin,
    pub(super) breaker: Breaker,
    pub(super) registry: Arc<ConnectionRegistry>,
    pub(super) timeout: Duration,
    /// Ids of the process and of the replication history, read when the latest connection was made; `None` if unknown.
    history: Mutex<Option<String>>,
}

impl Server {
    pub(crate) fn new(
        origin: Origin,
        timeout: Duration,
        registry: Arc<ConnectionRegistry>,
    ) -> Self {
        Self {
            breaker: Breaker::new(origin.name(), Arc::clone(&registry), Instant::now()),
            registry,
            origin,
            timeout,
            history: Mutex::default(),
        }
    }

    /// Begins a new epoch unless [`history_commands`] returned the same ids as on the previous connection.
    pub(super) fn connected(&self, replies: &[Value]) {
        let history = history(replies);
        let mut last = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        if history.is_none() || *last != history {
            self.registry.begin_epoch();
        }
        *last = history;
    }

    pub(crate) async fn locate(&self) -> Result<Endpoint, RedisError> {
        self.origin.locate().await
    }

    pub(crate) fn is_open(&self) -> bool {
        self.breaker.is_open()
    }
}

pub(super) fn history_commands() -> [Command; 2] {
    ["server", "replication"].map(|section| {
        let mut info = command("INFO");
        info.arg(section);
        info
    })
}

/// Returns the process id, which changes on a restart, and the replication id, which changes on a role change. Returns
/// `None` if either is missing.
fn history(replies: &[Value]) -> Option<String> {
    let named = ["run_id:", "master_replid:"].iter().zip(replies);
    let ids = named.map(|(name, reply)| {
        let mut lines = text(reply).ok()?.lines();
        lines.find(|line| line.starts_with(name))
    });
    let ids: Vec<_> = ids.collect::<Option<_>>()?;
    (ids.len() == 2).then(|| ids.concat())
}
