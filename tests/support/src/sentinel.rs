use std::thread;
use std::time::{Duration, Instant};

use super::redis::RedisServer;

pub const MASTER: &str = "main";
const WAIT_LIMIT: Duration = Duration::from_secs(30);

/// A Redis master, its replica, and three sentinels. All five processes are killed on drop.
#[derive(Debug)]
pub struct Watched {
    pub servers: [RedisServer; 2],
    pub sentinels: Vec<RedisServer>,
}

impl Watched {
    pub fn start() -> Self {
        let no_sync_delay = ["--repl-diskless-sync-delay", "0"];
        let master = RedisServer::start_with(&no_sync_delay);
        let port = master.port().to_string();
        let following = ["--replicaof", "127.0.0.1", &port];
        let replica = RedisServer::start_with(&[&following[..], &no_sync_delay].concat());
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
                let info = sentinel.call(&["INFO", "sentinel"]);
                info.contains("slaves=1,sentinels=3")
            })
        });
        watched
    }

    pub fn url(&self) -> String {
        format!("redis+sentinel://{}/{MASTER}", self.hosts())
    }

    /// Sets how long a server must be silent before the sentinels consider it down. If the time is short, the sentinels
    /// may also consider a busy server down.
    pub fn set_down_after(&self, silence: Duration) {
        let ms = silence.as_millis().to_string();
        let set = ["SENTINEL", "SET", MASTER, "down-after-milliseconds", &ms];
        for sentinel in &self.sentinels {
            sentinel.call(&set);
        }
    }

    pub fn hosts(&self) -> String {
        let hosts = self.sentinels.iter();
        let hosts: Vec<_> = hosts.map(|s| format!("127.0.0.1:{}", s.port())).collect();
        hosts.join(",")
    }
}

fn until(condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < WAIT_LIMIT, "the sentinels do not agree");
        thread::sleep(Duration::from_millis(20));
    }
}
