//! A real Redis on a free port.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// A running `redis-server`; it is killed when the value goes.
#[derive(Debug)]
pub(crate) struct RedisServer {
    child: Child,
    port: u16,
}

/// The Redis that all tests share, each under a prefix of its own. It goes with its last user.
pub(crate) fn shared() -> Arc<RedisServer> {
    static SHARED: Mutex<Weak<RedisServer>> = Mutex::new(Weak::new());
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(redis) = shared.upgrade() {
        return redis;
    }
    let redis = Arc::new(RedisServer::start());
    *shared = Arc::downgrade(&redis);
    redis
}

impl RedisServer {
    /// Starts one that keeps nothing on disk.
    pub(crate) fn start() -> Self {
        // Another process may take the port in between; then the next one is tried.
        (0..5)
            .find_map(|_| Self::start_on(free_port()))
            .expect("redis-server should be installed and start")
    }

    /// Its URL.
    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    fn start_on(port: u16) -> Option<Self> {
        let mut child = Command::new("redis-server")
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
            .args(["--save", "", "--appendonly", "no"])
            .current_dir(env!("CARGO_TARGET_TMPDIR"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let is_ready = lines.any(|line| line.is_ok_and(|line| line.contains("Ready to accept")));
        if !is_ready {
            child.wait().unwrap();
            return None;
        }
        // What it says later has to go somewhere, or it would stop at a full pipe.
        std::thread::spawn(move || lines.for_each(drop));
        Some(Self { child, port })
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}
