//! A real Redis with a replica.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use super::proxy::Proxy;
use super::redis::RedisServer;

const PATIENCE: Duration = Duration::from_secs(30);

/// They are killed when the value goes.
#[derive(Debug)]
pub(crate) struct Replicated {
    pub(crate) master: RedisServer,
    /// What the replica hears its master through.
    pub(crate) between: Proxy,
    pub(crate) replica: RedisServer,
}

/// Those that all tests share which leave them as they are, each under a prefix of its own.
pub(crate) fn shared() -> Arc<Replicated> {
    static SHARED: Mutex<Weak<Replicated>> = Mutex::new(Weak::new());
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(servers) = shared.upgrade() {
        return servers;
    }
    let servers = Arc::new(Replicated::start());
    *shared = Arc::downgrade(&servers);
    servers
}

impl Replicated {
    /// Starts both, and waits until the one has all of the other.
    pub(crate) fn start() -> Self {
        // what is in the stream is what was written, and no ping
        let quiet = ["--repl-ping-replica-period", "3600"];
        let at_once = ["--repl-diskless-sync-delay", "0"];
        let master = RedisServer::start_with(&[&quiet[..], &at_once].concat());
        let between = Proxy::start(([127, 0, 0, 1], master.port()).into());
        let port = between.address().port().to_string();
        let replica = RedisServer::start_with(&["--replicaof", "127.0.0.1", &port]);
        let servers = Self {
            master,
            between,
            replica,
        };
        servers.await_attached();
        servers
    }

    /// Waits until the replica hears its master.
    pub(crate) fn await_attached(&self) {
        let start = Instant::now();
        let is_attached = || {
            let [told, heard] = [&self.master, &self.replica].map(replication);
            told.contains("state=online") && heard.contains("master_link_status:up")
        };
        while !is_attached() {
            assert!(start.elapsed() < PATIENCE, "the replica does not attach");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Bytes that the master has written for replicas so far.
    pub(crate) fn written(&self) -> u64 {
        let told = replication(&self.master);
        let offset = told
            .lines()
            .find_map(|line| line.strip_prefix("master_repl_offset:"));
        offset.unwrap().parse().unwrap()
    }
}

fn replication(server: &RedisServer) -> String {
    server.call(&["INFO", "replication"])
}
