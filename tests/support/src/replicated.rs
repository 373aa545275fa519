use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use super::proxy::Proxy;
use super::redis::RedisServer;

const WAIT_LIMIT: Duration = Duration::from_secs(30);

/// A Redis master and its replica. Both are killed on drop.
#[derive(Debug)]
pub struct Replicated {
    pub master: RedisServer,
    pub between: Proxy,
    pub replica: RedisServer,
}

/// Returns the shared servers, for tests that do not stop or promote a server. Each test has its own key prefix.
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
    /// Starts a master and a replica, and waits until the replica is in sync.
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

    pub fn await_attached(&self) {
        let start = Instant::now();
        let is_attached = || {
            let [master, replica] = [&self.master, &self.replica].map(replication);
            master.contains("state=online") && replica.contains("master_link_status:up")
        };
        while !is_attached() {
            assert!(start.elapsed() < WAIT_LIMIT, "the replica does not attach");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Returns the number of commands that set or deleted a key or an expiry on the replica. The replication offset
    /// would be less exact, because the offset also counts the master's requests for the replica's offset.
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
