//! State shared by all connections to a server.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use redis::{RedisError, Value};

use super::origin::Origin;
use crate::transport::registry::ConnectionRegistry;
use crate::transport::{Breaker, Command, Endpoint, command, text};

/// A server: how it is reached, and whether it is there.
#[derive(Debug)]
pub(crate) struct Server {
    pub(super) origin: Origin,
    pub(super) breaker: Breaker,
    pub(super) registry: Arc<ConnectionRegistry>,
    /// How long a call may take, and a probe.
    pub(super) timeout: Duration,
    /// The process that answered the last new connection, and the history of its data; none if it did not say.
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

    /// Notes the replies to [`history_questions`] over a new connection. Unless they are those of the connection before, an
    /// epoch begins.
    pub(super) fn connected(&self, replies: &[Value]) {
        let history = history(replies);
        let mut last = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        if history.is_none() || *last != history {
            self.registry.begin_epoch();
        }
        *last = history;
    }

    /// Where it is now.
    pub(crate) async fn locate(&self) -> Result<Endpoint, RedisError> {
        self.origin.locate().await
    }

    /// Whether calls to it are refused.
    pub(crate) fn is_open(&self) -> bool {
        self.breaker.is_open()
    }
}

/// The commands that ask a server which process it is, and of which history its data are.
pub(super) fn history_questions() -> [Command; 2] {
    ["server", "replication"].map(|section| {
        let mut info = command("INFO");
        info.arg(section);
        info
    })
}

/// The id of the process, which is new after each start, and that of the replication, which is new after each change of its
/// role. None if a reply lacks it.
fn history(replies: &[Value]) -> Option<String> {
    let found = ["run_id:", "master_replid:"].iter().zip(replies);
    let ids = found.map(|(name, reply)| {
        let mut lines = text(reply).ok()?.lines();
        lines.find(|line| line.starts_with(name))
    });
    let ids: Vec<_> = ids.collect::<Option<_>>()?;
    (ids.len() == 2).then(|| ids.concat())
}
