//! A master and its replica with three sentinels.

use std::thread;
use std::time::{Duration, Instant};

use super::redis::RedisServer;

/// The sentinels' name of the master.
pub const MASTER: &str = "main";
const WAIT_LIMIT: Duration = Duration::from_secs(30);

/// They are killed when the value goes.
#[derive(Debug)]
pub struct Watched {
    /// The master and its replica, as they were at first.
    pub servers: [RedisServer; 2],
    pub sentinels: Vec<RedisServer>,
}

impl Watched {
    /// Starts them, and waits until all know of each other.
    pub fn start() -> Self {
        let at_once = ["--repl-diskless-sync-delay", "0"];
        let master = RedisServer::start_with(&at_once);
        let port = master.port().to_string();
        let following = ["--replicaof", "127.0.0.1", &port];
        let replica = RedisServer::start_with(&[&following[..], &at_once].concat());
        until(|| {
            replica
                .call(&["INFO", "replication"])
                .contains("master_link_status:up")
        });
        let config = format!(
            "sentinel monitor {MASTER} 127.0.0.1 {port} 2\n\
             sentinel down-after-milliseconds {MASTER} 1000\n\
             sentinel failover-timeout {MASTER} 5000\n"
        );
        let sentinels: Vec<_> = (0..3)
            .map(|_| RedisServer::start_sentinel(&config))
            .collect();
        let watched = Self {
            servers: [master, replica],
            sentinels,
        };
        until(|| {
            watched.sentinels.iter().all(|sentinel| {
                let known = sentinel.call(&["INFO", "sentinel"]);
                known.contains("slaves=1,sentinels=3")
            })
        });
        watched
    }

    /// Their URL.
    pub fn url(&self) -> String {
        format!("redis+sentinel://{}/{MASTER}", self.hosts())
    }

    /// Sets after which silence sentinels take a server for down. They know a busy one from it only by patience.
    pub fn wait_for(&self, silence: Duration) {
        let ms = silence.as_millis().to_string();
        let set = ["SENTINEL", "SET", MASTER, "down-after-milliseconds", &ms];
        for sentinel in &self.sentinels {
            sentinel.call(&set);
        }
    }

    /// The sentinels, as in a URL.
    pub fn hosts(&self) -> String {
        let hosts = self.sentinels.iter();
        let hosts: Vec<_> = hosts.map(|s| format!("127.0.0.1:{}", s.port())).collect();
        hosts.join(",")
    }
}

fn until(condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(
            start.elapsed() < WAIT_LIMIT,
            "the sentinels do not come to agree"
        );
        thread::sleep(Duration::from_millis(20));
    }
}
