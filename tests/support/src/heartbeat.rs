//! Measures how long other clients wait during an attack.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::raw;
use super::server::{Server, cpu_time};

const HEALTHZ: &str = "GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
const PAUSE: Duration = Duration::from_millis(10);

/// Requests `/healthz` repeatedly, each time on a new connection, so that all workers get requests.
#[derive(Debug)]
pub struct Heartbeat {
    is_over: Arc<AtomicBool>,
    longest: JoinHandle<Duration>,
}

impl Heartbeat {
    pub fn start(server: &Server) -> Self {
        let (address, pid) = (server.address(), server.pid());
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let longest = tokio::spawn(async move {
            let mut longest = Duration::ZERO;
            while !over.load(Ordering::Relaxed) {
                let before = cpu_time(pid);
                while !try_request(address).await {}
                longest = longest.max(cpu_time(pid) - before);
                sleep(PAUSE).await;
            }
            longest
        });
        Self { is_over, longest }
    }

    /// Returns the maximum CPU time that the server spent before it answered a request. CPU time, unlike elapsed time,
    /// does not depend on other processes. Fails if a request does not get an answer.
    pub async fn longest_wait(self) -> Duration {
        self.is_over.store(true, Ordering::Relaxed);
        self.longest.await.unwrap()
    }
}

/// Requests `/healthz`. Returns false if a busy machine delayed the request and the server answered with 408.
async fn try_request(address: SocketAddr) -> bool {
    let answer = raw::exchange(address, HEALTHZ).await;
    let status = raw::status(&answer);
    assert!([200, 408].contains(&status), "{answer}");
    status == 200
}
