use std::time::Duration;

use futures_util::future::join_all;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

use crate::budgets::{LONGEST_WAIT, MB, await_resident, builder};
use crate::support::client::OwnThread;
use crate::support::heartbeat::Heartbeat;
use crate::support::raw;
use crate::support::server::{Backend, Server};

const CONNECTIONS: usize = 300;
const BODY_BYTES: usize = 2 * 1_048_576;
/// Memory that each of the two workers can use for bodies, in bytes.
const MEMORY_BYTES: u64 = 16 * 1_048_576;
/// Maximum memory per connection in addition to bodies: buffers, and memory that the allocator has not returned.
const CONNECTION_BYTES: u64 = 350_000;
/// How long a write may block before the test assumes that the server has stopped reading.
const STALL_LIMIT: Duration = Duration::from_secs(2);
/// Time limit for the server to close all connections with unfinished bodies.
const CLOSE_LIMIT: Duration = Duration::from_secs(120);

async fn connect_without_finishing(server: &Server) -> TcpStream {
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    let length = format!("content-length: {BODY_BYTES}\r\ncontent-type: application/json\r\n");
    let head = format!("PUT /v1/threads/current/state/a HTTP/1.1\r\nhost: x\r\n{length}\r\n");
    let body = vec![b'1'; BODY_BYTES - 1];
    let sending = async {
        stream.write_all(head.as_bytes()).await?;
        for part in body.chunks(65_536) {
            if timeout(STALL_LIMIT, stream.write_all(part)).await.is_err() {
                break;
            }
        }
        Ok::<_, std::io::Error>(())
    };
    // the server may have closed the connection
    let _ = sending.await;
    stream
}

async fn put_large(thread: &OwnThread) {
    let large = format!("\"{}\"", "x".repeat(1_000_000));
    let start = Instant::now();
    loop {
        let answer = thread.put("state/large", &large).send().await;
        if answer.status != 503 {
            assert_eq!(answer.status, 200);
            return;
        }
        assert!(
            start.elapsed() < CLOSE_LIMIT,
            "the server closes no connection"
        );
        assert_eq!(answer.header("retry-after"), Some("1"));
        answer.problem(503, "overloaded");
    }
}

#[tokio::test]
async fn unfinished_bodies_stay_within_the_memory_for_bodies() {
    let server = builder(Backend::Memory)
        .set("THREADKEEP_WORKER_MAX_BODY_BYTES", MEMORY_BYTES)
        .start();
    let thread = server.client().thread();
    thread.put("state/a", "1").ok().await;
    let heartbeat = Heartbeat::start(&server);
    let before = server.peak_bytes();

    let mut connections =
        join_all((0..CONNECTIONS).map(|_| connect_without_finishing(&server))).await;
    let before_small = server.cpu_time();
    thread.put("state/a", "2").ok().await;
    let small_took = server.cpu_time() - before_small;

    assert!(small_took < LONGEST_WAIT, "{small_took:?}");
    put_large(&thread).await;
    assert!(heartbeat.longest_wait().await < LONGEST_WAIT);
    let answer = raw::read_response(&mut connections[CONNECTIONS - 1]).await;
    assert_eq!(raw::status(&answer), 503, "{answer}");
    let cost = server.peak_bytes() - before;
    let limit = 2 * MEMORY_BYTES + CONNECTIONS as u64 * CONNECTION_BYTES;
    assert!(cost < limit, "{cost} bytes of {limit}");
    drop(connections);
    await_resident(&server, before + limit / 2 + 30 * MB).await;
}
