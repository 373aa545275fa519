//! A real Redis with a replica.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use super::proxy::Proxy;
use super::redis::RedisServer;

const WAIT_LIMIT: Duration = Duration::from_secs(30);

/// They are killed when the value goes.
#[derive(Debug)]
pub struct Replicated {
    pub master: RedisServer,
    /// The link between the replica and its master.
    pub between: Proxy,
    pub replica: RedisServer,
}

/// Those that all tests share which leave them as they are, each under a prefix of its own.
pub fn shared() -> Arc<Replicated> {
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
    pub fn start() -> Self {
        let master = RedisServer::start_with(&["--repl-diskless-sync-delay", "0"]);
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
    pub fn await_attached(&self) {
        let start = Instant::now();
        let is_attached = || {
            let [told, heard] = [&self.master, &self.replica].map(replication);
            told.contains("state=online") && heard.contains("master_link_status:up")
        };
        while !is_attached() {
            assert!(start.elapsed() < WAIT_LIMIT, "the replica does not attach");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// The number of commands that made the replica write or forget a key or its end. The offset of the stream says
    /// less: it also contains the questions about the replica's offset.
    pub fn told(&self) -> u64 {
        let stats = self.replica.call(&["INFO", "commandstats"]);
        let calls = ["set", "del", "persist", "pexpire", "pexpireat"].map(|command| {
            let name = format!("cmdstat_{command}:calls=");
            let counted = stats.lines().find_map(|line| line.strip_prefix(&name));
            counted.map_or(0, |count| count.split(',').next().unwrap().parse().unwrap())
        });
        calls.iter().sum()
    }
}

fn replication(server: &RedisServer) -> String {
    server.call(&["INFO", "replication"])
}
